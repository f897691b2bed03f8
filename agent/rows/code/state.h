/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that is known about a frame before one machine instruction of its function, and how the instruction changes it.
 * Each CPU has a file that decodes instructions: state_x86_64.c, state_arm64.c. Used by agent/rows/code/code.c. Leaf module,
 * no state of its own.
 */
#ifndef HEARTH_AGENT_ROWS_CODE_STATE_H
#define HEARTH_AGENT_ROWS_CODE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rows/row.h"

enum {
	CODE_REGS = CPU_GENERAL_REGS,
	CODE_SAVED = CPU_HAS_LR ? SAVED_MAX : SAVED_RA, /* where a call pushes the return address, its place is known */
	CODE_MAX_OFFSET = 1 << 28,
	CODE_REFERENCE_BYTES = 8, /* what code_next_reference may look at */
	CODE_SP = CPU_HAS_LR ? 31 : 4,
	CODE_FP = CPU_HAS_LR ? 29 : 5,
	CODE_FUNCTION_ALIGN = 16,	 /* where compilers let functions begin, if nobody asks for smaller code */
	CODE_LEAST_FIXED_ADDR = 0x10000, /* below, a number is hardly meant as an address */
};

/*
 * Values of registers, and places in memory, are offsets from the CFA; or, plus CODE_ALIGNED, from where rsp was put when
 * its distance from the CFA stopped being known (a realigned stack); or one of these. Only one such origin is known at a
 * time.
 */
#define CODE_ALIGNED (1 << 30)
#define CODE_UNKNOWN INT32_MIN
#define CODE_ENTRY   (INT32_MIN + 1) /* the register's value when the function was entered */
#define CODE_OUTMOST \
	(INT32_MIN + 2) /* the frame pointer: zeroed behind a system call, as a new thread marks its first frame */
#define CODE_RETURN    (INT32_MIN + 3) /* the return address, to be put elsewhere for more or fewer arguments */
#define CODE_RESULT    (INT32_MIN + 4) /* the result of a system call */
#define CODE_LAST_MARK CODE_RESULT

static inline bool code_is_aligned(int32_t value)
{
	return value >= CODE_ALIGNED - CODE_MAX_OFFSET;
}

/* From the CFA. */
static inline bool code_is_offset(int32_t value)
{
	return value > CODE_LAST_MARK && !code_is_aligned(value);
}

/* From the CFA or the other origin. */
static inline bool code_is_place(int32_t value)
{
	return value > CODE_LAST_MARK;
}

/* @value moved @by bytes, if it is a place and stays one of sense. */
static inline int32_t code_shifted(int32_t value, int64_t by)
{
	int64_t origin = code_is_aligned(value) ? CODE_ALIGNED : 0, off = value - origin + by;

	if (!code_is_place(value) || by < -CODE_MAX_OFFSET || by > CODE_MAX_OFFSET || off < -CODE_MAX_OFFSET ||
	    off > CODE_MAX_OFFSET)
		return CODE_UNKNOWN;
	return (int32_t)(origin + off);
}

struct code_state {
	int32_t reg[CODE_REGS]; /* by the processor's numbers (rax rcx rdx rbx rsp rbp rsi rdi r8 ... r15; x0 ... x30 sp) */
	int32_t slot[CODE_SAVED]; /* by enum row_saved: where the register's value at entry stands, or CODE_UNKNOWN */
	int32_t cfa_slot;	  /* a place from CODE_ALIGNED where CFA + cfa_slot_value stands; or CODE_UNKNOWN */
	int32_t cfa_slot_value;
	int32_t return_slot; /* a place from the CFA where the return address was copied to; or CODE_UNKNOWN */
	int32_t kept_rsp;    /* what rsp was when it was written to a place outside of the frame; or CODE_UNKNOWN */
	bool has_syscall;    /* on the way here */
	bool has_pushed;     /* the last that happened to rsp */
	bool may_be_popped;  /* by a function that was called since: what is said of rsp yields to any other path's word */
	bool makes_room;     /* for more arguments below the return address, nobody knows how many; it will be moved there */
	bool no_return;	     /* what stands at CFA - 8 is not the return address any more */
	int32_t compared;    /* the register compared with rsp by the instruction before this one; -1: none */
};

