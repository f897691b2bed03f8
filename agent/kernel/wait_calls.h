/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls whose first argument says what a thread in them waits for (enum wait_call). No state. */
#ifndef HEARTH_AGENT_KERNEL_WAIT_CALLS_H
#define HEARTH_AGENT_KERNEL_WAIT_CALLS_H

#include <stdint.h>

#include "bpf/event.h"

/* Fills @ret, by the number of the system call. */
void wait_calls_fill(uint8_t ret[WAIT_CALLS]);

#endif
