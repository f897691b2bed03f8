/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of one function, from its instructions alone. Behind agent/rows_code.c. */
#ifndef HEARTH_AGENT_CODE_FLOW_H
#define HEARTH_AGENT_CODE_FLOW_H

#include <stddef.h>
#include <stdint.h>

#include "agent/code_starts.h"
#include "agent/rows.h"

enum { CODE_FLOW_MAX_BYTES = 65536 };

/*
 * Follows the function @f along all its paths. *@ret (to be freed) are its rows, sorted and merged; where paths disagree
 * there are none, nor where none leads, unless that is surely the function's too and the state there can be told. Bounded
 * in time; a function above CODE_FLOW_MAX_BYTES is not followed. 0 or -ENOMEM.
 */
int code_flow_rows(const struct code_function *f, struct row **ret, size_t *count_ret);

#endif
