/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by workloads.c, which keeps the workloads, and workloads_json.c, which writes them. */
#ifndef HEARTH_BACKEND_COMPAT_WORKLOADS_INTERNAL_H
#define HEARTH_BACKEND_COMPAT_WORKLOADS_INTERNAL_H

#include <pthread.h>

#include "backend/compat/workloads.h"
#include "base/map.h"

struct metric;

struct function {
	uint32_t processes;
	struct str language, name, file;
	char text[];
};

struct process {
	struct process *older, *newer; /* in workloads: as they were last seen */
	struct process *next;	       /* of its workload */
	struct workload *workload;
	uint64_t hash;
	int64_t pid;
	uint64_t seen_ns;
	char *executable_name, *executable_path;
	struct map functions; /* hash -> struct function of the table */
};

struct workload {
	uint64_t hash;
	struct process *processes;
	char *id, *namespace_name, *pod_name, *container_name;
};

struct workloads {
	pthread_mutex_t lock; /* of all below */
	struct workloads_config config;
	struct map workloads, processes, functions;
	struct process *oldest, *newest;
	uint64_t seed;
	uint64_t bytes;
	uint64_t drops; /* processes dropped so far */
	struct metric *used, *dropped;
};

#endif
