/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the state that two paths to one instruction agree on. The instructions are in state_x86_64.c and state_arm64.c. */
#include "agent/rows/code/state.h"

static bool meet_value(int32_t *value, int32_t other, int32_t unknown)
{
	if (*value == other || *value == unknown)
		return false;
	*value = unknown;
	return true;
}

bool code_state_depths_differ(const struct code_state *a, const struct code_state *b)
{
	return code_is_offset(a->reg[CODE_SP]) && code_is_offset(b->reg[CODE_SP]) && a->reg[CODE_SP] != b->reg[CODE_SP] &&
	       !a->may_be_popped && !b->may_be_popped;
}

/* The place of rsp: a state that is sure of it decides for both. */
static bool meet_depths(struct code_state *s, const struct code_state *other)
{
	if (s->may_be_popped == other->may_be_popped)
		return meet_value(&s->reg[CODE_SP], other->reg[CODE_SP], CODE_UNKNOWN);
	if (!s->may_be_popped)
		return false;
	s->reg[CODE_SP] = other->reg[CODE_SP];
	s->may_be_popped = false;
	return true;
}

bool code_state_meet(struct code_state *s, const struct code_state *other)
{
	bool changed = false;

	for (int i = 0; i < CODE_REGS; i++)
		changed |= i == CODE_SP ? meet_depths(s, other) : meet_value(&s->reg[i], other->reg[i], CODE_UNKNOWN);
	for (int i = 0; i < CODE_SAVED; i++)
		changed |= meet_value(&s->slot[i], other->slot[i], CODE_UNKNOWN);
	if (s->cfa_slot_value != other->cfa_slot_value)
		changed |= meet_value(&s->cfa_slot, CODE_UNKNOWN, CODE_UNKNOWN);
	changed |= meet_value(&s->cfa_slot, other->cfa_slot, CODE_UNKNOWN);
	changed |= meet_value(&s->return_slot, other->return_slot, CODE_UNKNOWN);
	changed |= meet_value(&s->kept_rsp, other->kept_rsp, CODE_UNKNOWN);
	changed |= !s->has_pushed && other->has_pushed;
	s->has_pushed |= other->has_pushed;
	changed |= s->has_syscall && !other->has_syscall;
	s->has_syscall &= other->has_syscall;
	changed |= !s->makes_room && other->makes_room;
	s->makes_room |= other->makes_room;
	changed |= !s->no_return && other->no_return;
	s->no_return |= other->no_return;
	changed |= meet_value(&s->compared, other->compared, -1);
	return changed;
}
