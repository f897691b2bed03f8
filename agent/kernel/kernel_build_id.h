/* SPDX-License-Identifier: Apache-2.0 */
/* The build ids of the kernel and its modules, as sysfs has them. No state. */
#ifndef HEARTH_AGENT_KERNEL_KERNEL_BUILD_ID_H
#define HEARTH_AGENT_KERNEL_KERNEL_BUILD_ID_H

#include <stdbool.h>

#include "symbols/symbols.h"

/* The build id of @module ("" for the kernel itself) in hex. False: sysfs has none. */
bool kernel_build_id(const char *module, char out[static BUILD_ID_CHARS]);

#endif
