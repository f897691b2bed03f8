/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading and feeding the kernel half. The skeleton is opened, its options and map sizes set for this machine, loaded; then
 * agent/kernel/sampler_events.c lets the machine's events run the program. Map values carry unique sequence numbers so that
 * the program sees when an element was rewritten under it.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/cpu/cpu.h"
#include "agent/kernel/kernel_types.h"
#include "agent/kernel/map_sizes.h"
#include "agent/kernel/perf_event.h"
#include "agent/kernel/sampler_allocs.h"
#include "agent/kernel/sampler_filter.h"
#include "agent/kernel/sampler_memory.h"
#include "agent/kernel/sampler_probes.h"
#include "agent/kernel/sampler_rings.h"
#include "agent/kernel/sampler_state.h"
#include "agent/kernel/sampler_waits.h"
#include "agent/kernel/verifier_log.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

enum {
	DEFAULT_CHUNKS = 64,
	UNKNOWN_HZ = 1000,	  /* samples a second to make room for, where nobody knows how often an event comes */
	CHUNKS_PER_SECOND = 4096, /* chunks of one CPU a second at least, 16 MB of stack; twice that may be saved up */
	CHUNKS_A_SAMPLE = 16,	  /* room for every sample of a high frequency to miss, as those of short processes do */
};

/* Prints libbpf's messages (the verifier's log is one of many lines) for --verbose. */
__attribute__((format(printf, 2, 0))) static int libbpf_message(enum libbpf_print_level level, const char *format,
								va_list args)
{
	AUTO_FREE char *text = NULL;

	if (level == LIBBPF_DEBUG || !log_is_enabled(LOG_DEBUG) || vasprintf(&text, format, args) < 0)
		return 0;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		if (*line)
			log_debug("libbpf: %s", line);
	return 0;
}

static int explain(struct agent_error *err, int error, const char *what)
{
	if (error == -EPERM || error == -EACCES)
		snprintf(err->message, sizeof(err->message),
			 "%s: permission denied. Sampling needs root: run it with sudo; in a container with --pid=host and "
			 "the "
			 "capabilities that 'hearth check' misses there, or --privileged.",
			 what);
	else
		snprintf(err->message, sizeof(err->message), "%s: %s. 'hearth check' says what this kernel allows.", what,
			 strerror(-error));
	return error;
}

static bool has_helper(enum bpf_func_id helper)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, helper, NULL) == 1;
}

/* Sizes the caches, LRU hashes that the kernel allocates whole. */
static void size_caches(struct sampler *s, unsigned scale)
{
	struct sampler_bpf *skel = s->skel;
	struct map_sizes sizes;
	struct map_host host;

	map_host_read(&host);
	host.cpus = s->possible_cpus;
	sizes = map_sizes_choose(&host, scale);
	bpf_map__set_max_entries(skel->maps.procs, sizes.procs);
	bpf_map__set_max_entries(skel->maps.mappings, sizes.mappings);
	bpf_map__set_max_entries(skel->maps.unwind_blocks, sizes.blocks);
}

/* How many samples a second and CPU to make room for; @unknown_hz of each kind of which nobody knows. */
static unsigned expected_rate(const struct sampler *s, unsigned unknown_hz)
{
	unsigned sum = 0;

	for (uint32_t i = 0; i < s->kind_cnt; i++) {
		const struct sampled *what = s->kinds[i].what;

		sum += what->ops->expected_hz ? what->ops->expected_hz(what) : unknown_hz;
	}
	return sum;
}

