/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process with an Erlang as small as can be, in the layout of OTP 25: a few atoms, the tables of modules,
 * one module with functions of all kinds of frames, and a piece of shared code. For tests and as a seed for the fuzzer.
 */
#ifndef HEARTH_TESTS_FAKE_BEAM_H
#define HEARTH_TESTS_FAKE_BEAM_H

#include <string.h>

#include "agent/runtime/code/beam/beam_state.h"
#include "agent/runtime/file/beam_facts.h"
#include "base/cleanup.h"

#define FAKE_BASE 0x7f0000000000ull
enum {
	FAKE_BYTES = 1 << 16,
	FAKE_CODE = 0x8000, /* offset of the memory for code */
	FAKE_CODE_BYTES = 0x4000,
	FAKE_MODULE = 0x8800,
	FAKE_FUNCTIONS = 96, /* in a header: OTP 25.2 */
	FAKE_MODULES = 4,
	FAKE_DATA_BYTES = 0x400, /* the emulator's variables begin at FAKE_BASE */
};

struct fake {
	uint8_t bytes[FAKE_BYTES];
	uint32_t used, atom_cnt;
	struct code_facts facts;
	uint64_t atoms; /* address of their segment */
	uint64_t table; /* of modules, the active one */
	uint64_t lines; /* the table of lines */
	uint64_t module_end, shared, exit;
	uint64_t function[3], after[3]; /* where their names stand, and where they end */
};

#include "tests/unit/agent/runtime/code/fake_memory.h"

static inline uint64_t fake_atom(struct fake *f, const char *text)
{
	uint64_t entry = fake_take(f, 48), at = fake_take(f, (uint32_t)strlen(text) + 1);

	memcpy(fake_at(f, at), text, strlen(text));
	fake_put(f, entry + 24, strlen(text), 2);
	fake_put(f, entry + 32, at, 8);
	fake_put(f, f->atoms + 8ul * f->atom_cnt, entry, 8);
	return (uint64_t)f->atom_cnt++ << BEAM_ATOM_BITS | BEAM_ATOM_TAG;
}

/* Puts a function's name and the place for breakpoints at *@at, and its @code behind. Returns where the name stands. */
static inline uint64_t fake_function(struct fake *f, uint64_t *at, uint64_t module, const char *name, uint64_t arity,
				     const uint8_t *code, uint32_t len)
{
	static const uint8_t jump[] = { 0xeb, 0x06 };
	uint64_t info = *at;

	fake_put(f, info + 16, module, 8);
	fake_put(f, info + 24, fake_atom(f, name), 8);
	fake_put(f, info + 32, arity, 8);
	memcpy(fake_at(f, info + BEAM_CODE_INFO_BYTES), jump, sizeof(jump));
	memcpy(fake_at(f, info + BEAM_CODE_INFO_BYTES + BEAM_PROLOGUE_BYTES), code, len);
	*at = (info + BEAM_CODE_INFO_BYTES + BEAM_PROLOGUE_BYTES + len + 7) & ~7ull;
	return info;
}

/* Where the code of function number @i begins. */
static inline uint64_t fake_code(const struct fake *f, int i)
{
	return f->function[i] + BEAM_CODE_INFO_BYTES + BEAM_PROLOGUE_BYTES;
}

static inline void fake_lines(struct fake *f, uint64_t header, uint64_t file)
{
	uint64_t files = fake_take(f, 16), places = fake_take(f, 64), locations = fake_take(f, 32);

	f->lines = fake_take(f, 64);
	fake_put(f, files, file, 8);
	fake_put(f, f->lines, files, 8);
	fake_put(f, f->lines + 8, 4, 4);
	fake_put(f, f->lines + 16, locations, 8);
	for (uint32_t i = 0; i <= 3; i++) /* two places of the first function, one of the others */
		fake_put(f, f->lines + 24 + 8 * i, places + (i ? 8 * (i + 1) : 0), 8);
	fake_put(f, places, f->function[0] - 3, 8); /* where its head was, before its name was aligned */
	fake_put(f, places + 8, fake_code(f, 0) + 9, 8);
	fake_put(f, places + 16, fake_code(f, 1), 8);
	fake_put(f, places + 24, fake_code(f, 2), 8);
	fake_put(f, locations, 10, 4);
	fake_put(f, locations + 4, 12, 4);
	fake_put(f, locations + 8, 1u << 24 | 7, 4);
	fake_put(f, locations + 12, 0, 4);
	fake_put(f, header + BEAM_LINE_TABLE, f->lines, 8);
}

