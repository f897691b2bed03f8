/* SPDX-License-Identifier: Apache-2.0 */
/* Turns options into struct agent_config: names of users become numbers, lists of CPUs arrays. Owns these two, borrows the
 * rest. */
#include "cmd/setup/agent_setup.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "agent/process/attributes.h"
#include "agent/proc/proc_root.h"
#include "agent/runtime/choice.h"
#include "base/log.h"
#include "base/text/nearest.h"
#include "base/text/parse.h"
#include "cmd/options/config.h"

enum { MAX_CPUS = 4096 };

static int set_cpus(struct agent_setup *setup, const char *text)
{
	int count;

	if (!text)
		return 0;
	setup->cpus = calloc(MAX_CPUS, sizeof(*setup->cpus));
	if (!setup->cpus)
		return -ENOMEM;
	count = agent_parse_cpus(text, setup->cpus, MAX_CPUS);
	if (count <= 0) {
		log_error("--cpu: '%s' is no list of CPUs; give one such as 0-3,8", text);
		return -EINVAL;
	}
	setup->agent.filter.cpus = setup->cpus;
	setup->agent.filter.cpu_count = (size_t)count;
	return 0;
}

static int set_uids(struct agent_setup *setup, const struct string_list *users)
{
	setup->uids = calloc(users->count + 1, sizeof(*setup->uids));
	if (!setup->uids)
		return -ENOMEM;
	for (size_t i = 0; i < users->count; i++) {
		const struct passwd *passwd = getpwnam(users->items[i]);
		uint64_t uid = passwd ? passwd->pw_uid : 0;

		if (!passwd && (parse_u64(users->items[i], &uid) || uid >= UINT32_MAX)) {
			log_error("--uid: there is no user '%s'", users->items[i]);
			return -EINVAL;
		}
		setup->uids[i] = (uint32_t)uid;
	}
	setup->agent.filter.uids = setup->uids;
	setup->agent.filter.uid_count = users->count;
	return 0;
}

/* One event that perf has, and any number of probes. */
static int set_events(struct agent_setup *setup, const struct string_list *events, uint64_t malloc_bytes)
{
	setup->probes = calloc(events->count + 1, sizeof(*setup->probes));
	if (!setup->probes)
		return -ENOMEM;
	setup->agent.probes = setup->probes;
	for (size_t i = 0; i < events->count; i++) {
		const char *event = events->items[i];

		if (!strcmp(event, "malloc")) {
			setup->agent.malloc_bytes = malloc_bytes;
		} else if (agent_is_probe(event)) {
			setup->probes[setup->agent.probe_count++] = event;
		} else if (!setup->agent.event) {
			setup->agent.event = event;
		} else {
			log_error("--event: '%s' and '%s': there may be one event beside any number of probes",
				  setup->agent.event, event);
			return -EINVAL;
		}
	}
	return 0;
}

/* There is no runtime called @word. */
static int refuse_runtime(const char *word)
{
	struct nearest nearest = nearest_to(word);
	const struct runtime_word *words;
	size_t count;

	words = runtime_words(&count);
	for (size_t i = 0; i < count; i++)
		nearest_offer(&nearest, words[i].word);
	if (nearest.best)
		log_error("--runtimes: there is no '%s'; did you mean %s?", word, nearest.best);
	else
		log_error("--runtimes: there is no '%s'; 'hearth help record' has the names", word);
	return -EINVAL;
}

static int set_runtimes(struct agent_setup *setup, const struct string_list *words)
{
	for (size_t i = 0; i < words->count; i++)
		if (runtime_choose(words->items[i], i == 0, &setup->agent.runtimes_off))
			return refuse_runtime(words->items[i]);
	return 0;
}

