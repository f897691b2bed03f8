/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "agent/runtime/choice.h"
#include "agent/runtime/runtimes.h"
#include "base/cleanup.h"
#include "base/memory.h"

#define RUNTIME_ADDRESS(name) &name,
static const struct runtime *const all[] = { RUNTIMES(RUNTIME_ADDRESS) };

struct runtimes {
	const struct runtime *table[PROCESS_SLOTS];
	uint32_t count; /* of those that were created */
	void *made[PROCESS_SLOTS];
};

int runtimes_new_of(const struct runtime *const *table, uint32_t count, uint32_t off, struct files *files,
		    struct metrics *metrics, struct runtimes **ret)
{
	struct runtimes *r = calloc(1, sizeof(*r));
	int error = r ? 0 : -ENOMEM;

	if (error)
		return error;
	for (uint32_t i = 0; !error && i < count; i++) {
		const struct runtime_context context = { .files = files, .metrics = metrics, .slot = r->count };

		if (off & RUNTIME_BIT(table[i]->id))
			continue;
		r->table[r->count] = table[i];
		error = table[i]->create(&context, &r->made[r->count]);
		r->count += !error;
	}
	if (error) {
		runtimes_free(r);
		return error;
	}
	*ret = r;
	return 0;
}

int runtimes_new(uint32_t off, struct files *files, struct metrics *metrics, struct runtimes **ret)
{
	_Static_assert(ARRAY_LEN(all) <= PROCESS_SLOTS, "a process has a slot for each runtime");

	return runtimes_new_of(all, ARRAY_LEN(all), off, files, metrics, ret);
}

void runtimes_free(struct runtimes *r)
{
	if (!r)
		return;
	while (r->count) {
		r->count--;
		r->table[r->count]->destroy(r->made[r->count]);
	}
	free(r);
}

void runtimes_map(void *runtimes, struct process *p, struct file *file, const char *path, uint32_t task)
{
	struct runtimes *r = runtimes;

	for (uint32_t i = 0; i < r->count; i++)
		r->table[i]->map(r->made[i], p, file, path, task);
}

void runtimes_see(struct runtimes *r, struct process *p)
{
	for (uint32_t i = 0; i < r->count; i++)
		r->table[i]->see(r->made[i], p);
}

void runtimes_update(struct runtimes *r, const struct traces *t, const struct wait_hook *hook)
{
	for (uint32_t i = 0; i < r->count; i++)
		r->table[i]->update(r->made[i], t, hook);
}

bool runtimes_find(struct runtimes *r, const struct process *p, uint64_t addr, uint64_t time_ns, struct runtime_name *ret)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (r->table[i]->find(r->made[i], p, addr, time_ns, ret))
			return true;
	return false;
}

bool runtimes_vary(struct runtimes *r, const struct process *p)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (r->table[i]->varies(r->made[i], p))
			return true;
	return false;
}

void runtimes_settle(struct runtimes *r, const struct traces *t, uint64_t end_ns)
{
	for (uint32_t i = 0; i < r->count; i++)
		r->table[i]->settle(r->made[i], t, end_ns);
}

void runtimes_tell_memory(const struct runtimes *r, struct metrics *metrics)
{
	for (uint32_t i = 0; i < r->count; i++)
		memory_tell(metrics, r->table[i]->memory_name, r->table[i]->memory_bytes(r->made[i]));
}