/* The modules but for the one are ranges that lead to the same header. */
static inline void fake_tables(struct fake *f, uint64_t header)
{
	uint64_t variable = FAKE_BASE + 0x100, modules = fake_take(f, 16 * FAKE_MODULES);

	f->table = variable;
	fake_put(f, variable, modules, 8);
	fake_put(f, variable + 8, FAKE_MODULES, 8);
	fake_put(f, variable + 16, FAKE_MODULES, 8);
	fake_put(f, variable + 24, modules, 8);
	for (uint64_t i = 0; i + 1 < FAKE_MODULES; i++) { /* purged */
		fake_put(f, modules + 16 * i, FAKE_BASE + FAKE_CODE + 0x200 + 16 * i, 8);
		fake_put(f, modules + 16 * i + 8, FAKE_BASE + FAKE_CODE + 0x200 + 16 * i, 8);
	}
	fake_put(f, modules + 16 * (FAKE_MODULES - 1), header, 8);
	fake_put(f, modules + 16 * (FAKE_MODULES - 1) + 8, f->module_end, 8);
}

/* sub $16,%rsp; call; add $16,%rsp; ret: a frame. */
static const uint8_t fake_framed[] = { 0x48, 0x83, 0xec, 0x10, 0xe8, 0, 0, 0, 0, 0x90, 0x48, 0x83, 0xc4, 0x10, 0xc3 };
/* mov %rsp,%rbp; lea -0x80(%rbx),%rsp; call; mov %rbp,%rsp; ret: a call of C */
static const uint8_t fake_calling[] = { 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x63, 0x80, 0xe8, 0, 0, 0, 0, 0x48, 0x89, 0xec, 0xc3 };
/* sub $8,%rsp; lea -0x80(%rbx),%rsp; call; mov 0x58(%r13),%rsp; add $8,%rsp; ret: one that may look at the stack; and what
 * no path reaches, where a frame of 32 bytes stands: add $32,%rsp; ret; jmp to nowhere */
static const uint8_t fake_looking[] = { 0x48, 0x83, 0xec, 0x08, 0x48, 0x8d, 0x63, 0x80, 0xe8, 0,    0,
					0,    0,    0x49, 0x8b, 0x65, 0x58, 0x48, 0x83, 0xc4, 0x08, 0xc3,
					0x48, 0x83, 0xc4, 0x20, 0xc3, 0xff, 0x25, 0,	0,    0,    0 };

static inline void fake_make(struct fake *f)
{
	uint64_t header = FAKE_BASE + FAKE_MODULE, module, table = FAKE_BASE + 0x200, segments, at = header + 256;

	memset(f, 0, sizeof(*f));
	f->used = FAKE_DATA_BYTES;
	segments = fake_take(f, 64);
	f->atoms = fake_take(f, 512);
	fake_put(f, segments, f->atoms, 8);
	fake_put(f, table + 120, segments, 8);
	fake_atom(f, "false");
	module = fake_atom(f, "shop");
	f->function[0] = fake_function(f, &at, module, "sell", 2, fake_framed, sizeof(fake_framed));
	f->after[0] = at;
	f->function[1] = fake_function(f, &at, module, "-sell/2-fun-0-", 1, fake_calling, sizeof(fake_calling));
	f->after[1] = at;
	f->function[2] = fake_function(f, &at, module, "count", 0, fake_looking, sizeof(fake_looking));
	f->after[2] = f->module_end = at;
	fake_put(f, header, 3, 8);
	for (uint32_t i = 0; i < 3; i++)
		fake_put(f, header + FAKE_FUNCTIONS + 8ul * i, f->function[i], 8);
	fake_put(f, header + FAKE_FUNCTIONS + 24, at, 8);
	fake_lines(f, header, fake_atom(f, "lib/till.erl"));
	fake_tables(f, header);
	at = FAKE_BASE + FAKE_CODE + 0x40;
	f->exit = fake_function(f, &at, fake_atom(f, "erts_beamasm"), "normal_exit", 0, fake_framed, sizeof(fake_framed));
	fake_put(f, FAKE_BASE + 0x10, f->exit + BEAM_CODE_INFO_BYTES, 8);
	f->facts.id = CODE_BEAM;
	f->facts.fact[BEAM_FACT_ATOM_TABLE] = table - FAKE_BASE;
	f->facts.fact[BEAM_FACT_ACTIVE_CODE] = 0x18;
	f->facts.fact[BEAM_FACT_NORMAL_EXIT] = 0x10;
	f->facts.fact[BEAM_FACT_FRAME_LAYOUT] = 0x20;
	f->facts.fact[BEAM_FACT_DATA_START] = 0;
	f->facts.fact[BEAM_FACT_DATA_END] = FAKE_DATA_BYTES;
}

#endif
