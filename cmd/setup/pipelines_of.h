/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes what a file of pipelines describes. Each exporter is one sink, whoever feeds it; a pipeline is its stages in front
 * of its exporters; a receiver feeds all pipelines that name it. All of it becomes one sink, which stands for the
 * process's own receiver (the agent, else OTLP), and owns everything, also the threads of receivers that make profiles up.
 */
#ifndef HEARTH_CMD_SETUP_PIPELINES_OF_H
#define HEARTH_CMD_SETUP_PIPELINES_OF_H

#include <stdbool.h>

struct buf;
struct config;
struct metrics;
struct pipelines;
struct sink;
struct store;

/* As sinks_of(), of @config's pipelines. */
int pipelines_of(const struct config *config, struct metrics *metrics, struct sink **ret, struct store **store_ret,
		 struct buf *names, struct buf *error);

/* What OTLP that comes in beside an agent goes to, where @sink (may be NULL) is one of pipelines_of() that names such a
 * receiver: a reference to be freed. NULL: nowhere. */
struct sink *pipelines_received(struct sink *sink);

/* Appends the exporters' names as sinks_of() does. */
void pipelines_name(const struct pipelines *p, struct buf *names);

/* Whether one of the exporters is a sink, NAME[=VALUE], of which @is true. */
bool pipelines_use(const struct pipelines *p, bool (*is)(const char *spec));

/* Says what has no effect, and with --verbose what the pipelines are. */
void pipelines_say(const struct config *config);

#endif