/* Says how a path goes on after an instruction. */
struct code_step {
	uint8_t length_bytes;
	bool goes_on;	       /* the next instruction may follow */
	bool is_call;	       /* which may never return */
	bool is_indirect_jump; /* to a place not known */
	bool is_trap;	       /* never passed */
	int8_t equals_rsp;     /* when it goes on, this register equals rsp (the loop that probes a new stack); -1: none */
	bool is_contradiction; /* a return while rsp cannot be at the return address */
	bool is_in_frame;      /* it works in a frame that a frame pointer tells, while none was made yet */
	bool gives_up_frame;   /* it gives such a frame up */
	bool has_target;
	uint64_t target;      /* of a jump; state as behind the instruction */
	uint64_t call_target; /* of a call; 0: not known */
};

/* The state at the first instruction of a function. */
extern const struct code_state code_state_entry;

/* The same of one that is jumped to by a function whose frame stands, to give it up; NULL: frames of this CPU do not tell.
 */
extern const struct code_state *const code_state_in_frame;

/* Decodes one instruction at @addr and takes @state behind it. 0; -EINVAL: no instruction that a program may have there. */
int code_state_step(const uint8_t *code, size_t len_bytes, uint64_t addr, struct code_state *state, struct code_step *step);

/* Turns @state, as @step left it, into the state at the next instruction. */
void code_state_go_on(struct code_state *state, const struct code_step *step);

/* Does rsp stand at different places in the two, as far as is known? No instruction is reached so. */
bool code_state_depths_differ(const struct code_state *a, const struct code_state *b);

/* Does the frame pointer point at the frame that the function made? */
bool code_state_has_frame(const struct code_state *state);

/* Keeps only the facts of @state that @other has too. True when that changed @state. */
bool code_state_meet(struct code_state *state, const struct code_state *other);

/* How many of the @len_bytes at @code are one instruction of padding, as stands between functions; 0: it is none. */
uint32_t code_padding_bytes(const uint8_t *code, size_t len_bytes);

/* The same for an instruction that is never passed. */
uint32_t code_trap_bytes(const uint8_t *code, size_t len_bytes);

/* Are the @len_bytes at @code one instruction that calls? */
bool code_is_call(const uint8_t *code, size_t len_bytes);

/* May a function begin at @code[@off]: aligned, or behind a return, a jump, padding or a call (which may never return)? */
bool code_may_follow(const uint8_t *code, uint64_t off);

/* Does a function surely begin at @code[@off], of @len bytes: behind padding that is never run, or with a frame of its own?
 */
bool code_begins_function(const uint8_t *code, uint64_t off, uint64_t len);

/* The first place from @at on, below @end, of the @segment loaded at @addr where an instruction, if one starts there, calls
 * or takes the address of *@target; @end: there is none. CODE_REFERENCE_BYTES from below @end on can be looked at. */
uint64_t code_next_reference(const uint8_t *segment, uint64_t addr, uint64_t at, uint64_t end, uint64_t *target);

/* The length of the start of a function that makes a frame with a frame pointer, and the rules behind it; 0: it starts
 * otherwise. */
size_t code_prologue_bytes(const uint8_t *code, size_t len_bytes, struct row *frame);

/* Do the two bytes at @code give up the frame by the first and return by the second? */
bool code_ends_frame(const uint8_t *code);

/* The rules (all of @row but its range). False when the caller's frame is not known; @fp_only: nor by anything but the frame
 * pointer. */
bool code_state_row(const struct code_state *state, bool fp_only, struct row *row);

#endif
