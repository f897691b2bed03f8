/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An enricher describes a process by attributes that the kernel's records do not have. Each is one const struct in the list
 * ENRICHERS; agent/process/process_facts.c reads the files in /proc and asks those that read them. No state; agent's thread.
 */
#ifndef HEARTH_AGENT_PROCESS_ENRICH_H
#define HEARTH_AGENT_PROCESS_ENRICH_H

#include "agent/process/attributes.h"

/* The files of /proc/PID that enrichers read, in the order in which they are read: the kernel's word comes before that of
 * the program, as the first value of a key stays. */
enum enrich_source { ENRICH_CGROUP, ENRICH_ENVIRON, ENRICH_SOURCES };

/* The options of enrichers; borrowed. */
struct enrich_options {
	const char *const *variables; /* of the environment, to be told as process.environment_variable.NAME */
	size_t variable_count;
};

struct enrich {
	enum enrich_source source;
	/* Adds to @a what @text, the content of the source, says; it may be cut. Nothing in it is trusted. 0 or -ENOMEM. */
	int (*add)(const struct enrich_options *options, const char *text, size_t len, struct attributes *a);
};

/* All enrichers, with the attributes that they give. */
#define ENRICHERS(ENRICHER)                                  \
	ENRICHER(enrich_container)   /* container.id */      \
	ENRICHER(enrich_pod)	     /* k8s.pod.uid */       \
	ENRICHER(enrich_unit)	     /* systemd.unit.name */ \
	ENRICHER(enrich_environment) /* service.name, process.environment_variable.*, and what the program says */

#define ENRICHER_DECLARED(name) extern const struct enrich name;
ENRICHERS(ENRICHER_DECLARED)
#undef ENRICHER_DECLARED

#endif
