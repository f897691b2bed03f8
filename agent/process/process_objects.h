/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of scripts that a process has, as the kernel told them (struct object_record). Agent's thread. */
#ifndef HEARTH_AGENT_PROCESS_PROCESS_OBJECTS_H
#define HEARTH_AGENT_PROCESS_PROCESS_OBJECTS_H

#include "agent/process/processes.h"

/* The function of a script that @p had at @addr with the checksum @check (struct object_record); NULL: it is not known. */
struct object *process_object(const struct process *p, uint64_t addr, uint32_t check);

/* Notes that @p has or had @object (a reference is taken) there. 0 or -ENOMEM. */
int process_set_object(struct process *p, uint64_t addr, uint32_t check, struct object *object);

/* Forgets all. */
void process_objects_free(struct process *p);

#endif
