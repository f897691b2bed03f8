/* SPDX-License-Identifier: Apache-2.0 */
/* The table of types of sinks says whose each is. */
#include "cmd/halves/share.h"

#include <errno.h>
#include <stdlib.h>

#include "cmd/pipeline/pipelines.h"
#include "cmd/setup/pipelines_of.h"
#include "cmd/setup/sinks_of.h"

static bool is_agents(const char *spec)
{
	return !sinks_is_store(spec) && !sinks_is_sender(spec);
}

static bool is_for_network(const char *spec)
{
	return !is_agents(spec);
}

/* Whether @pipelines listen, ask or send. */
static bool ask_network(const struct pipelines *pipelines)
{
	return pipelines_have_source(pipelines, SOURCE_OTLP) || pipelines_have_server(pipelines) ||
	       pipelines_ask_network(pipelines) || pipelines_use(pipelines, is_for_network);
}

/* Pipelines go over as a whole; a file that they write is opened before, a folder of files cannot be. */
static bool are_backends(const struct pipelines *pipelines)
{
	return ask_network(pipelines) && !pipelines_write_folders(pipelines);
}

/* Whether there is an address that has nothing to do with where profiles go. */
static bool listens_besides(const struct config *config)
{
	return config->metrics_address || config->pprof_address;
}

bool share_needs_one_process(const struct config *config, bool keeps)
{
	if (config->pipelines)
		return ask_network(config->pipelines) || listens_besides(config);
	return share_needs_backend(config, keeps);
}

bool share_needs_backend(const struct config *config, bool keeps)
{
	bool yes = keeps || config->store || config->collectors.count || listens_besides(config) || config->rest_address;

	if (config->pipelines)
		return are_backends(config->pipelines) || (listens_besides(config) && !ask_network(config->pipelines));
	for (size_t i = 0; i < config->sinks.count; i++)
		yes |= !is_agents(config->sinks.items[i]);
	return yes;
}

/* The sinks of @all for which @is_wanted. */
static int choose(const struct string_list *all, bool (*is_wanted)(const char *spec), struct string_list *ret)
{
	*ret = (struct string_list){ .items = calloc(all->count + 1, sizeof(*ret->items)) };
	if (!ret->items)
		return -ENOMEM;
	for (size_t i = 0; i < all->count; i++)
		if (is_wanted(all->items[i]))
			ret->items[ret->count++] = all->items[i];
	return 0;
}

int share_divide(const struct config *config, struct share *ret)
{
	const struct string_list none = { 0 };
	int err;

	ret->agent = ret->backend = ret->senders = *config;
	ret->agent.sinks = ret->backend.sinks = ret->senders.sinks = none;
	ret->agent.store = ret->senders.store = NULL;
	if (config->pipelines && are_backends(config->pipelines))
		ret->agent.pipelines = NULL;
	else
		ret->backend.pipelines = ret->senders.pipelines = NULL;
	ret->agent.rest_address = ret->agent.metrics_address = ret->agent.pprof_address = NULL;
	ret->agent.collectors = ret->backend.collectors = none;
	ret->backend.print = ret->senders.print = false;
	err = choose(&config->sinks, is_agents, &ret->agent.sinks);
	if (!err)
		err = choose(&config->sinks, sinks_is_store, &ret->backend.sinks);
	return err ? err : choose(&config->sinks, sinks_is_sender, &ret->senders.sinks);
}

void share_renew_senders(struct share *s)
{
	const struct string_list sinks = s->senders.sinks, collectors = s->senders.collectors;

	s->senders = s->backend;
	s->senders.store = NULL;
	s->senders.sinks = sinks;
	s->senders.collectors = collectors;
}

void share_fini(struct share *s)
{
	free(s->agent.sinks.items);
	free(s->backend.sinks.items);
	free(s->senders.sinks.items);
}
