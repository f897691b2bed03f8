/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of frames, kept from interval to interval: each (file, address) is looked up once, and once more when the file gets
 * a better index (agent/names/indexes.h). This is off the sampling path: it is called for a whole interval at its end, and
 * nothing here waits for anybody.
 */
#ifndef HEARTH_AGENT_NAMES_NAMES_H
#define HEARTH_AGENT_NAMES_NAMES_H

#include <stdint.h>

#include "agent/samples/traces.h"
#include "base/wait_hook.h"
#include "proto/profiles.h"
#include "symbols/code/names.h"

struct kernel_names;
struct metrics;
struct names;

/*
 * One function at a frame. The innermost is the one whose code runs; each further one is the function it was inlined into.
 */
struct frame_line {
	struct str name;	/* for people; never empty */
	struct str system_name; /* the name in the file, if that differs, else empty */
	struct str file;	/* path of the source file; empty: unknown */
	uint32_t line, column;	/* 0: unknown */
	uint32_t start_line;	/* where the function is declared; 0: unknown */
	uint32_t function;	/* equal for lines that differ in line and column alone; 0: not known, else below
				   names_function_count() */
};

struct frame_name {
	struct str module;	    /* kernel frames: the module, or "" */
	enum code_source source;    /* the source of a file's names */
	uint32_t line_count;	    /* 0: nothing names the frame */
	uint64_t start, size_bytes; /* range of its function if that is known but has no name; else size 0 */
	struct frame_line lines[CODE_MAX_FRAMES];
};

/* @kernel is borrowed. */
int names_new(struct kernel_names *kernel, struct metrics *metrics, struct names **ret);
void names_free(struct names *n);

/* Looks up the frames of @t, of samples since @since_ns, that are not known yet. If that fails they stay without a name.
 * @hook (or NULL) runs now and then. 0 or -ENOMEM. */
int names_update(struct names *n, const struct traces *t, uint64_t since_ns, const struct wait_hook *hook);

/* The names of a frame after names_update. Strings live until the next names_update. */
void names_find(const struct names *n, const struct trace_frame *frame, struct frame_name *ret);

/* Bytes of memory held. */
size_t names_memory_bytes(const struct names *n);

/* The count is valid until the next names_update. */
uint32_t names_function_count(const struct names *n);

#endif
