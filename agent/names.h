/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of frames, kept from interval to interval: each (file, address) is looked up once, and once more when the file gets
 * a better index (agent/indexes.h). Off the sampling path: called for a whole interval at its end; nothing here waits for
 * anybody.
 */
#ifndef HEARTH_AGENT_NAMES_H
#define HEARTH_AGENT_NAMES_H

#include <stdint.h>

#include "agent/traces.h"
#include "proto/profiles.h"
#include "symbols/code_names.h"

struct kernel_names;
struct metrics;
struct names;

/* One function at a frame: the innermost is the one whose code it is, each further one is what it was inlined into. */
struct frame_line {
	struct str name;	/* for people; never empty */
	struct str system_name; /* as in the file, where that differs, else empty */
	struct str file;	/* path of the source file; empty: unknown */
	uint32_t line, column;	/* 0: unknown */
	uint32_t start_line;	/* where the function is declared; 0: unknown */
	uint32_t function;	/* equal for lines that differ in line and column alone; 0: not known, else below
				   names_function_count() */
};

struct frame_name {
	struct str module;	 /* kernel frames: the module, or "" */
	enum code_source source; /* of a file's names */
	uint32_t line_count;	 /* 0: nothing names the frame */
	struct frame_line lines[CODE_MAX_FRAMES];
};

/* @kernel is borrowed. */
int names_new(struct kernel_names *kernel, struct metrics *metrics, struct names **ret);
void names_free(struct names *n);

/* Looks up what is not known yet of the frames of @t, of samples since @since_ns. What fails stays without a name. @on_wait
 * (or NULL) is called now and then. 0 or -ENOMEM. */
int names_update(struct names *n, const struct traces *t, uint64_t since_ns, void (*on_wait)(void *arg), void *arg);

/* The names of a frame after names_update. Strings live until the next names_update. */
void names_find(const struct names *n, const struct trace_frame *frame, struct frame_name *ret);

/* Bytes of memory held. */
size_t names_memory_bytes(const struct names *n);

/* Until the next names_update. */
uint32_t names_function_count(const struct names *n);

#endif
