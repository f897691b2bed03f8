/* SPDX-License-Identifier: Apache-2.0 */
/* All runtimes at once: each call asks those of the table in turn (agent/runtime/runtime.h). Agent's thread. */
#ifndef HEARTH_AGENT_RUNTIME_RUNTIMES_H
#define HEARTH_AGENT_RUNTIME_RUNTIMES_H

#include "agent/runtime/runtime.h"

struct runtimes;

/* The runtimes that there are, without those whose RUNTIME_BIT is in @off. @files and @metrics are borrowed. 0 or -ENOMEM.
 */
int runtimes_new(uint32_t off, struct files *files, struct metrics *metrics, struct runtimes **ret);
/* The same of the @count runtimes of @table, PROCESS_SLOTS at most (borrowed; tests). */
int runtimes_new_of(const struct runtime *const *table, uint32_t count, uint32_t off, struct files *files,
		    struct metrics *metrics, struct runtimes **ret);
/* To be called when no process is left. */
void runtimes_free(struct runtimes *r);

/* See struct runtime. */
void runtimes_map(void *runtimes, struct process *p, struct file *file, const char *path, uint32_t task);
void runtimes_see(struct runtimes *r, struct process *p);
void runtimes_update(struct runtimes *r, const struct traces *t, const struct wait_hook *hook);
/* The first answer counts. */
bool runtimes_find(struct runtimes *r, const struct process *p, uint64_t addr, uint64_t time_ns, struct runtime_name *ret);
bool runtimes_vary(struct runtimes *r, const struct process *p);
void runtimes_settle(struct runtimes *r, const struct traces *t, uint64_t end_ns);

/* Says in the metrics what memory each holds. */
void runtimes_tell_memory(const struct runtimes *r, struct metrics *metrics);

#endif
