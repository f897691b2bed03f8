/* SPDX-License-Identifier: Apache-2.0 */
/* A message while it is kept, for the two files that do it: its samples (message.c), and the parts of their stacks
 * (message_stacks.c). The writer's thread. */
#ifndef HEARTH_BACKEND_STORE_SQLITE_MESSAGE_H
#define HEARTH_BACKEND_STORE_SQLITE_MESSAGE_H

#include "backend/store/sqlite/keep.h"

#include "base/vec.h"

/* The numbers that a list of a sample's attributes stands for. */
struct label_set {
	uint32_t set, cpu;
};

/* A location's frames, outermost first, among struct message's. */
struct location_frames {
	uint32_t first, count;
};

struct message_frame {
	struct id_key key;
	uint32_t number; /* 0: not asked for yet */
	int32_t location;
	uint32_t line; /* which of the location's, from 0 */
};

struct path_step {
	struct id_key key;
	uint32_t frame; /* place among struct message's */
};

struct message {
	struct keep *k;
	const struct profiles *p;
	/* By index in the message's tables, in k->tables. Numbers in the store, 0: not met, or none; and keys. */
	uint32_t *strings, *attributes, *functions, *mappings, *stacks, *links;
	uint32_t *sets_of_one;					 /* the set that holds this attribute alone */
	struct id_key *string_keys, *function_keys, *stack_keys; /* { 0 }: "", none, no frames */
	struct location_frames *locations;
	struct message_frame *frames;
	size_t frame_count, frame_cap;
	struct path_step *path; /* of the stack at hand, outermost first */
	size_t path_count, path_cap;
	struct label_set *label_sets;
	size_t label_set_count, label_set_cap;
	struct ids label_set_of; /* bytes of the list of indices: place among label_sets + 1 */
	int64_t *numbers;	 /* of a list at hand */
	size_t number_cap;
	struct buf text;
	int err; /* sticks */
};

/* Makes room for @more more elements of @array, or the message fails. */
#define ROOM(m, array, cap, count, more) (!vec_reserve(&(array), &(cap), (count) + (more)) || ((m)->err = -ENOMEM, false))

/* The number of string @index, and of the set that a list of attributes is. */
uint32_t message_string(struct message *m, int32_t index);
uint32_t message_set(struct message *m, const struct indices *list);

/* Writes rows of integers alone, the first being the number @id. */
void message_insert_integers(struct message *m, enum kept kind, uint32_t id, const int64_t *values, size_t count);

/* Makes all keys, and numbers of mappings. */
void message_make_keys(struct message *m);

/* The node of stack @index; keys are made. */
uint32_t message_stack(struct message *m, int32_t index);

#endif
