/* SPDX-License-Identifier: Apache-2.0 */
/* The systemd unit of a process that is in no container; the key is the Collector's (systemdreceiver). */
#include "agent/proc/cgroup_names.h"
#include "agent/proc/container_id.h"
#include "agent/process/enrich.h"

static int add(const struct enrich_options *options, const char *text, size_t len, struct attributes *a)
{
	char unit[UNIT_NAME_BYTES], id[CONTAINER_ID_BYTES];

	(void)options;
	if (container_id_of_cgroups(text, len, id) || !cgroup_names_unit(text, len, unit))
		return 0;
	return attributes_add(a, STR("systemd.unit.name"), str_z(unit));
}

const struct enrich enrich_unit = { .source = ENRICH_CGROUP, .add = add };
