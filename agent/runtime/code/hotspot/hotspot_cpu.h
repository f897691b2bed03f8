/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The things about HotSpot's code that depend on the CPU: instructions that it makes, and registers and frames of its
 * interpreter. hotspot_code_CPU.c and hotspot_interpreter_CPU.c have them. Only files of this folder include this.
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_HOTSPOT_CPU_H
#define HEARTH_AGENT_RUNTIME_CODE_HOTSPOT_CPU_H

#include "agent/runtime/code/hotspot/hotspot_state.h"

/* Where the code of a codelet begins: CodeEntryAlignment of src/hotspot/cpu/{x86,aarch64}/globals_*.hpp. */
enum { HOTSPOT_CODELET_ALIGN = CPU_HAS_LR ? 64 : 32 };

/* --- hotspot_code_CPU.c --- */

/* How long the call is that ends at @code[@end], 0: none does, with the address that it calls (0: not known). @code[0] is at
 * @addr. */
uint32_t hotspot_call_bytes(const uint8_t *code, uint64_t end, uint64_t addr, uint64_t *target);

/* How many bytes of the entry at @code are written over when the method is not to be entered any more; 0: they are not.
 * *@is_bare: there is no frame behind them yet. */
uint32_t hotspot_patched_bytes(const uint8_t *code, size_t len, bool *is_bare);

/* Where the trampoline at @code, for calls that do not reach further, jumps to; 0: it is none. */
uint64_t hotspot_trampoline_target(const uint8_t *code, size_t len);

/* Does a function with a frame pointer begin at @code? */
bool hotspot_makes_frame(const uint8_t *code, size_t len);

/* Does the code at @code work in a frame that stands already, before it makes one: that of the stub that jumps to it? */
bool hotspot_begins_in_frame(const uint8_t *code, size_t len);

/* Puts the rule of an adapter's first part, of which a register tells the caller's sp, into @row, but for its range. Returns
 * how long it is; 0: nothing does. */
uint32_t hotspot_adapter_row(const struct hotspot *s, const uint8_t *code, size_t len, struct row *row);

/*
 * Looks for the return barrier in the stubs @code: a virtual thread's outermost frame on a carrier's stack returns there
 * when its callers are still in the heap. The code behind it puts sp back to the carrier's record of the virtual thread
 * (ContinuationEntry) and brings some of them. Returns the first one's offset from @from on, with the bytes of its first
 * instruction, which sets sp; @len: there is none.
 */
uint64_t hotspot_find_barrier(const uint8_t *code, uint64_t len, uint64_t from, uint32_t *bytes);

/* Does the stub at @code begin by dropping its return address, since a frame of the heap will be returned to in place of its
 * caller? The bytes of that instruction; 0: it does not. */
uint32_t hotspot_drops_return_bytes(const uint8_t *code, uint64_t len);

/* --- hotspot_interpreter_CPU.c --- */

/* Places in the interpreter's frames, from the frame pointer, and registers (DWARF's numbers). */
struct hotspot_interpreter {
	int16_t method, bcp;
	int8_t method_reg; /* of the method that is entered */
	int8_t bcp_reg;	   /* in the innermost frame, which runs bytecodes */
};

struct hotspot_interpreter hotspot_interpreter_of(const struct hotspot *s);

enum { CODELET_SENDER_SP = -8 }; /* where the caller's sp stands, from the frame pointer; the same on all CPUs */

enum codelet_frame {
	CODELET_WHOLE,	 /* all words are in place */
	CODELET_POINTER, /* the frame pointer is set up */
	CODELET_NONE,	 /* it is the caller's */
	CODELET_INNER,	 /* arm64: all words are in place, and a frame pointer of a frame inside of that one is set up */
	CODELET_UNKNOWN, /* something is lost */
};

enum { CODELET_NO_REG = -1, CODELET_NOWHERE = INT16_MIN };

/* The state before an instruction of a codelet. Registers have the processor's numbers, places are offsets from sp; the last
 * ones are for hotspot_interpreter_CPU.c alone. */
struct codelet_state {
	uint8_t frame;	   /* enum codelet_frame */
	int8_t sender_reg; /* with the caller's sp; CODELET_NO_REG */
	int8_t ra_reg;	   /* with the return address; CODELET_NO_REG */
	int8_t method_reg; /* with the Method* of the frame in the making; CODELET_NO_REG */
	bool has_sender;   /* CODELET_POINTER: the caller's sp is in its place */
	int16_t ra_at;	   /* CODELET_NONE: where the return address stands; CODELET_NOWHERE */
	int16_t sender_at; /* what the caller's sp is; CODELET_NOWHERE: not known */
	int16_t pushed;	   /* x86-64, CODELET_POINTER: how far sp is below it */
	int16_t frame_at;  /* arm64: what the frame pointer of the frame that stands is; CODELET_NOWHERE */
	int16_t fp_at, method_at, sender_slot_at; /* arm64: where these were saved, but fp_at before a frame pointer tells */
};

struct codelet_step {
	uint32_t bytes;
	uint64_t to; /* offset where the path may go but on; UINT64_MAX: nowhere */
	bool goes_on, is_call;
};

/* The state of a frame that is in place, or (@is_entry) as a method is entered. */
struct codelet_state hotspot_codelet_begin(const struct hotspot *s, bool is_entry);

/* Takes @state behind the instruction at @code[@off]. False: there is none. */
bool hotspot_codelet_step(const uint8_t *code, size_t len, uint64_t off, struct codelet_state *state,
			  struct codelet_step *step);

/* DWARF's number of the processor's register @reg. */
uint8_t hotspot_dwarf_reg(int reg);

#endif
