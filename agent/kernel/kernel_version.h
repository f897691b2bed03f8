/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the running kernel that are known before anything is loaded. */
#ifndef HEARTH_AGENT_KERNEL_KERNEL_VERSION_H
#define HEARTH_AGENT_KERNEL_KERNEL_VERSION_H

#include <stdbool.h>

#include "agent/config.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"
#define UNSAFE_KERNEL_TEXT                                                                                              \
	"this kernel (5.19 to 6.3 without the copy_from_user_nofault fix) can lock up when user memory is read from a " \
	"sampling interrupt."

/* The version: 6018 for 6.18; 0 when it cannot be told. */
unsigned kernel_version(void);

/* Is the kernel free of the bug of UNSAFE_KERNEL_TEXT? False too when that cannot be told. */
bool kernel_is_safe(void);

/* Refuses kernels that are too old (unless @any_version), have no BTF, or (unless @force) can lock up in
 * bpf_probe_read_user. 0 or -ENOTSUP with @err filled. */
int kernel_is_supported(bool force, bool any_version, struct agent_error *err);

#endif
