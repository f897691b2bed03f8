/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a store's frames: frames of one function in one module are one. Kept from question to question, so each
 * frame is looked at once; belongs to the thread that asks.
 */
#ifndef HEARTH_BACKEND_QUERY_FUNCTIONS_H
#define HEARTH_BACKEND_QUERY_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

struct function {
	const char *name; /* never empty: see proto/unnamed.h where the frame has none */
	const char *module, *type;
	const char *file, *build_id; /* of the first frame that had one */
	bool is_named;		     /* a frame of it has a function, or it is a label's value */
};

/* A frame as a call of its function. */
struct function_call {
	uint32_t function;
	uint32_t line : 31;
	uint32_t inlined : 1;
};

struct functions;

/* @store is borrowed. NULL when out of memory. */
struct functions *functions_new(struct store *store);
void functions_free(struct functions *f);

/* The call that @frame of the store stands for. 0, -ENOMEM, or what the store said. */
int functions_of_frame(struct functions *f, uint32_t frame, struct function_call *ret);

/* Asks about the frames whose bits are set, in the store's order: it has frames packed many together, and in another order
 * would unpack them over and over. 0, -ENOMEM, or what the store said. */
int functions_meet(struct functions *f, const uint64_t *frames, uint32_t word_count);

/* The function that stands for the value @label of a grouping; its type is "label". 0 or -ENOMEM. */
int functions_of_label(struct functions *f, const char *label, uint32_t *ret);

/* The strings of the function are valid until the next functions_of_...(). */
struct function functions_get(const struct functions *f, uint32_t function);
uint32_t functions_count(const struct functions *f);

/* Bytes of memory held. */
size_t functions_memory_bytes(const struct functions *f);

/* Forgets everything once more than @max functions are known, as after days of JIT code, or when the store has other names
 * for frames than before. Numbers begin anew. Call it only between questions. @max 0 gives all memory back. */
void functions_trim(struct functions *f, uint32_t max);

#endif
