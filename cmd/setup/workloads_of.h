/* SPDX-License-Identifier: Apache-2.0 */
/* The containers, processes and functions that /workloads tells: one table a process, which sinks fill and servers read. */
#ifndef HEARTH_CMD_SETUP_WORKLOADS_OF_H
#define HEARTH_CMD_SETUP_WORKLOADS_OF_H

struct config;
struct metrics;
struct sink;
struct workloads;

/* The table; NULL: nothing fills it. */
struct workloads *workloads_here(void);

/* Puts what fills it in front of *@sink, where the options ask for it and no file of pipelines says who does. 0 or -ENOMEM;
 * *@sink is then NULL. */
int workloads_wrap(const struct config *config, struct metrics *metrics, struct sink **sink);

/* A sink that fills it and does nothing else, for a pipeline's exporter. 0 or -ENOMEM. */
int workloads_exporter(const struct config *config, struct metrics *metrics, struct sink **ret);

/* Frees it, after sinks and servers. */
void workloads_end(void);

#endif
