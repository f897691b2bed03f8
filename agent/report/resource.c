/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/context/process_context.h"
#include "agent/report/resource.h"
#include "base/cleanup.h"
#include "proto/profiles_builder.h"

enum { OWN_ATTRIBUTES = 4 };

/* Adds those of @more whose keys are missing to the @count attributes of @list. Returns their new number. */
static uint32_t add_others(struct key_value *list, uint32_t count, const struct attributes *more)
{
	const struct attributes there = { list, count, 0 };

	for (uint32_t i = 0; i < more->count; i++)
		if (!attributes_find(&there, more->items[i].key))
			list[count++] = more->items[i];
	return count;
}

/* Does the kernel, or this machine, know better than a process what @key is? */
static bool is_ours(struct str key)
{
	static const char *const starts[] = {
		"host.", "os.", "container.id", "k8s.pod.uid", "systemd.unit.name", "process.pid", "process.vpid"
	};

	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (key.len >= strlen(starts[i]) && !memcmp(key.data, starts[i], strlen(starts[i])))
			return true;
	return false;
}

/* Adds what the process published about itself. */
static uint32_t add_published(struct key_value *list, uint32_t count, const struct attributes *published)
{
	const struct attributes there = { list, count, 0 };

	for (uint32_t i = 0; i < published->count; i++)
		if (!is_ours(published->items[i].key) && !attributes_find(&there, published->items[i].key))
			list[count++] = published->items[i];
	return count;
}

uint32_t resource_build(struct builder *b, const struct process *p, const struct attributes *common)
{
	const struct process_context *published = process_context_of(p);
	const char *path = p->exe_path ? p->exe_path : "";
	struct key_value list[OWN_ATTRIBUTES + 3 * ATTRIBUTES_MAX] = {
		{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = p->pid } },
		{ .key = STR("process.executable.name"), .value = { .kind = VALUE_STRING, .string = process_name(p) } },
		{ .key = STR("process.executable.path"), .value = { .kind = VALUE_STRING, .string = str_z(path) } },
	};
	uint32_t count = p->exe_path ? 3 : 2;

	if (p->is_outside) /* the process has only a name */
		list[0] = list[--count];
	if (p->own_pid) /* OpenTelemetry's name for that */
		list[count++] = (struct key_value){ .key = STR("process.vpid"),
						    .value = { .kind = VALUE_INT, .integer = p->own_pid } };
	if (published)
		count = add_published(list, count, &published->resource);
	if (p->facts)
		count = add_others(list, count, &p->facts->attributes);
	count = add_others(list, count, common);
	return builder_resource(b, list, count);
}
