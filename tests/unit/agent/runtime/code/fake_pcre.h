/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process that compiled regular expressions by PCRE2: two chunks of sljit's, one behind the other, as in
 * memory of Linux. The first has a free block, one in use, and a free one; the second two in use. For tests and the fuzzer.
 */
#ifndef HEARTH_TESTS_FAKE_PCRE_H
#define HEARTH_TESTS_FAKE_PCRE_H

#include <string.h>

#include "agent/runtime/code/code_reader.h"
#include "base/cleanup.h"

#define FAKE_BASE 0x7f0000000000ull
enum {
	FAKE_CHUNK = 64 << 10,
	FAKE_BYTES = 2 * FAKE_CHUNK,
	FAKE_HEAD = 16,
	FAKE_FIRST = 0x9000, /* the block in use of the first chunk */
	FAKE_SECOND = FAKE_CHUNK,
	FAKE_THIRD = FAKE_CHUNK + 0x200,
	FAKE_BLOCK = 0x200, /* bytes of blocks in use, but the last */
};

struct fake {
	uint8_t bytes[FAKE_BYTES];
	uint32_t used;
	struct code_facts facts;
};

#include "tests/unit/agent/runtime/code/fake_memory.h"

/* Offsets of instructions in the function below. */
enum {
	IN_PUSHES = 3,	     /* two registers are pushed */
	IN_FRAME = 18,	     /* rsp was moved */
	IN_CALL = 26,	     /* of IN_CALLED */
	IN_END = 32,	     /* the way out begins */
	IN_POPS = 39,	     /* ... local variables are gone */
	IN_RETURN = 47,	     /* ... and all that was pushed */
	IN_CALLED = 48,	     /* its return address is on the stack */
	IN_CALLED_NEXT = 49, /* ... in a register */
	IN_CALLED_RET = 51,  /* ... on the stack again */
	IN_OTHER = 52,	     /* is called, too */
	IN_OTHER_NEXT = 55,  /* its return address is in a variable */
	IN_BEHIND = 57,	     /* is jumped to, nobody knows from where */
	IN_OTHER_CALL = 58,  /* of IN_OTHER */
	IN_CODE_END = 63,
};

enum { FAKE_FRAME = 0x80 };

/* What PCRE2 makes in form: the prologue; two calls within; the way out; what is called. */
static inline void fake_function(struct fake *f, uint64_t at)
{
	static const uint8_t code[] = {
		0x53, 0x41,
		0x57, 0x41,
		0x56, 0x41,
		0x55, 0x55, /* push rbx, r15, r14, r13, rbp */
		0x48, 0x89,
		0xfb, /* mov rbx, rdi */
		0x48, 0x81,
		0xec, FAKE_FRAME,
		0,    0,
		0,    /* sub rsp, FAKE_FRAME */
		0x90, /* nop */
		0x48, 0x89,
		0x44, 0x24,
		0x48,	    /* mov [rsp + 0x48], rax */
		0x90, 0x90, /* nop */
		0xe8, IN_CALLED - (IN_CALL + 5),
		0,    0,
		0,    /* call IN_CALLED */
		0x90, /* nop */
		0x48, 0x81,
		0xc4, FAKE_FRAME,
		0,    0,
		0, /* add rsp, FAKE_FRAME */
		0x5d, 0x41,
		0x5d, 0x41,
		0x5e, 0x41,
		0x5f, 0x5b, /* pop rbp, r13, r14, r15, rbx */
	};
	static const uint8_t more[] = {
		0xc3, /* ret */
		0x59, 0x90, 0x51,
		0xc3, /* pop rcx; nop; push rcx; ret */
		0x8f, 0x04, 0x24,
		0xff, 0xe1, /* pop [rsp]; jmp rcx */
		0x90, 0xe8, (uint8_t)(IN_OTHER - IN_CODE_END),
		0xff, 0xff, 0xff, /* nop; call IN_OTHER */
		0x06,		  /* no instruction */
	};

	memcpy(fake_at(f, at), code, sizeof(code));
	memcpy(fake_at(f, at + sizeof(code)), more, sizeof(more));
}

static inline void fake_head(struct fake *f, uint64_t at, uint64_t size, uint64_t before)
{
	fake_put(f, FAKE_BASE + at, size, 8);
	fake_put(f, FAKE_BASE + at + 8, before, 8);
}

static inline void fake_free(struct fake *f, uint64_t at, uint64_t size, uint64_t before)
{
	fake_head(f, at, 0, before);
	fake_put(f, FAKE_BASE + at + 32, size, 8);
}

static inline void fake_make(struct fake *f)
{
	const uint64_t rest = FAKE_CHUNK - FAKE_HEAD;

	memset(f, 0, sizeof(*f));
	f->facts.id = CODE_PCRE;
	fake_free(f, 0, FAKE_FIRST, 0);
	fake_head(f, FAKE_FIRST, FAKE_BLOCK, FAKE_FIRST);
	fake_function(f, FAKE_BASE + FAKE_FIRST + FAKE_HEAD);
	fake_free(f, FAKE_FIRST + FAKE_BLOCK, rest - FAKE_FIRST - FAKE_BLOCK, FAKE_BLOCK);
	fake_head(f, rest, 1, rest - FAKE_FIRST - FAKE_BLOCK);
	fake_head(f, FAKE_SECOND, FAKE_BLOCK, 0);
	fake_function(f, FAKE_BASE + FAKE_SECOND + FAKE_HEAD);
	fake_head(f, FAKE_THIRD, rest - FAKE_BLOCK, FAKE_BLOCK);
	fake_function(f, FAKE_BASE + FAKE_THIRD + FAKE_HEAD);
	fake_head(f, FAKE_CHUNK + rest, 1, rest - FAKE_BLOCK);
}

#endif
