/* SPDX-License-Identifier: Apache-2.0 */
/* The pod of a process, by the path of its control group: known before the API server has heard of its containers. */
#include "agent/proc/cgroup_names.h"
#include "agent/process/enrich.h"

static int add(const struct enrich_options *options, const char *text, size_t len, struct attributes *a)
{
	char uid[POD_UID_BYTES];

	(void)options;
	return cgroup_names_pod_uid(text, len, uid) ? attributes_add(a, STR("k8s.pod.uid"), str_z(uid)) : 0;
}

const struct enrich enrich_pod = { .source = ENRICH_CGROUP, .add = add };
