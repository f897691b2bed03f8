/* SPDX-License-Identifier: Apache-2.0 */
/* The container of a process, by the path of its control group. */
#include "agent/proc/container_id.h"
#include "agent/process/enrich.h"

static int add(const struct enrich_options *options, const char *text, size_t len, struct attributes *a)
{
	char id[CONTAINER_ID_BYTES];

	(void)options;
	return container_id_of_cgroups(text, len, id) ? attributes_add(a, STR("container.id"), str_z(id)) : 0;
}

const struct enrich enrich_container = { .source = ENRICH_CGROUP, .add = add };
