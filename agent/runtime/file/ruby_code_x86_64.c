/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that are looked at were seen in gcc's output for Ruby 2.5 to 4.0 (objdump -d --disassemble=rb_id2str). */
#include <elf.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "agent/runtime/file/ruby_code.h"
#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"

enum {
	MAX_FUNCTION_BYTES = 4096, /* of one that is looked at */
	MAX_CALLED = 16,
	MAX_WORDS = 32,
	BODY_MIN_BYTES = 8192, /* vm_exec_core() has 16,000 and more */
};

struct code {
	const struct elf_image *im;
	const uint8_t *bytes;
	uint64_t start, at, end; /* addresses */
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* Begins to look at the function [@start, @end). */
static bool code_open(struct code *c, const struct elf_image *im, uint64_t start, uint64_t end)
{
	c->im = im;
	c->start = c->at = start;
	c->end = end - start < MAX_FUNCTION_BYTES ? end : start + MAX_FUNCTION_BYTES;
	c->bytes = end > start ? runtime_file_bytes(im, start, c->end - start) : NULL;
	ZydisDecoderInit(&c->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return c->bytes;
}

/* Goes to the next instruction; its address is c->at less its length. */
static bool code_next(struct code *c)
{
	if (c->at >= c->end || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&c->decoder, c->bytes + (c->at - c->start),
								    c->end - c->at, &c->insn, c->operands)))
		return false;
	c->at += c->insn.length;
	return true;
}

/* Where a call or jump leads that leaves the function; 0: it does not, or that is not told. */
static uint64_t leaves_to(const struct code *c)
{
	uint64_t to;

	if (!(c->insn.meta.category == ZYDIS_CATEGORY_CALL || c->insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR) ||
	    c->operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return 0;
	to = c->at + (uint64_t)c->operands[0].imm.value.s;
	return to >= c->start && to < c->end ? 0 : to;
}

/* The address that operand @i has relative to the instruction; 0: none. */
static uint64_t relative_address(const struct code *c, int i)
{
	const ZydisDecodedOperand *operand = &c->operands[i];

	if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY || operand->mem.base != ZYDIS_REGISTER_RIP)
		return 0;
	return c->at + (uint64_t)operand->mem.disp.value;
}

/* --- the loop --- */

/* rb_iseq_eval() ends with a call of the loop: a jump behind its frame's end, or the last call before it returns. */
static uint64_t find_loop(const struct elf_image *im)
{
	struct runtime_symbol symbol;
	uint64_t last = 0, to;
	struct code c;

	if (runtime_file_symbol(im, "rb_iseq_eval", &symbol) ||
	    !code_open(&c, im, symbol.addr, symbol.addr + symbol.size_bytes))
		return 0;
	while (code_next(&c)) {
		if (c.insn.meta.category == ZYDIS_CATEGORY_RET)
			return last;
		to = leaves_to(&c);
		if (to && c.insn.meta.category != ZYDIS_CATEGORY_CALL)
			return to;
		if (to)
			last = to;
	}
	return 0;
}

/* What is called by the loop: the body is the largest. And whether the loop notes an address of its own for a jump. */
static void look_at_loop(const struct elf_image *im, struct ruby_code *ret)
{
	uint64_t to, end, addr;
	struct code c;

	if (!code_open(&c, im, ret->loop.start, ret->loop.end))
		return;
	while (code_next(&c)) {
		addr = c.insn.mnemonic == ZYDIS_MNEMONIC_LEA ? relative_address(&c, 1) : 0;
		ret->has_own_jump |= addr > ret->loop.start && addr < ret->loop.end;
		to = c.insn.meta.category == ZYDIS_CATEGORY_CALL ? leaves_to(&c) : 0;
		end = to ? runtime_file_function_end(im, to) : 0;
		if (end > to && end - to >= BODY_MIN_BYTES && end - to > ret->body.end - ret->body.start) {
			ret->body.start = to;
			ret->body.end = end;
		}
	}
}

/* --- symbols --- */

/* What functions read of the data by its address. */
struct words {
	uint64_t half[MAX_WORDS], whole[MAX_WORDS]; /* of four bytes, of eight */
	uint32_t half_cnt, whole_cnt;
	uint64_t called[MAX_CALLED];
	uint32_t called_cnt;
};

static void look_at_words(const struct elf_image *im, uint64_t start, uint64_t end, struct words *w)
{
	struct code c;

	if (!code_open(&c, im, start, end))
		return;
	while (code_next(&c)) {
		uint64_t to = leaves_to(&c);

		if (to && w->called_cnt < MAX_CALLED)
			w->called[w->called_cnt++] = to;
		for (int i = 0; i < c.insn.operand_count_visible; i++) {
			uint64_t addr = relative_address(&c, i);

			if (addr && c.operands[i].size == 32 && w->half_cnt < MAX_WORDS)
				w->half[w->half_cnt++] = addr;
			else if (addr && c.operands[i].size == 64 && w->whole_cnt < MAX_WORDS)
				w->whole[w->whole_cnt++] = addr;
		}
	}
}

/* rb_id2str(), or what it calls, compares with the largest number, and takes the array 16 bytes behind that (symbol.c:
 * get_id_serial_entry(); rb_symbols_t). */
static uint64_t find_symbols(const struct elf_image *im)
{
	enum { IDS_BEHIND = 16 };
	struct runtime_symbol symbol;
	struct words w = { 0 };
	uint32_t direct;

	if (runtime_file_symbol(im, "rb_id2str", &symbol))
		return 0;
	look_at_words(im, symbol.addr, symbol.addr + symbol.size_bytes, &w);
	direct = w.called_cnt;
	for (uint32_t i = 0; i < direct; i++)
		look_at_words(im, w.called[i], runtime_file_function_end(im, w.called[i]), &w);
	for (uint32_t i = 0; i < w.half_cnt; i++)
		for (uint32_t k = 0; k < w.whole_cnt; k++)
			if (w.whole[k] == w.half[i] + IDS_BEHIND)
				return w.whole[k];
	return 0;
}

bool ruby_code_read(const struct elf_image *im, struct ruby_code *ret)
{
	struct runtime_symbol symbol;

	memset(ret, 0, sizeof(*ret));
	if (!runtime_file_symbol(im, "rb_vm_exec", &symbol)) {
		ret->loop.start = symbol.addr;
		ret->loop.end = symbol.addr + symbol.size_bytes;
	} else {
		ret->loop.start = find_loop(im);
		ret->loop.end = ret->loop.start ? runtime_file_function_end(im, ret->loop.start) : 0;
	}
	if (ret->loop.end <= ret->loop.start)
		return false;
	look_at_loop(im, ret);
	ret->symbols = find_symbols(im);
	return true;
}
