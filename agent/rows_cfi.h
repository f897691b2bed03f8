/* SPDX-License-Identifier: Apache-2.0 */
/* What the builders over call frame tables share: libdw's rules into rows. */
#ifndef HEARTH_AGENT_ROWS_CFI_H
#define HEARTH_AGENT_ROWS_CFI_H

#include <elfutils/libdw.h>

#include "agent/row_builder.h"

/* As struct row_builder's build and eval; @cfi is a Dwarf_CFI *. */
int rows_cfi_build(void *cfi, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret);
int rows_cfi_eval(void *cfi, uint64_t addr, const struct row_regs *in, row_read_fn read, void *arg, struct row_regs *out);

#endif
