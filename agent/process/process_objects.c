/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "agent/process/process_objects.h"

enum { MAX_OBJECTS = 1 << 16 }; /* of one process; then all are forgotten, and come again within a minute */

void process_objects_free(struct process *p)
{
	size_t pos = 0;
	void *object;

	while (map_next(&p->objects, &pos, NULL, &object))
		object_put(object);
	map_fini(&p->objects);
}

/* Addresses have 48 bits, of which the lowest are 0: in one process two of them hardly ever have the same key. */
static uint64_t object_key(uint64_t addr, uint32_t check)
{
	return addr << 16 ^ check * 0x9E3779B97F4A7C15ull;
}

struct object *process_object(const struct process *p, uint64_t addr, uint32_t check)
{
	return map_get(&p->objects, object_key(addr, check));
}

int process_set_object(struct process *p, uint64_t addr, uint32_t check, struct object *object)
{
	uint64_t key = object_key(addr, check);
	struct object *old = map_get(&p->objects, key);

	if (!old && p->objects.count >= MAX_OBJECTS)
		process_objects_free(p);
	if (map_put(&p->objects, key, object))
		return -ENOMEM;
	(void)object_get(object);
	object_put(old);
	return 0;
}
