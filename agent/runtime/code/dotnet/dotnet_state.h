/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the reader of .NET's code (CoreCLR), for its own files. The runtime keeps a map from addresses to sections of
 * memory: heaps of compiled code, images that were compiled ahead (ReadyToRun), and stubs. All compiled code has entries in
 * the form of Windows, {begin, end, unwind information}, one for each method and for each of its handlers of exceptions,
 * which are functions of their own: a block is such an entry.
 *
 * Layouts are of runtime/src/coreclr/vm: codeman.h, nibblemapmacros.h, method.hpp, methodtable.h, readytoruninfo.h; sections
 * and code heaps are alike in .NET 8 to 10, the rest is a table by release (dotnet_blocks.c).
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_DOTNET_STATE_H
#define HEARTH_AGENT_RUNTIME_CODE_DOTNET_STATE_H

#include <errno.h>

#include "agent/runtime/code/code_reader.h"

enum dotnet_kind {
	DOTNET_METHOD,	/* an entry of a compiled method */
	DOTNET_STUB,	/* code of the runtime that ends in a jump, and has no frame */
	DOTNET_NO_NAME, /* an entry of an image for which the runtime has no method */
};

/* Words of a block. */
enum { DOTNET_OWN_METHOD, DOTNET_OWN_UNWIND };

enum { DOTNET_MAX_NAME = 1024 };

/* Bytes into structures. */
struct dotnet_layout {
	uint8_t release;	  /* of .NET */
	uint16_t module_file;	  /* Module: PEAssembly, if its image may be known by that alone; 0: none */
	uint16_t module_base;	  /* Module: address of its image */
	uint16_t module_ready;	  /* Module: ReadyToRunInfo */
	uint16_t ready_functions; /* ReadyToRunInfo: its entries; their number follows */
	uint16_t ready_methods;	  /* ReadyToRunInfo: the buckets of its map from entry points to methods */
	uint16_t dynamic_name;	  /* DynamicMethodDesc: its name */
};

struct dotnet {
	uint64_t map;	 /* from addresses to sections */
	uint32_t layout; /* in dotnet_layouts */
	uint32_t given_cnt;
	struct code_range given[CODE_RANGES]; /* memory without a file, where helpers of the runtime are */
};

/* The address of the image of @module; 0: it has none. */
uint64_t dotnet_module_base(const struct dotnet *s, struct code_memory *m, uint64_t module);

const struct dotnet_layout *dotnet_layout_of(const struct dotnet *s);

/* What an error of @m means: @otherwise, or that the budget is spent. */
static inline int dotnet_unreadable(const struct code_memory *m, int otherwise)
{
	return m->is_spent ? -EDQUOT : otherwise;
}

int dotnet_block(void *state, struct code_memory *m, uint64_t pc, struct code_block *ret);
int dotnet_rows(void *state, struct code_memory *m, const struct code_block *b, struct row **ret, size_t *count_ret);
int dotnet_names(void *state, struct code_memory *m, const struct code_block *b, struct block_names *n);

/* --- metadata (ECMA-335, partition II): dotnet_metadata.c --- */

/* Puts the name of the method with the number @method (its row, from 1) of the image at @base into @text, as a person
 * writes it: Namespace.Type.Method. 0; -EBADMSG: there is none; or as code_read(). */
int dotnet_metadata_name(struct code_memory *m, uint64_t base, uint32_t method, char text[static DOTNET_MAX_NAME]);

/* --- names as people write them: dotnet_text.c --- */

enum { DOTNET_MAX_DEPTH = 8, DOTNET_MAX_PART = 256 };

struct dotnet_text {
	char namespace[DOTNET_MAX_PART];
	char types[DOTNET_MAX_DEPTH][DOTNET_MAX_PART]; /* the outermost first, with their parameters */
	uint32_t depth;
	char method[DOTNET_MAX_PART];
};

/* Writes Namespace.Type.Method, with what compilers made of lambdas, local functions, iterators and async methods named
 * after the function that they stand in. */
void dotnet_text_write(const struct dotnet_text *t, char text[static DOTNET_MAX_NAME]);

#endif
