/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of differences that are accepted, each with its reason (differences.txt says what its columns are). A
 * difference that no line fits is a failure.
 */
#ifndef HEARTH_TESTS_DIFFERENCES_H
#define HEARTH_TESTS_DIFFERENCES_H

#include <stdbool.h>
#include <stdint.h>

enum difference_kind {
	JUDGE_WRONG,  /* what the program did says that hearth is right */
	JUDGE_ENDS,   /* hearth goes on; nothing else is known */
	HEARTH_ENDS,  /* it could go on, as the judge or what the program did says */
	BOTH_DIFFER,  /* each goes on differently; nothing else is known */
	BOTH_WRONG,   /* they agree, but what the program did is something else */
	HEARTH_CUT,   /* the same frames, and for the judge that is all, but hearth does not know it */
	HEARTH_WRONG, /* what the program did says that hearth is wrong; no line can accept it */
};

extern const char *const difference_kinds[];

struct difference {
	enum difference_kind kind;
	const char *program;
	const char *module, *function; /* of the last frame that both have */
	const char *end;	       /* how the shorter one ended */
};

struct differences;

/* NULL when the table cannot be read or a line of it makes no sense, which has been said. */
struct differences *differences_read(const char *path);
void differences_free(struct differences *d);

/* Counts @difference under the line that fits; its name, or NULL. */
const char *differences_explain(struct differences *d, const struct difference *difference);

/* Counts one that nothing explains, beside others of its kind in the same function. True: it is the first of them. */
bool differences_note(struct differences *d, const struct difference *difference);

/* Prints what was noted, a line a kind and function. */
void differences_print_noted(const struct differences *d);

/* Was a line needed more often than it allows, in @stops stops? Says so then. */
bool differences_too_many(const struct differences *d, uint64_t stops);

/* Prints the lines that were needed: "class NAME COUNT". */
void differences_print(const struct differences *d);

#endif
