/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/setup/workloads_of.h"

#include <errno.h>
#include <stddef.h>

#include "backend/compat/workloads.h"
#include "cmd/options/config.h"
#include "proto/sink.h"
#include "sinks/sinks.h"

static struct workloads *here; /* made and freed by the main thread */

struct workloads *workloads_here(void)
{
	return here;
}

static int put_in_front(const struct config *config, struct metrics *metrics, struct sink **sink)
{
	const struct workloads_config settings = { .memory_bytes = config->workloads_memory };
	struct sink *next = *sink;

	*sink = NULL;
	if (!here)
		here = workloads_new(&settings, metrics);
	if (here)
		return workloads_sink_new(here, next, sink);
	sink_free(next);
	return -ENOMEM;
}

int workloads_wrap(const struct config *config, struct metrics *metrics, struct sink **sink)
{
	if (config->pipelines || (!config->workloads && !config->rest_address))
		return 0;
	return put_in_front(config, metrics, sink);
}

int workloads_exporter(const struct config *config, struct metrics *metrics, struct sink **ret)
{
	int err = sink_null_new(ret);

	return err ? err : put_in_front(config, metrics, ret);
}

void workloads_end(void)
{
	workloads_free(here);
	here = NULL;
}