/* Sets options and sizes for this machine, between open and load. */
static void configure(struct sampler *s, const struct agent_config *config)
{
	struct sampler_bpf *skel = s->skel;
	uint32_t chunks = config->stack_chunks ? config->stack_chunks : DEFAULT_CHUNKS;
	bool loop = !config->no_bpf_loop && has_helper(BPF_FUNC_loop), is_used = sampler_events_use_entry(s);
	unsigned rate = expected_rate(s, UNKNOWN_HZ);

	s->tail_form = !loop;
	s->log_level = config->bpf_log_level;
	bpf_program__set_autoload(skel->progs.on_sample, loop && is_used);
	bpf_program__set_autoload(skel->progs.on_sample_tail, !loop && is_used);
	bpf_program__set_autoload(skel->progs.walk_tail, !loop && is_used);
	bpf_program__set_autoload(skel->progs.send_tail, !loop && is_used);
	sampler_events_configure(s);
	sampler_filter_configure(skel, &config->filter);
	sampler_rings_choose(s, config->ring_bytes, expected_rate(s, 0)); /* rings grow where there is more */
	skel->rodata->cfg_pid_ns = s->pid_ns;
	skel->rodata->cfg_rings = s->ring_cnt;
	skel->rodata->cfg_wake_bytes = (uint32_t)(s->ring_bytes / 4);
	skel->rodata->cfg_stack_chunks = chunks < MAX_STACK_CHUNKS ? chunks : MAX_STACK_CHUNKS;
	skel->rodata->cfg_chunk_cost_ns = NSEC_PER_SEC / (rate > CHUNKS_PER_SECOND / CHUNKS_A_SAMPLE ? rate * CHUNKS_A_SAMPLE
												     : CHUNKS_PER_SECOND);
	skel->rodata->cfg_chunk_burst_ns = 2 * NSEC_PER_SEC;
	skel->rodata->cfg_code_mask = cpu_code_mask();
	skel->rodata->cfg_task_btf = has_helper(BPF_FUNC_get_current_task_btf) && has_helper(BPF_FUNC_task_pt_regs);
	skel->rodata->cfg_find_vma = loop && skel->rodata->cfg_task_btf && has_helper(BPF_FUNC_find_vma);
	size_caches(s, config->map_scale);
	skel->rodata->cfg_levels = s->levels;
	bpf_map__set_max_entries(skel->maps.levels, s->possible_cpus);
	bpf_map__set_max_entries(skel->maps.cpu_states, sampler_slots(s));
	bpf_map__set_max_entries(skel->maps.scratches, sampler_slots(s));
	bpf_map__set_max_entries(skel->maps.first_level, sampler_slots(s) * FIRST_LEVEL_ENTRIES);
}

