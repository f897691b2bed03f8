/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/samples/frame_kind.h"

const struct frame_kind_info frame_kinds[FRAME_KIND_MAX] = {
	[FRAME_KERNEL] = { .type = "kernel", .namer = NAMER_KERNEL, .module = "vmlinux" },
	[FRAME_NATIVE] = { .type = "native", .namer = NAMER_FILE, .module = "", .is_user = true },
	[FRAME_ANONYMOUS] = { .type = "native", .namer = NAMER_RUNTIME, .module = "anon", .is_user = true },
	[FRAME_SCRIPTED] = { .type = "", .namer = NAMER_OBJECT, .module = "script", .is_user = true },
};
