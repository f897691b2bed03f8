/* SPDX-License-Identifier: Apache-2.0 */
/* The stage that says what processes belong to, made of options. */
#ifndef HEARTH_CMD_SETUP_ENRICH_OF_H
#define HEARTH_CMD_SETUP_ENRICH_OF_H

#include <stdbool.h>

#include "enrich/enrich.h"

struct buf;
struct config;
struct metrics;
struct sink;

struct enrich_config enrich_config_of(const struct config *config);

/* Whose stage it is. Of two halves (cmd/halves/) the agent may read the host's files, and the backend may ask Kubernetes, by
 * which services are named. */
enum enrich_part { ENRICH_WHOLE, ENRICH_OF_AGENT, ENRICH_OF_BACKEND };

/* Puts the stage in front of *@sink, unless the options want nothing of it, and waits for it as long as they say. 0; -EINVAL
 * (wrong usage) or another -errno, said. *@sink is the caller's as before, also after an error, when it may be NULL. */
int enrich_wrap(const struct config *config, enum enrich_part part, struct metrics *metrics, struct sink **sink);

/* Whether the stage as a whole would ask a server. */
bool enrich_asks_network(const struct config *config);

/* The stage that a pipeline's k8sattributes is, in front of @next, which it owns from the call on; @config has its settings.
 * It waits as they say. 0 or -errno with @error filled. */
int enrich_stage(const struct config *config, struct sink *next, struct metrics *metrics, struct sink **ret,
		 struct buf *error);

/* Asks Kubernetes for the object at @path, as @config, a struct config, says: stage_kubernetes.get (sinks/stage/stage.h). */
int enrich_get(const void *config, const char *path, uint64_t timeout_ns, struct buf *out);

/* Checks the words of --enrich. 0 or -EINVAL, said. */
int enrich_check_options(const struct config *config);

#endif
