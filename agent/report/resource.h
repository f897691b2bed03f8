/* SPDX-License-Identifier: Apache-2.0 */
/* The resource of a process: attributes of it and of its machine. No state. */
#ifndef HEARTH_AGENT_REPORT_RESOURCE_H
#define HEARTH_AGENT_REPORT_RESOURCE_H

#include <stdint.h>

#include "agent/process/attributes.h"
#include "agent/process/processes.h"

struct builder;

/* Makes that of @p in @b, with the attributes @common to all. The kernel's facts about the process take precedence over what
 * it published about itself (OTEP 4719), this over its environment, and that over hearth's settings. Returns its handle. */
uint32_t resource_build(struct builder *b, const struct process *p, const struct attributes *common);

#endif