static void set_filter(struct agent_filter *filter, const struct config *config)
{
	filter->pids = config->pids.items;
	filter->pid_count = config->pids.count;
	filter->tids = config->tids.items;
	filter->tid_count = config->tids.count;
	filter->no_inherit = config->no_inherit;
	filter->cgroups = (const char *const *)config->cgroups.items;
	filter->cgroup_count = config->cgroups.count;
	filter->containers = (const char *const *)config->containers.items;
	filter->container_count = config->containers.count;
	filter->comms = (const char *const *)config->comms.items;
	filter->comm_count = config->comms.count;
	filter->min_age_ns = config->min_age_ns;
	filter->idle = config->idle;
	filter->no_kernel = config->no_kernel;
	filter->kernel_only = config->kernel;
}

static int check_attributes(const char *text)
{
	struct attributes parsed = ATTRIBUTES_EMPTY;
	int err = text ? attributes_parse(&parsed, str_z(text)) : 0;

	attributes_fini(&parsed);
	if (err == -EINVAL)
		log_error("--resource-attributes: '%s' is not KEY=VALUE,... with %%XX for what is no plain character", text);
	return err;
}

/* Called before pids are looked up. */
static int set_proc(const struct config *config)
{
	struct agent_error error = { "" };
	struct pid_space ignored;
	int err = proc_root_set(config->proc);

	if (err) {
		log_error("--proc: '%s' is too long: %d characters at most", config->proc, PROC_ROOT_MAX_BYTES - 1);
		return err;
	}
	err = proc_root_space(&ignored, &error);
	if (err)
		log_error("%s", error.message);
	return err;
}

static int settle(struct agent_setup *setup)
{
	struct agent_error error = { "" };
	const char *option = NULL;
	int err = agent_config_settle(&setup->agent, &option, &error);

	if (err)
		log_error("--%s: %s", option, error.message[0] ? error.message : strerror(-err));
	return err;
}

int agent_setup_init(struct agent_setup *setup, const struct config *config)
{
	int err;

	*setup = (struct agent_setup){
		.agent = {
			.freq_hz = (unsigned)config->freq_hz,
			.period = config->period,
			.malloc_of_command = config->operand_count > 0,
			.off_cpu_ns = !config->off_cpu && !config->wakers ? 0
				      : config->off_cpu_from_ns ? config->off_cpu_from_ns
								: OFF_CPU_USUAL,
			.heap = config->heap,
			.memory_bytes = config->memory ? config->memory_every : 0,
			.wakers = config->wakers,
			.report_interval_ns = config->report_interval_ns,
			.report_jitter = config->report_jitter,
			.env_vars = (const char *const *)config->env_vars.items,
			.env_var_count = config->env_vars.count,
			.service_name = config->service_name,
			.resource_attributes = config->resource_attributes,
			.stack_chunks = (unsigned)config->stack_chunks,
			.ring_bytes = config->ring_bytes,
			.map_scale = (unsigned)config->map_scale,
			.bpf_log_level = (unsigned)config->bpf_log_level,
			.error_frames = config->error_frames,
			.interpreter_frames = config->interpreter_frames,
			.no_version_check = config->no_version_check,
			.unsafe_kernel = config->unsafe_kernel,
			.symbols = !strcmp(config->symbols, "off")	? SYMBOLS_OFF
				   : !strcmp(config->symbols, "tables") ? SYMBOLS_TABLES
									: SYMBOLS_FULL,
			.symbol_cache = config->symbol_cache,
			.symbol_cache_bytes = config->symbol_cache_bytes,
			.no_helper = config->no_helper,
			.no_bpf_loop = config->no_bpf_loop,
		},
	};
	set_filter(&setup->agent.filter, config);
	err = set_proc(config);
	if (!err)
		err = set_events(setup, &config->events, config->memory_every);
	if (!err)
		err = set_cpus(setup, config->cpus);
	if (!err)
		err = set_uids(setup, &config->uids);
	if (!err)
		err = set_runtimes(setup, &config->runtimes);
	if (!err)
		err = check_attributes(config->resource_attributes);
	return err ? err : settle(setup);
}

void agent_setup_fini(struct agent_setup *setup)
{
	agent_config_fini(&setup->agent);
	free(setup->cpus);
	free(setup->uids);
	free(setup->probes);
	*setup = (struct agent_setup){ 0 };
}
