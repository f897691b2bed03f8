/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts in V8's heap, and the lines of positions in them. A position counts characters of the script's source (UTF-16
 * units) from 0 on. Lines are counted in the source itself, which is read once: a mark for each V8_MARK_CHARS characters is
 * kept. One thread.
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_V8_V8_SCRIPT_H
#define HEARTH_AGENT_RUNTIME_CODE_V8_V8_SCRIPT_H

#include "agent/runtime/code/v8/v8_object.h"

enum {
	V8_MARK_CHARS = 8192,
	V8_MARKS = 4096, /* of all scripts: 32 M characters */
	V8_MARKED_SCRIPTS = 128,
	V8_SOURCE_MAX_BYTES = 12 << 20, /* of a source whose lines are counted */
	V8_WINDOWS = 16,
};

struct v8_mark {
	uint32_t line;	/* the number of ends of lines before it */
	uint32_t start; /* the position where its line begins */
};

/* What is known of the lines of scripts. Plain bytes; all zeros are a sound beginning. */
struct v8_marks {
	uint32_t mark_cnt, script_cnt;
	struct v8_marked {
		uint64_t source; /* word of the string */
		int32_t id;
		uint32_t chars, first, count; /* first, count: its marks; none: its lines cannot be counted */
	} scripts[V8_MARKED_SCRIPTS];
	struct v8_mark marks[V8_MARKS];
};

struct v8_script {
	uint64_t word, source, name;
	int32_t id;
	int32_t line, column; /* of its first character in what it is called by, from 0 on */
};

/* Reads the head of the Script @word. 0; -EBADMSG: it is none; -EFAULT, -EDQUOT. */
int v8_script_open(struct v8_heap *h, uint64_t word, struct v8_script *ret);

/* The lines of a piece of a source. */
struct v8_window {
	uint64_t source; /* 0: of none */
	uint32_t mark;
	uint32_t line, start; /* as the mark says */
	uint32_t start_cnt;
	uint16_t starts[V8_MARK_CHARS]; /* where the lines behind that begin, as distances from the piece's beginning */
};

/* The pieces that were needed last: the functions of a piece of code are in some places of their sources. */
struct v8_windows {
	struct v8_window *recent[V8_WINDOWS]; /* owned; the last one first; NULL: none */
};

void v8_windows_fini(struct v8_windows *w);

/* Finds line and column, from 1 on, of @position. 0; -ENODATA: the source is not there, too long, or not at one place;
 * -EBADMSG: the position is not in the source; -EFAULT, -EDQUOT, -ENOMEM. */
int v8_script_line(struct v8_heap *h, struct v8_marks *marks, struct v8_windows *w, const struct v8_script *s,
		   uint32_t position, uint32_t *line, uint32_t *column);

#endif
