/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of runtimes whose compiled code has its frames on the native stack (HotSpot, V8, BEAM): where such a process keeps
 * code, which piece of code is at an address, how its frames are unwound, and the functions that it is made of. A reader is
 * a const struct in the table CODE_READERS. It works in the helper process on nothing but the process's memory, through
 * code_memory.h, and what an ELF file told (struct code_facts in agent/runtime/file/runtime_file.h); so it knows neither
 * files nor the agent. Nothing in that memory is believed: it belongs to a stranger and changes meanwhile. Budgets end
 * loops.
 *
 * Words. A range is memory that the runtime reserved for code. A block is one piece of code in it with one set of rows: a
 * compiled function, a stub, a handler of a bytecode. A token is a word of memory that has another value once the block is
 * gone or another one stands there. Addresses are those of the process.
 *
 * One thread.
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_CODE_READER_H
#define HEARTH_AGENT_RUNTIME_CODE_CODE_READER_H

#include <stddef.h>
#include <stdint.h>

#include "agent/rows/row.h"
#include "agent/runtime/code/code_memory.h"
#include "agent/runtime/file/runtime_file.h"
#include "symbols/script/block_names.h"

enum {
	CODE_RANGES = 16,
	CODE_TOKENS = 4,
	CODE_CAPTURES = 4, /* kinds of frames with captures that a runtime has */
	CODE_CAPTURE_WORDS = 4,
	CODE_OWN_WORDS = 12,
	CODE_STATE_BYTES = 64 << 10,	/* of a reader's state at most */
	CODE_BLOCK_MAX_BYTES = 4 << 20, /* of a block; a longer one makes no sense */
	CODE_BLOCK_MAX_ROWS = 65536,
};

struct code_range {
	uint64_t start, end;
};

/* The block is what it was as long as (word at @addr & @mask) == @value. The first one with @mask 0 ends an array of them.
 */
struct code_token {
	uint64_t addr, value, mask;
};

/* The whole word at @addr. */
static inline struct code_token code_token_at(struct code_memory *m, uint64_t addr)
{
	return (struct code_token){ .addr = addr, .value = code_read_u64(m, addr), .mask = UINT64_MAX };
}

struct code_block {
	uint64_t start, end; /* the code to which all of this refers; holds the address that was asked for */
	struct code_token tokens[CODE_TOKENS];
	uint32_t kind; /* the reader's own, as are the words by which block() tells rows() and names() */
	uint32_t pad;
	uint64_t own[CODE_OWN_WORDS];
};

/*
 * A word that goes with a frame whose row names this capture (struct row's capture), as the frame's function cannot be told
 * by its address. It stands at @offset bytes from the frame pointer; in the frame where the thread stands, it is in register
 * @leaf_reg (DWARF's number; -1: it is in memory there, too). Where @follow is not 0 the word itself is a pointer, and the
 * one that is @follow bytes behind there goes in its place if it can be read at once: only when the kernel walks.
 */
struct code_capture_word {
	int16_t offset;
	int8_t leaf_reg;
	int16_t follow;
};

struct code_capture {
	uint8_t count; /* of words; 0: the runtime has no such capture */
	struct code_capture_word words[CODE_CAPTURE_WORDS];
};

/* How the function of captured words is known from now on. */
struct captured_function {
	uint64_t key; /* equal for all captures of the function, while the tokens hold; not 0 */
	struct code_token tokens[CODE_TOKENS];
	/* The place in it (block_names.h) is the low 32 bits of (word >> shift) - base if they are below bytes; else it is
	 * not known: place 0. Word number CODE_CAPTURE_WORDS is the frame's address. */
	uint64_t base, bytes;
	uint8_t word, shift;
	uint8_t pad[6];
};

struct code_reader {
	const char *name;
	const char *frame_type; /* a word of OpenTelemetry's profile.frame.type */
	bool needs_memory;	/* all code is in executable memory without a file: a process that has none is not asked */
	size_t state_bytes; /* of the reader's state of one process: at most CODE_STATE_BYTES, plain bytes, no pointers */

	/* Why functions of a runtime with @facts stay unknown, in words for users; returns NULL: the reader knows how it
	 * looks. NULL: it finds out in the process. */
	const char *(*lacks)(const struct code_facts *facts);

	/*
	 * Finds out how the runtime looks in the process, whose file with the @facts is mapped at @bias (address - bias =
	 * ELF virtual address), and keeps that in @state, which is all zeros. 0; -EAGAIN: the runtime has not begun yet (try
	 * again later); -ENOTSUP: it is of a form that the reader does not know; -EFAULT, -EDQUOT.
	 */
	int (*open)(void *state, struct code_memory *m, const struct code_facts *facts, uint64_t bias);

	/* The ranges there are now, disjoint, in any order; their number, or -errno. Ranges may come later, and do not
	 * shrink. @ranges comes with the @given executable pieces of memory without a file that there are. */
	int (*ranges)(void *state, struct code_memory *m, uint32_t given, struct code_range ranges[static CODE_RANGES]);

	/* The captures by which rows() numbers them, from 1 on: captures[n - 1]. NULL: there are none. A runtime whose file
	 * has rows with captures (its interpreter's) needs no @state for them: NULL. */
	void (*captures)(const void *state, const struct code_facts *facts,
			 struct code_capture captures[static CODE_CAPTURES]);

	/* Finds the block at @pc. 0; -ENOENT: no code is there now; -EBADMSG: nothing of sense is; -EFAULT, -EDQUOT. */
	int (*block)(void *state, struct code_memory *m, uint64_t pc, struct code_block *ret);

	/*
	 * Makes the rows of @b, in addresses of the process, sorted, disjoint, inside of it, at most CODE_BLOCK_MAX_ROWS:
	 * *@ret (to be freed). Rows are looked up for return addresses minus 1. Code about which nothing is known has no
	 * row. 0 or -errno, as above, or -ENOMEM.
	 */
	int (*rows)(void *state, struct code_memory *m, const struct code_block *b, struct row **ret, size_t *count_ret);

	/* Tells @n the functions of @b; places are offsets from b->start. -ENODATA: it has none. 0 or -errno. */
	int (*names)(void *state, struct code_memory *m, const struct code_block *b, struct block_names *n);

	/* Does the same for the function that @words, of the capture number @capture, belong to, and says how it is known.
	 * NULL: the runtime has no captures. */
	int (*function)(void *state, struct code_memory *m, uint32_t capture,
			const uint64_t words[static CODE_CAPTURE_WORDS], struct captured_function *ret,
			struct block_names *n);
};

/* All readers, in the order of enum code_id (agent/runtime/file/runtime_file.h). Most know x86-64's code alone. */
#ifdef __x86_64__
#define CODE_READERS(READER)               \
	READER(CODE_HOTSPOT, code_hotspot) \
	READER(CODE_V8, code_v8)           \
	READER(CODE_BEAM, code_beam)       \
	READER(CODE_DOTNET, code_dotnet)   \
	READER(CODE_GDB_JIT, code_gdb_jit) \
	READER(CODE_PCRE, code_pcre)
#else
#define CODE_READERS(READER) READER(CODE_HOTSPOT, code_hotspot)
#endif

#define CODE_READER_DECLARED(id, name) extern const struct code_reader name;
CODE_READERS(CODE_READER_DECLARED)
#undef CODE_READER_DECLARED

/* The reader of the runtime @id (enum code_id); NULL: there is none. */
const struct code_reader *code_reader_of(uint32_t id);

#endif
