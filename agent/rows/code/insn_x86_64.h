/* SPDX-License-Identifier: Apache-2.0 */
/* Single x86-64 instructions, decoded by Zydis. Leaf module, no state of its own but the decoder, which is made once. */
#ifndef HEARTH_AGENT_ROWS_CODE_INSN_X86_64_H
#define HEARTH_AGENT_ROWS_CODE_INSN_X86_64_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The decoder of 64-bit code; never NULL. */
const ZydisDecoder *insn_decoder(void);

/* The length in bytes of the instruction at @code, of which @len_bytes can be read; 0: there is none. */
uint32_t insn_bytes(const uint8_t *code, size_t len_bytes);

/*
 * May an instruction begin at @code[@off], of @len_bytes? The instructions before it tell: whoever reads them from a wrong
 * byte on falls into step with the right ones after a few, so that most ways from somewhat earlier lead there, or past it.
 */
bool insn_may_begin(const uint8_t *code, uint64_t off, uint64_t len_bytes);

#endif
