/* SPDX-License-Identifier: Apache-2.0 */
/* Functions are those of .eh_frame_hdr. The calls were seen in gcc's output for Lua 5.1 to 5.5 and LuaJIT 2.1 (objdump -d).
 */
#include <Zydis/Zydis.h>

#include "agent/runtime/file/lua_code.h"
#include "agent/runtime/file/runtime_file.h"
#include "symbols/elf_image.h"

enum {
	MAX_FUNCTIONS = 256, /* that are looked at */
	MAX_FUNCTION_BYTES = 1 << 16,
	MAX_CALLS = 4, /* from lua_call(): luaD_call(), which may be in two, and the loop */
	LOOP_MIN_BYTES = 3072,
	VM_MIN_BYTES = 8192,
};

/* Functions that are reached, by the number of calls. */
struct reached {
	const struct elf_image *im;
	uint64_t addrs[MAX_FUNCTIONS];
	uint8_t calls[MAX_FUNCTIONS];
	uint32_t count;
	ZydisDecoder decoder;
};

static void reach(struct reached *r, uint64_t addr, uint8_t calls)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (r->addrs[i] == addr)
			return;
	if (r->count == MAX_FUNCTIONS)
		return;
	r->addrs[r->count] = addr;
	r->calls[r->count++] = calls;
}

/* Where a call or jump at @addr leads, if that is told. */
static uint64_t leads_to(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands, uint64_t addr)
{
	if ((insn->meta.category != ZYDIS_CATEGORY_CALL && insn->meta.category != ZYDIS_CATEGORY_UNCOND_BR &&
	     insn->meta.category != ZYDIS_CATEGORY_COND_BR) ||
	    operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return 0;
	return addr + insn->length + (uint64_t)operands[0].imm.value.s;
}

/* Reaches what is called, or jumped to, by the function [@start, @end). */
static void look_at(struct reached *r, uint64_t start, uint64_t end, uint8_t calls)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	const uint8_t *bytes = end - start <= MAX_FUNCTION_BYTES ? runtime_file_bytes(r->im, start, end - start) : NULL;

	for (uint64_t at = start; bytes && at < end; at += insn.length) {
		uint64_t to;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&r->decoder, bytes + (at - start), end - at, &insn, operands)))
			return;
		to = leads_to(&insn, operands, at);
		if (to && (to < start || to >= end))
			reach(r, to, calls + 1);
	}
}

/* Looks for the piece of code that is at least @min_bytes long, the largest that is reached from @call: of functions where
 * they begin, or (@in_middle) of pieces behind their beginning. */
static bool find(const struct elf_image *im, uint64_t call, bool in_middle, uint64_t min_bytes, struct lua_code *ret)
{
	struct reached r = { .im = im };

	*ret = (struct lua_code){ 0, 0 };
	ZydisDecoderInit(&r.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	reach(&r, call, 0);
	for (uint32_t i = 0; i < r.count; i++) {
		uint64_t start, end;

		if (!runtime_file_function(im, r.addrs[i], &start, &end))
			continue;
		if ((start != r.addrs[i]) == in_middle && end - start >= min_bytes && end - start > ret->end - ret->start)
			*ret = (struct lua_code){ start, end };
		if (start == r.addrs[i] && r.calls[i] < MAX_CALLS)
			look_at(&r, start, end, r.calls[i]);
	}
	return ret->start;
}

bool lua_code_loop(const struct elf_image *im, uint64_t call, struct lua_code *ret)
{
	return find(im, call, false, LOOP_MIN_BYTES, ret);
}

bool lua_code_vm(const struct elf_image *im, uint64_t call, struct lua_code *ret)
{
	return find(im, call, true, VM_MIN_BYTES, ret);
}
