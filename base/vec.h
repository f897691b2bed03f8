/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing arrays. The array, the number of elements that it has room for (its cap, of any unsigned type, which also bounds
 * it) and its count stand in whatever struct the caller has; the array comes from malloc() and goes with free(). An array
 * that is full becomes at least twice as large, so that appending n elements copies at most 2n.
 *
 * Each macro takes the address of the pointer to the first element (@items) and the address of the cap (@cap). It evaluates
 * each of its arguments once. It returns 0, or -ENOMEM, and then array and cap are as they were.
 */
#ifndef HEARTH_BASE_VEC_H
#define HEARTH_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for @need elements. */
#define vec_reserve(items, cap, need) VEC_RESERVE(items, cap, need, sizeof(**(items)), false)

/* Makes room for element number @index. */
#define vec_reach(items, cap, index) VEC_RESERVE(items, cap, (size_t)(index) + 1, sizeof(**(items)), false)

/* The same two macros for arrays whose unused elements are zero bytes. */
#define vec_reserve_zero(items, cap, need) VEC_RESERVE(items, cap, need, sizeof(**(items)), true)
#define vec_reach_zero(items, cap, index)  VEC_RESERVE(items, cap, (size_t)(index) + 1, sizeof(**(items)), true)

/* The same for elements whose size, @element_bytes, the pointer's type does not tell. */
#define VEC_RESERVE(items, cap, need, element_bytes, is_zero)                                                       \
	({                                                                                                          \
		typeof(cap) vec_at_ = (cap);                                                                        \
		size_t vec_cap_ = *vec_at_, vec_need_ = (need);                                                     \
		int vec_error_ = 0;                                                                                 \
                                                                                                                    \
		_Static_assert((typeof(*vec_at_))-1 > 0, "a cap is unsigned");                                      \
		if (__builtin_expect(vec_need_ > vec_cap_, 0)) {                                                    \
			vec_error_ = vec_grow((items), &vec_cap_, vec_need_, (typeof(*vec_at_))-1, (element_bytes), \
					      (is_zero));                                                           \
			*vec_at_ = (typeof(*vec_at_))vec_cap_;                                                      \
		}                                                                                                   \
		vec_error_;                                                                                         \
	})

/* Gives back the room behind the first @count elements; where that fails it stays. */
#define vec_fit(items, cap, count)                                          \
	({                                                                  \
		typeof(cap) vec_at_ = (cap);                                \
		size_t vec_cap_ = *vec_at_;                                 \
                                                                            \
		vec_shrink((items), &vec_cap_, (count), sizeof(**(items))); \
		*vec_at_ = (typeof(*vec_at_))vec_cap_;                      \
	})

/* Gives the array at *@items room for @need (more than *@cap) and at most @max elements. 0, -ENOMEM. */
int vec_grow(void *items, size_t *cap, size_t need, size_t max, size_t element_bytes, bool is_zero);

/* Leaves the array at *@items room for @count elements, one at least. */
void vec_shrink(void *items, size_t *cap, size_t count, size_t element_bytes);

#endif