void sampler_raise_limits(void)
{
	struct rlimit memory = { RLIM_INFINITY, RLIM_INFINITY }, files;

	/* kernels before 5.11 charge maps to it */
	(void)setrlimit(RLIMIT_MEMLOCK, &memory);
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

static int explain_load(const struct agent_config *config, int error, struct agent_error *err)
{
	if (error == -ENOSPC && config->bpf_log_level) /* then the log is cut and nothing is loaded */
		snprintf(err->message, sizeof(err->message),
			 "the verifier's log is longer than its %u MB: take --bpf-log-level 1", verifier_log_bytes() >> 20);
	else if (error == -ENOMEM && config->map_scale)
		snprintf(err->message, sizeof(err->message),
			 "the kernel has no memory for caches so large: take a smaller --map-scale than %u",
			 config->map_scale);
	else
		return explain(err, error, "cannot load the BPF programs");
	return error;
}

/* Tells the programs that are called which they are. */
static int link_programs(struct sampler *s)
{
	const struct bpf_map *programs = s->skel->maps.programs;

	if (!sampler_events_use_entry(s))
		return 0;
	sampler_chains_add_caller(
		s, &(struct chain_caller){ .type = bpf_program__type(sampler_entry(s)), .programs = bpf_map__fd(programs) });
	return s->tail_form ? sampler_set_called(programs, s->skel->progs.walk_tail, s->skel->progs.send_tail) : 0;
}

static int load(struct sampler *s, const struct agent_config *config, struct agent_error *err)
{
	int error;

	sampler_raise_limits();
	libbpf_set_print(libbpf_message);
	s->skel = sampler_bpf__open_opts(kernel_types_opts());
	if (!s->skel)
		return explain(err, -errno, "cannot open the BPF programs (no BTF in this kernel?)");
	configure(s, config);
	sampler_chains_configure(s, config);
	error = sampler_rings_make(s);
	if (error)
		return explain(err, error, "cannot make the ring buffers");
	error = sampler_load_object(s, s->skel->obj, s->skel->skeleton);
	if (error)
		return explain_load(config, error, err);
	error = link_programs(s);
	if (error)
		return explain(err, error, "cannot link the BPF programs");
	error = sampler_filter_fill(s->skel, &config->filter, err);
	if (error)
		return error;
	error = sampler_events_load(s, err);
	if (error)
		return error;
	log_debug("kernel maps: %u processes, %u mappings, %u blocks of unwind rows; %.1f MB with all others",
		  bpf_map__max_entries(s->skel->maps.procs), bpf_map__max_entries(s->skel->maps.mappings),
		  bpf_map__max_entries(s->skel->maps.unwind_blocks), (double)sampler_map_bytes(s) / 1e6);
	error = sampler_bpf__attach(s->skel);
	if (error)
		return explain(err, error, "cannot attach to task_newtask");
	error = sampler_rings_wait(s);
	return error ? explain(err, error, "cannot put the ring buffers in place") : 0;
}

int sampler_new(const struct agent_config *config, const struct sampled *const *kinds, uint32_t count, uint32_t pid_ns,
		struct sampler **ret, struct agent_error *err)
{
	struct sampler *s = calloc(1, sizeof(*s));
	int error;

	if (!s)
		return -ENOMEM;
	for (s->kind_cnt = 0; s->kind_cnt < count; s->kind_cnt++) {
		s->kinds[s->kind_cnt] = (struct sampled_kind){ .what = kinds[s->kind_cnt], .fd = -1 };
		s->levels += kinds[s->kind_cnt]->ops->levels;
	}
	s->pid_ns = pid_ns;
	s->possible_cpus = (uint32_t)libbpf_num_possible_cpus();
	error = load(s, config, err);
	if (error) {
		sampler_free(s);
		return error;
	}
	*ret = s;
	return 0;
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	sampler_events_free(s);
	sampler_waits_free(s);
	sampler_probes_free(s);
	sampler_memory_free(s);
	sampler_allocs_free(s);
	sampler_rings_free(s);
	sampler_chains_free(s);
	sampler_bpf__destroy(s->skel);
	free(s);
}

/* --- reading --- */

void sampler_counters(const struct sampler *s, uint64_t counters[COUNTER_MAX])
{
	int fd = bpf_map__fd(s->skel->maps.cpu_states);

	memset(counters, 0, COUNTER_MAX * sizeof(*counters));
	for (uint32_t slot = 0; slot < sampler_slots(s); slot++) {
		struct cpu_state state;

		if (bpf_map_lookup_elem(fd, &slot, &state))
			continue;
		for (int i = 0; i < COUNTER_MAX; i++)
			counters[i] += state.counters[i];
	}
}

/* Adds what came while all levels of its CPU were taken, which counts as taken only here. */
static void add_refused(const struct sampler *s, uint32_t kind, struct kind_counts *counts)
{
	int fd = bpf_map__fd(s->skel->maps.levels);
	struct sample_sum *lost = &counts->lost[KERNEL_LOSS_LEVEL];

	for (uint32_t cpu = 0; cpu < s->possible_cpus; cpu++) {
		struct level_state state;

		if (bpf_map_lookup_elem(fd, &cpu, &state))
			continue;
		lost->samples += state.refused[kind];
		lost->value += state.refused_value[kind];
	}
	counts->taken.samples += lost->samples;
	counts->taken.value += lost->value;
}

void sampler_kind_counters(const struct sampler *s, uint32_t kind, struct kind_counts *ret)
{
	int fd = bpf_map__fd(s->skel->maps.cpu_states);

	*ret = (struct kind_counts){ 0 };
	for (uint32_t slot = 0; slot < sampler_slots(s); slot++) {
		struct cpu_state state;

		if (bpf_map_lookup_elem(fd, &slot, &state))
			continue;
		ret->taken.samples += state.taken[kind];
		ret->taken.value += state.taken_value[kind];
		for (int i = 0; i < KERNEL_LOSS_MAX; i++) {
			ret->lost[i].samples += state.lost[i][kind];
			ret->lost[i].value += state.lost_value[i][kind];
		}
	}
	add_refused(s, kind, ret);
	sampler_waits_count(s, kind, &ret->taken);
}

uint64_t sampler_threads_refused(const struct sampler *s)
{
	return sampler_waits_refused(s);
}

uint64_t sampler_malformed(const struct sampler *s)
{
	return s->malformed;
}

/* --- the caches --- */

static int update(struct bpf_map *map, const void *key, const void *value)
{
	return bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY) ? -errno : 0;
}

