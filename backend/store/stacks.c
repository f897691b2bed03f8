/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A caller's number is below the numbers of its callees. So the stacks that were taken are marked in a bit map, which is
 * then walked from its end on: each stack knows what it weighs with all it calls when its turn comes, tells its caller and
 * marks it. The cost is linear in the stacks that were taken and their callers, not in those of the store, but for the bit
 * map itself.
 */
#include "backend/store/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/store_read.h"
#include "base/vec.h"

/* Nodes that are asked about at once. For one of many selections it is the whole neighbourhood: the store has nodes packed
 * many together. */
enum { ASKED = 64, NEIGHBOURHOOD = 4096 };

/* Makes room for all stacks that the store knows by now: some get their numbers when a question meets them. */
static int know_stacks(struct stacks *s, bool two_sides)
{
	const size_t elements = (size_t)s->store->read->node_count(s->store) + 1;
	int err = memory_zeros_reach(&s->marks_memory, (elements / 64 + 1) * sizeof(*s->marks));

	s->marks = s->marks_memory.at;
	for (unsigned side = 0; side <= two_sides && !err; side++) {
		err = memory_zeros_reach(&s->weights_memory[side], elements * sizeof(*s->weights[side]));
		s->weights[side] = s->weights_memory[side].at;
	}
	err = err ? err : memory_zeros_reach(&s->items_memory, elements * sizeof(*s->items));
	s->items = s->items_memory.at;
	if (!err)
		s->count = (uint32_t)(elements - 1);
	return err;
}

int stacks_init(struct stacks *s, struct store *store, bool two_sides)
{
	*s = (struct stacks){ .store = store };
	return know_stacks(s, two_sides);
}

void stacks_fini(struct stacks *s)
{
	memory_zeros_fini(&s->marks_memory);
	memory_zeros_fini(&s->items_memory);
	memory_zeros_fini(&s->weights_memory[0]);
	memory_zeros_fini(&s->weights_memory[1]);
	free(s->frames);
	*s = (struct stacks){ 0 };
}

static void mark(struct stacks *s, uint32_t stack)
{
	const uint64_t bit = 1ull << (stack % 64);

	if (s->marks[stack / 64] & bit)
		return;
	s->marks[stack / 64] |= bit;
	s->items[stack].child = 0;
	s->weights[0][stack] = 0;
	if (s->weights[1])
		s->weights[1][stack] = 0;
}

int stacks_take(struct stacks *s, unsigned side, uint32_t node, int64_t weight)
{
	if (side && !s->weights[1])
		return -EINVAL;
	if (node >= s->count) { /* met since the question began */
		int err = know_stacks(s, s->weights[1]);

		if (err || node >= s->count)
			return err ? err : -EBADMSG;
	}
	mark(s, node);
	s->weights[side][node] = weights_add(s->weights[side][node], weight);
	return 0;
}

/* Asks about the stacks from @first on, or none of them. */
static int ask_stacks(struct stacks *s, uint32_t first, uint32_t count)
{
	struct store_node nodes[ASKED];
	int err = s->store->read->nodes(s->store, first, count, nodes);

	for (uint32_t i = 0; i < count && !err; i++)
		err = nodes[i].parent < first + i || first + i == 0 ? 0 : -EBADMSG;
	for (uint32_t i = 0; i < count && !err; i++) {
		s->items[first + i].caller = nodes[i].parent + 1;
		s->items[first + i].frame = nodes[i].frame;
		s->asked++;
	}
	return err;
}

/* Makes stack @number known, and its neighbours where possible: errors with those do not count, but for -ENOMEM. */
static int meet_stack(struct stacks *s, uint32_t number, bool is_one_of_many)
{
	const uint32_t size = is_one_of_many ? NEIGHBOURHOOD : ASKED;
	uint32_t at = number & -size;
	const uint32_t end = at + size < s->count ? at + size : s->count;

	for (; at < end; at += ASKED) {
		if (!s->items[at].caller && ask_stacks(s, at, end - at < ASKED ? end - at : ASKED) == -ENOMEM)
			return -ENOMEM;
	}
	return s->items[number].caller ? 0 : ask_stacks(s, number, 1);
}

static int note_frame(struct stacks *s, uint32_t frame)
{
	const uint32_t word = frame / 64;

	if (vec_reach_zero(&s->frames, &s->frame_words, word))
		return -ENOMEM;
	s->frames[word] |= 1ull << frame % 64;
	return 0;
}

static int add_to_caller(struct stacks *s, uint32_t number, bool is_one_of_many)
{
	struct stack *stack = &s->items[number];
	int err = stack->caller ? 0 : meet_stack(s, number, is_one_of_many);
	uint32_t caller = stack->caller - 1;

	if (err)
		return err;
	mark(s, caller);
	for (unsigned side = 0; side < 2 && s->weights[side]; side++)
		s->weights[side][caller] = weights_add(s->weights[side][caller], s->weights[side][number]);
	stack->sibling = s->items[caller].child;
	s->items[caller].child = number;
	s->below++;
	return note_frame(s, stack->frame);
}

int stacks_add_up(struct stacks *s, bool is_one_of_many)
{
	s->below = 0;
	if (s->frames)
		memset(s->frames, 0, s->frame_words * sizeof(*s->frames));
	mark(s, 0); /* where nothing was taken, too */
	/* A word's highest mark has no caller to come. */
	for (uint32_t word = s->count / 64 + 1; word-- > 0;) {
		while (s->marks[word]) {
			uint32_t bit = 63 - (uint32_t)__builtin_clzll(s->marks[word]);
			int err = word || bit ? add_to_caller(s, word * 64 + bit, is_one_of_many) : 0;

			if (err)
				return err;
			s->marks[word] &= ~(1ull << bit);
		}
	}
	return 0;
}

uint64_t stacks_memory_bytes(const struct stacks *s)
{
	const size_t weights = sizeof(**s->weights) * (s->weights[1] ? 2 : 1);

	return s->asked * sizeof(*s->items) + s->below * weights + s->frame_words * sizeof(*s->frames) + s->count / 8;
}
