/* SPDX-License-Identifier: Apache-2.0 */
/* Binary search in anything that is sorted and has indices. */
#ifndef HEARTH_BASE_SEARCH_H
#define HEARTH_BASE_SEARCH_H

/*
 * The first number below @count (of any unsigned type) at which @is_past holds, else @count. @is_past is an expression with
 * the number in a variable called @at. Once @is_past holds, it must hold for all higher numbers as well. One less than the
 * result is the last number at which it does not hold, if there is one.
 *
 *  *	size_t behind = search_first(at, s->count, s->items[at].start > addr);
 */
#define search_first(at, count, is_past)                                                         \
	({                                                                                       \
		typeof((count) + 0u) search_low_ = 0, search_high_ = (count);                    \
                                                                                                 \
		while (search_low_ < search_high_) {                                             \
			typeof(search_low_) at = search_low_ + (search_high_ - search_low_) / 2; \
                                                                                                 \
			if (is_past)                                                             \
				search_high_ = at;                                               \
			else                                                                     \
				search_low_ = at + 1;                                            \
		}                                                                                \
		search_low_;                                                                     \
	})

#endif
