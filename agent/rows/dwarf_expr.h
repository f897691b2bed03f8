/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates the DWARF expressions that stand in call frame tables, x86-64. */
#ifndef HEARTH_AGENT_ROWS_DWARF_EXPR_H
#define HEARTH_AGENT_ROWS_DWARF_EXPR_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rows/rows.h"

/* The values that an expression may look at. */
struct dwarf_expr_frame {
	const struct row_regs *regs;
	row_read_fn read;
	void *arg;
	uint64_t cfa; /* only with has_cfa */
	bool has_cfa;
};

/* Runs @ops. *@value_ret is the top of the stack at the end; *@is_value_ret says whether that is the value itself
 * (DW_OP_stack_value, a register) or the address where it stands. 0, -EFAULT, -ENODATA, -ENOTSUP, as row_eval. */
int dwarf_expr_eval(const struct dwarf_expr_frame *frame, const Dwarf_Op *ops, size_t count, uint64_t *value_ret,
		    bool *is_value_ret);

#endif
