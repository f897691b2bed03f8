/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver `hostmetrics`: a thread that reads the machine each interval and hands OTLP metrics to sinks. Each of its
 * ways is a pipeline: stages, which get the resource alone, as profiles without samples; and behind them an end, which puts
 * the reading to the resource that arrives and hands both to the exporters. So a stage changes the resource of metrics as
 * that of samples. Points that no exporter takes are counted (hearth_host_metrics_dropped_points_total).
 */
#ifndef HEARTH_CMD_HOST_HOST_SOURCE_H
#define HEARTH_CMD_HOST_HOST_SOURCE_H

#include "cmd/host/host.h"

struct host_source;
struct metrics;
struct profiles;
struct sink;

/* Profiles of one resource with @count attributes, KEY and VALUE by turns, and no samples. 0 or -ENOMEM. */
int host_resource_new(const char *const *attributes, size_t count, struct profiles **ret);

/* @config is borrowed until host_source_free(); @resource: what the host is told as; a reference is taken. 0 or -ENOMEM. */
int host_source_new(const struct host_config *config, struct profiles *resource, struct metrics *metrics,
		    struct host_source **ret);

/* The end of a way, which owns @next from the call on, also when it fails; freed before @s, by whoever is in front of it. 0
 * or -ENOMEM. */
int host_source_end(struct host_source *s, struct sink *next, struct sink **ret);

/* Adds a way that begins with @head, which it owns from the call on. Before the start. 0 or -ENOMEM. */
int host_source_add(struct host_source *s, struct sink *head);

/* Starts the thread. 0 or -errno. */
int host_source_start(struct host_source *s);

/* Ends the thread. May be called again. */
void host_source_stop(struct host_source *s);

/* Stops it, and frees its ways. Accepts NULL. */
void host_source_free(struct host_source *s);

/* Reads and hands on once, in the caller's thread: for the thread, and for tests. */
void host_source_read(struct host_source *s);

#endif
