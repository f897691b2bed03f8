/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes stacks for a builder out of frames as other tools write them down: one frame after the other, leaf first, inlined
 * calls as frames of their own. Facts that a format does not give are guessed where that is safe: code without a name from
 * how stack_frame_print() writes it, the type of a frame from its module and its file. Not shared between threads.
 */
#ifndef HEARTH_PROTO_STACK_MAKER_H
#define HEARTH_PROTO_STACK_MAKER_H

#include "base/buf.h"
#include "proto/profiles_builder.h"

struct frame_said {
	struct str function; /* its name, "module+0xaddress", "0xaddress", or "" */
	struct str file;     /* of the source; "" when not said */
	struct str module;   /* path or name; "" when not said */
	struct str type;     /* profile.frame.type; "" when not said */
	int64_t line, column;
	uint64_t address;
	bool inlined; /* into the next frame */
};

struct stack_maker {
	struct builder *b;    /* borrowed */
	struct buf lines;     /* struct profile_line: inlined calls that wait for what they are inlined into */
	struct buf locations; /* int32_t */
};

void stack_maker_init(struct stack_maker *m, struct builder *b);
void stack_maker_fini(struct stack_maker *m);

void stack_maker_add(struct stack_maker *m, const struct frame_said *f);

/* The location that the last frame closed, 0 if none; and that location once more, which is quicker than its frame. */
int32_t stack_maker_last(const struct stack_maker *m);
void stack_maker_repeat(struct stack_maker *m, int32_t location);

/* The stack of what was added, as an index of the builder; starts anew. */
int32_t stack_maker_end(struct stack_maker *m);

/* Was there no memory? Stacks are then incomplete. */
bool stack_maker_failed(const struct stack_maker *m);

/* The type of a frame by what there is to see: "kernel", "go", "cpython", ..., else "native". */
struct str stack_maker_guess_type(struct str module, struct str file);

/* An entry without all of these, and with every text "". */
#define FRAME_SAID_NOTHING ((struct frame_said){ .function = STR(""), .file = STR(""), .module = STR(""), .type = STR("") })

#endif
