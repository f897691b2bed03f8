/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How code without a name is shown. Frames stay unnamed in a capture and on the wire, with their addresses, so that names
 * can be given to them later; attributes beside them hold what is known instead, which is joined into a text for display:
 * all code of one function, of one program's generated code, or else of one module, is one line.
 */
#ifndef HEARTH_PROTO_UNNAMED_H
#define HEARTH_PROTO_UNNAMED_H

#include "base/buf.h"
#include "proto/profiles.h"

/* Attributes of a location without a function, integers: where its function begins, in the address space of the location's
 * address, and its length in bytes. */
#define CODE_START_KEY "hearth.code.start"
#define CODE_SIZE_KEY  "hearth.code.size"

/* Attribute of a location, a boolean: its line, and the inlined functions above it, are those of a place nearby. */
#define CODE_APPROXIMATE_KEY "hearth.code.line.approximate"

/* Attribute of a mapping of memory that holds generated code: the program it is of. */
#define CODE_PROCESS_KEY "process.executable.name"

/* The path that the agent gives a mapping of memory without a file. */
#define ANONYMOUS_PATH "//anon"

struct unnamed {
	struct str module;    /* base name of the mapping's file; "" when unknown */
	struct str process;   /* whose generated code it is; "" when unknown */
	uint64_t address;     /* 0: not known */
	uint64_t start, size; /* of the function; size 0: not known */
	bool is_generated;    /* code that a program made while it ran */
};

#define UNNAMED_NOTHING ((struct unnamed){ .module = STR(""), .process = STR("") })

/* Is the mapping of @path memory without a file, so that its code was generated? */
bool unnamed_is_generated(struct str path);

/* The facts known of the location @l of @p, which has no function. */
struct unnamed unnamed_of_location(const struct profiles *p, const struct profile_location *l);

/* Appends "module+0xstart..0xend", "[JIT code] process", "module (no symbols)" or "[unknown]". */
void unnamed_print(const struct unnamed *u, struct buf *out);

/* The inverse, also of "module+0xaddress" and "0xaddress": true when @text is such a text; parts point into it. */
bool unnamed_read(struct str text, struct unnamed *ret);

/* Advice on how to name the code that the program @process generates ("": not known which); a sentence's part. */
const char *unnamed_generated_advice(const char *process);

#endif
