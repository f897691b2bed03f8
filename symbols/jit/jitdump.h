/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitdumps: binary files in which a program says what code it made, when, and of which source lines (Linux
 * tools/perf/Documentation/jitdump-specification.txt, version 1). They grow while the program runs and are read from where
 * the last read ended. The records of code loaded and moved and their line tables are used; the code itself and unwind
 * tables are passed over. Leaf module.
 */
#ifndef HEARTH_SYMBOLS_JIT_JITDUMP_H
#define HEARTH_SYMBOLS_JIT_JITDUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "symbols/jit/jit_code.h"

enum { JITDUMP_MAX_LINES_BYTES = 4 << 20 /* of one function's line table: a larger one is passed over */ };

/* How far a dump was read. Starts zeroed; jitdump_fini at the end. */
struct jitdump {
	uint64_t offset; /* of the first record not read yet; 0: the header was not */
	uint64_t records;
	uint64_t malformed; /* records whose insides make no sense; they are passed over */
	bool has_no_times;  /* its clock is not CLOCK_MONOTONIC: the later record wins */
	/* The process that reads it, by the pid it has for itself, and when that started, CLOCK_MONOTONIC; 0: not known.
	 * Older records of that pid are from an earlier process with the same pid; they are passed over. */
	uint32_t own_pid;
	uint64_t start_ns;
	uint64_t older;	     /* records passed over for that */
	uint32_t pid;	     /* of the header */
	uint64_t lines_addr; /* the code that @lines, a record of line numbers, is of */
	struct buf lines;
};

void jitdump_fini(struct jitdump *d);

/*
 * Adds to @code what has come into the file @fd, at most about @max_bytes of it. @now_ns: times of records behind this one
 * show another clock. 1: there is more; 0: the end was reached, or a record that is not whole yet; -EBADMSG: broken,
 * -EPROTONOSUPPORT: of another byte order or version: nothing more can be read; -ENOSPC: @code is full; another -errno.
 */
int jitdump_read(struct jitdump *d, int fd, uint64_t now_ns, uint64_t max_bytes, struct jit_code *code);

#endif