int sampler_set_proc(struct sampler *s, struct proc_value *value)
{
	value->seq_head = value->seq_tail = ++s->seq;
	return update(s->skel->maps.procs, &value->pid, value);
}

int sampler_forget_proc(struct sampler *s, uint32_t pid)
{
	return bpf_map_delete_elem(bpf_map__fd(s->skel->maps.procs), &pid) ? -errno : 0;
}

int sampler_set_mapping(struct sampler *s, struct mapping_value *value)
{
	struct mapping_key key = { .asid = value->asid, .shift = value->shift, .piece = value->piece };

	value->seq_head = value->seq_tail = ++s->seq;
	return update(s->skel->maps.mappings, &key, value);
}

int sampler_set_block(struct sampler *s, struct unwind_block *block)
{
	struct block_key key = { .file = block->file, .block = block->block, .part = block->part };

	block->seq_head = block->seq_tail = ++s->seq;
	return update(s->skel->maps.unwind_blocks, &key, block);
}

void sampler_forget_block(struct sampler *s, uint32_t file, uint32_t block)
{
	struct block_key key = { .file = file, .block = block };
	int fd = bpf_map__fd(s->skel->maps.unwind_blocks);

	while (key.part < MAX_BLOCK_PARTS && !bpf_map_delete_elem(fd, &key))
		key.part++;
}

int sampler_set_capture(struct sampler *s, uint32_t number, const struct capture_class *what)
{
	return update(s->skel->maps.capture_classes, &number, what);
}

int sampler_filter_add(struct sampler *s, uint32_t pid)
{
	uint64_t key = sampler_filter_key(s->skel, pid), since = 0;

	return update(s->skel->maps.filter_pids, &key, &since);
}

bool sampler_filter_has(const struct sampler *s, uint32_t pid)
{
	uint64_t key = sampler_filter_key(s->skel, pid), since;

	return s->skel->rodata->cfg_filter_pids &&
	       !bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.filter_pids), &key, &since);
}

void sampler_filter_remove(struct sampler *s, uint32_t pid)
{
	uint64_t key = sampler_filter_key(s->skel, pid), since;

	if (s->skel->rodata->cfg_filter_pids && !bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.filter_pids), &key, &since) &&
	    !since)
		(void)bpf_map_delete_elem(bpf_map__fd(s->skel->maps.filter_pids), &key);
}

/* --- facts about the sampler --- */

static uint64_t map_bytes(int fd)
{
	char path[64], line[128];
	AUTO_FCLOSE FILE *f = NULL;
	unsigned long long bytes = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "memlock: %llu", &bytes) != 1)
		;
	return bytes;
}

uint64_t sampler_map_bytes(const struct sampler *s)
{
	uint64_t sum = 0;
	struct bpf_map *map;

	bpf_object__for_each_map(map, s->skel->obj) sum += map_bytes(bpf_map__fd(map));
	for (uint32_t i = 0; i < s->ring_cnt; i++)
		sum += map_bytes(s->rings[i].fd);
	return sum;
}

const char *sampler_form(const struct sampler *s)
{
	return s->tail_form ? "tail calls" : "bpf_loop";
}

uint32_t sampler_cpus(const struct sampler *s)
{
	return s->kind_cnt ? s->kinds[0].event_cnt : 0;
}
