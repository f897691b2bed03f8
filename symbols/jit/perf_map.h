/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf maps: text files in which a program says, a line each, what code it made: "START SIZE name", both in hex (Linux
 * tools/perf/Documentation/jit-interface.txt). They grow while the program runs and are read from where the last read
 * ended; one that was written anew is read from its beginning. The later line wins. A line without its newline is not whole
 * yet and is left for the next time. Leaf module.
 */
#ifndef HEARTH_SYMBOLS_JIT_PERF_MAP_H
#define HEARTH_SYMBOLS_JIT_PERF_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "symbols/jit/jit_code.h"

enum {
	PERF_MAP_MAX_BYTES = 256 << 20, /* of a file: what is behind is not read */
	PERF_MAP_MAX_LINE_BYTES = 8192,
	PERF_MAP_MARK_BYTES = 64,
};

/* How far a map was read. Starts zeroed. */
struct perf_map {
	uint64_t offset; /* of the first line not read yet */
	uint64_t lines;
	uint64_t malformed; /* lines that are none: no numbers, no name, an absurd range, control characters, too long */
	bool is_inside;	    /* of a line that is too long */
	uint8_t mark_len;   /* what stood right before the offset: other bytes there are another file */
	uint8_t mark[PERF_MAP_MARK_BYTES];
};

/*
 * Adds to @code what has come into the file @fd, at most about @max_bytes of it; ranges count since @time_ns. 1: there is
 * more; 0: the end was reached; -EFBIG: what follows will not be read; -ENOSPC: @code is full; another -errno.
 */
int perf_map_read(struct perf_map *m, int fd, uint64_t time_ns, uint64_t max_bytes, struct jit_code *code);

/* One line without its newline. 0 with start, end and name, or -EBADMSG. */
int perf_map_parse_line(const char *line, size_t len, struct jit_function *ret);

#endif
