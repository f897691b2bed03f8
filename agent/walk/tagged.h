/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Return addresses on a stack of Erlang's, which are told from all else there by their tag: the lowest two bits are 0, as in
 * no term, and they lead to generated code. Pure function.
 */
#ifndef HEARTH_AGENT_WALK_TAGGED_H
#define HEARTH_AGENT_WALK_TAGGED_H

#include "agent/process/address_space.h"
#include "agent/rows/row.h"
#include "agent/samples/reorder.h"

/*
 * Finds the first return address at or above @at in the copy of @sample's stacks. The very first word may have another tag:
 * code that never looks at its callers is called from any place. 0, with it in *@pc and the address behind its word in
 * *@behind; -EFAULT: the copy ends before.
 */
int tagged_find(const struct address_space *as, const struct pending_sample *sample, uint64_t at, uint64_t *behind,
		uint64_t *pc);

/* Evaluates the rule of ROW_CFA_TAGGED, with the interface of row_apply(). */
int tagged_apply(const struct address_space *as, const struct pending_sample *sample, const struct row *row,
		 const struct row_regs *in, struct row_regs *out);

#endif
