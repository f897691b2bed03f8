/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at one instruction, or at the lengths of several; what they do to a frame is state_x86_64.c's. Also has what
 * agent/rows/code/state.h declares of padding, traps and calls. */
#include "agent/rows/code/insn_x86_64.h"
#include "agent/rows/code/state.h"

const ZydisDecoder *insn_decoder(void)
{
	static ZydisDecoder decoder;
	static bool is_made;

	if (!is_made)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	is_made = true;
	return &decoder;
}

uint32_t insn_bytes(const uint8_t *code, size_t len)
{
	ZydisDecodedInstruction insn;

	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(insn_decoder(), NULL, code, len, &insn)) ? insn.length : 0;
}

bool insn_may_begin(const uint8_t *code, uint64_t off, uint64_t len)
{
	enum { WAYS = 16, REACH = 64 };
	int arrive = 0, pass = 0;

	if (off < REACH)
		return true;
	for (uint64_t from = off - REACH; from < off - REACH + WAYS; from++) {
		uint64_t at = from;
		uint32_t bytes = 1;

		for (; at < off && bytes; at += bytes)
			bytes = insn_bytes(code + at, len - at);
		arrive += at == off && bytes;
		pass += at > off;
	}
	return arrive >= pass;
}

uint32_t code_padding_bytes(const uint8_t *code, size_t len)
{
	ZydisDecodedInstruction insn;

	if (len && code[0] == 0 && (len == 1 || code[1] == 0)) /* an instruction, but not of sense */
		return 1;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(insn_decoder(), NULL, code, len, &insn)) ||
	    (insn.mnemonic != ZYDIS_MNEMONIC_NOP && insn.mnemonic != ZYDIS_MNEMONIC_INT3))
		return 0;
	return insn.length;
}

static bool is_trap(ZydisMnemonic mnemonic)
{
	return mnemonic == ZYDIS_MNEMONIC_UD0 || mnemonic == ZYDIS_MNEMONIC_UD1 || mnemonic == ZYDIS_MNEMONIC_UD2 ||
	       mnemonic == ZYDIS_MNEMONIC_INT3 || mnemonic == ZYDIS_MNEMONIC_HLT;
}

uint32_t code_trap_bytes(const uint8_t *code, size_t len)
{
	ZydisDecodedInstruction insn;

	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(insn_decoder(), NULL, code, len, &insn)) && is_trap(insn.mnemonic)
		       ? insn.length
		       : 0;
}

bool code_is_call(const uint8_t *code, size_t len)
{
	ZydisDecodedInstruction insn;

	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(insn_decoder(), NULL, code, len, &insn)) && insn.length == len &&
	       insn.meta.category == ZYDIS_CATEGORY_CALL;
}
