/* SPDX-License-Identifier: Apache-2.0 */
/* Describes this machine by the names of OpenTelemetry's conventions for host and os. No state. */
#ifndef HEARTH_AGENT_REPORT_HOST_FACTS_H
#define HEARTH_AGENT_REPORT_HOST_FACTS_H

#include "agent/process/attributes.h"

/*
 * Adds host.id, host.name, host.arch, os.type, os.name, os.version, os.description to @a, as far as they can be told; a key
 * that @a has already stays. In a container with the host's processes (--pid=host) they are the host's. 0 or -ENOMEM.
 */
int host_facts_add(struct attributes *a);

/* Adds the attributes of @text, which has the form of os-release(5). 0 or -ENOMEM. */
int host_facts_of_release(struct str text, struct attributes *a);

#endif
