/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of which an agent is made, made up: each that is made is written down, with what it is made of looked at, and so
 * is each that is freed. Include it after cmocka.h, in the one file of a binary.
 */
#ifndef HEARTH_TESTS_AGENT_PARTS_MADE_H
#define HEARTH_TESTS_AGENT_PARTS_MADE_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_state.h"
#include "agent/heap/heaps.h"
#include "agent/kernel/kernel_version.h"
#include "agent/kernel/perf_event.h"
#include "agent/kernel/sampler_filter.h"
#include "agent/names/indexes.h"
#include "agent/probe/allocator.h"
#include "agent/probe/probe.h"
#include "agent/proc/cgroups.h"
#include "agent/proc/proc_reader.h"
#include "agent/proc/proc_root.h"
#include "agent/readers.h"
#include "agent/runtime/choice.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { THINGS = 40 };

/* --- things that are made, and freed --- */

static struct thing {
	const char *name;
	bool is_alive;
} things[THINGS];
static unsigned thing_count, alive;
static struct buf calls;
static unsigned step_count, fails_at; /* of steps that may fail; 0: none does */
static const char *failing;	      /* the step that did */
static int failure;
static struct agent *agent;
static struct agent_config config;
static struct session_kinds kinds;
static struct metrics *const some_metrics = (struct metrics *)&config;

static int step(const char *name)
{
	buf_printf(&calls, "%s ", name);
	if (++step_count != fails_at)
		return 0;
	failing = name;
	return failure;
}

static int make(const char *name, void *ret)
{
	struct thing *t = &things[thing_count];
	int err = step(name);

	assert_true(thing_count < THINGS - 1);
	if (err)
		return err;
	*t = (struct thing){ name, true };
	thing_count++;
	alive++;
	memcpy(ret, &t, sizeof(t));
	return 0;
}

static void unmake(const void *thing)
{
	struct thing *t = (struct thing *)(uintptr_t)thing;

	if (!t)
		return;
	assert_true(t->is_alive);
	t->is_alive = false;
	alive--;
	buf_printf(&calls, "~%s ", t->name);
}

/* It is that thing, and was not freed. */
static void is(const void *thing, const char *name)
{
	const struct thing *t = thing;

	if (!t || !t->is_alive || strcmp(t->name, name) != 0)
		fail_msg("%s was expected", name);
}

#define FREES(function, type)      \
	void function(type *thing) \
	{                          \
		unmake(thing);     \
	}

FREES(code_spaces_free, struct code_spaces)
FREES(facts_reader_free, struct facts_reader)
FREES(files_free, struct files)
FREES(heaps_free, struct heaps)
FREES(indexes_free, struct indexes)
FREES(interval_free, struct interval)
FREES(kernel_names_free, struct kernel_names)
FREES(late_free, struct late)
FREES(module_status_free, struct module_status)
FREES(names_free, struct names)
FREES(objects_free, struct objects)
FREES(pending_free, struct pending)
FREES(processes_free, struct processes)
FREES(runtimes_free, struct runtimes)
FREES(sampler_free, struct sampler)
FREES(side_band_free, struct side_band)
FREES(traces_free, struct traces)
FREES(truth_counts_free, struct truth_counts)
FREES(wait_stacks_free, struct wait_stacks)
FREES(wait_targets_free, struct wait_targets)

/* --- readers --- */

static void free_code_reader(struct elf_service *s)
{
	(void)s;
	alive--;
	buf_puts(&calls, "~code-reader ");
}

static const struct elf_service_ops reader_ops = { .free = free_code_reader };
static struct elf_service code_reader = { .ops = &reader_ops };
static struct file_opener *const an_opener = (struct file_opener *)&code_reader;

int readers_start(const struct agent_config *c, struct metrics *metrics, struct readers *r, struct agent_error *err)
{
	assert_true(c == &config && metrics == some_metrics && err);
	*r = (struct readers){ .code = &code_reader, .opener = an_opener };
	return step("readers");
}

void readers_stop(const struct readers *r)
{
	(void)r;
	buf_puts(&calls, "readers-stop ");
}

void readers_take(struct readers *from, struct readers *ret)
{
	assert_ptr_equal(from, config.readers);
	*ret = (struct readers){ .code = &code_reader, .opener = an_opener };
	buf_puts(&calls, "readers-take ");
}

int readers_hand_over(const struct readers *r, const struct agent_config *c, struct loop *loop, struct metrics *metrics,
		      struct files **files_ret, struct indexes **indexes_ret)
{
	int err;

	assert_true(!r->code && r->opener == an_opener && c == &config && loop == (struct loop *)&agent);
	assert_ptr_equal(metrics, some_metrics);
	alive++; /* the reader of code, which is the agent's now */
	err = make("files", files_ret);
	return err ? err : make("indexes", indexes_ret);
}

void agent_follow_files(struct agent *a, struct file_opener *opener)
{
	is(a->in.files, "files");
	assert_ptr_equal(opener, an_opener);
	buf_puts(&calls, "follow-files ");
}

void agent_follow_code(struct agent *a)
{
	is(a->in.code, "code");
	buf_puts(&calls, "follow-code ");
}

void proc_reader_on_wait(struct wait_hook hook)
{
	assert_null(hook.run);
	buf_puts(&calls, "no-hook ");
}

void proc_reader_stop(void)
{
	buf_puts(&calls, "proc-reader-stop ");
}

/* --- the other parts --- */

int kernel_is_supported(bool force, bool any_version, struct agent_error *err)
{
	assert_true(force == config.unsafe_kernel && any_version == config.no_version_check && err);
	return step("kernel");
}

int proc_root_space(struct pid_space *ret, struct agent_error *err)
{
	assert_non_null(err);
	*ret = (struct pid_space){ .ns = 4711, .is_ours = true };
	return step("pids");
}

int runtimes_new(uint32_t off, struct files *files, struct metrics *metrics, struct runtimes **ret)
{
	assert_true(off == config.runtimes_off && metrics == some_metrics);
	is(files, "files");
	return make("runtimes", ret);
}

void runtimes_map(void *runtimes, struct process *p, struct file *file, const char *path, uint32_t task)
{
	(void)runtimes;
	(void)p;
	(void)file;
	(void)path;
	(void)task;
}

int cgroup_find_mount(struct buf *out)
{
	buf_puts(out, "/groups");
	return 0;
}

int facts_reader_new(const char *const *variables, size_t count, const char *groups, struct metrics *metrics,
		     struct facts_reader **ret)
{
	assert_true(variables == config.env_vars && count == config.env_var_count && metrics == some_metrics);
	assert_string_equal(groups, "/groups");
	return make("facts", ret);
}

int objects_new(struct objects **ret)
{
	return make("objects", ret);
}

int code_spaces_new(struct elf_service *service, uint32_t off, struct files *files, struct objects *objects,
		    struct metrics *metrics, struct code_spaces **ret)
{
	int err;

	assert_ptr_equal(service, &code_reader);
	assert_int_equal(off, config.runtimes_off >> RUNTIME_OF_CODE);
	assert_ptr_equal(metrics, some_metrics);
	is(files, "files");
	is(objects, "objects");
	alive--; /* they have the reader */
	err = make("code", ret);
	return err;
}

void code_spaces_attach(struct code_spaces *cs, struct sampler *sampler)
{
	is(cs, "code");
	is(sampler, "sampler");
	buf_puts(&calls, "attach ");
}

void code_spaces_detach(struct code_spaces *cs)
{
	is(cs, "code");
	buf_puts(&calls, "detach ");
}

int processes_new(struct files *files, struct processes **ret)
{
	is(files, "files");
	return make("processes", ret);
}

void processes_on_map(struct processes *ps,
		      void (*fn)(void *arg, struct process *p, struct file *file, const char *path, uint32_t task),
		      void *arg)
{
	is(ps, "processes");
	is(arg, "runtimes");
	assert_ptr_equal(fn, runtimes_map);
	buf_puts(&calls, "on-map ");
}

int processes_scan(struct processes *ps)
{
	is(ps, "processes");
	return step("scan");
}

void processes_tell_chains(struct processes *ps, struct sampler *sampler)
{
	is(ps, "processes");
	is(sampler, "sampler");
	buf_puts(&calls, "tell-chains ");
}

int pending_new(uint32_t cpus, struct pending **ret)
{
	assert_int_equal(cpus, 4096);
	return make("pending", ret);
}

void intake_fini(struct intake *in)
{
	(void)in;
	buf_puts(&calls, "intake-fini ");
}

int indexes_folder(const struct indexes *x)
{
	is(x, "indexes");
	return 77;
}

int kernel_names_new(int dir_fd, struct metrics *metrics, struct kernel_names **ret)
{
	assert_int_equal(dir_fd, 77);
	assert_ptr_equal(metrics, some_metrics);
	return make("kernel-names", ret);
}

int traces_new(const struct kernel_names *kernel, struct traces **ret)
{
	is(kernel, "kernel-names");
	return make("traces", ret);
}

void traces_of_objects(struct traces *t, const struct objects *objects)
{
	is(t, "traces");
	is(objects, "objects");
	buf_puts(&calls, "of-objects ");
}

void traces_limit(struct traces *t, size_t bytes)
{
	is(t, "traces");
	assert_int_equal(bytes, (size_t)sysconf(_SC_NPROCESSORS_ONLN) * (2 << 20));
	buf_puts(&calls, "limit ");
}

int names_new(struct kernel_names *kernel, struct metrics *metrics, struct names **ret)
{
	assert_ptr_equal(metrics, some_metrics);
	is(kernel, "kernel-names");
	return make("names", ret);
}

int truth_counts_new(struct metrics *metrics, struct truth_counts **ret)
{
	assert_ptr_equal(metrics, some_metrics);
	return make("truths", ret);
}

int module_status_new(struct metrics *metrics, struct module_status **ret)
{
	assert_ptr_equal(metrics, some_metrics);
	return make("modules", ret);
}

int interval_new(struct names *names, struct runtimes *runtimes, struct truth_counts *truths, struct module_status *modules,
		 const struct agent_config *c, const struct session_kinds *of, struct interval **ret)
{
	is(names, "names");
	is(runtimes, "runtimes");
	is(truths, "truths");
	is(modules, "modules");
	assert_true(c == &config && of->count == kinds.count && of != &kinds);
	return make("interval", ret);
}

int sampler_new(const struct agent_config *c, const struct sampled *const *sampled, uint32_t count, uint32_t pid_ns,
		struct sampler **ret, struct agent_error *err)
{
	assert_true(c == &config && err);
	assert_int_equal(count, kinds.count);
	assert_int_equal(pid_ns, 4711);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(sampled[i]->freq_hz, kinds.list[i].what.freq_hz);
	return make("sampler", ret);
}

int late_new(struct processes *processes, struct files *files, struct code_spaces *code, struct sampler *sampler,
	     struct metrics *metrics, struct late **ret)
{
	is(processes, "processes");
	is(files, "files");
	is(code, "code");
	is(sampler, "sampler");
	assert_ptr_equal(metrics, some_metrics);
	return make("late", ret);
}

int wait_targets_new(struct metrics *metrics, struct wait_targets **ret)
{
	assert_ptr_equal(metrics, some_metrics);
	return make("targets", ret);
}

int wait_stacks_new(struct metrics *metrics, struct wait_stacks **ret)
{
	assert_ptr_equal(metrics, some_metrics);
	return make("waits", ret);
}

int side_band_new(struct metrics *metrics, bool has_pids, struct side_band **ret)
{
	assert_true(metrics == some_metrics && has_pids);
	return make("side-band", ret);
}

void side_band_wake_at_once(struct side_band *s)
{
	is(s, "side-band");
	buf_puts(&calls, "at-once ");
}

int heaps_new(struct intake *in, uint32_t first_kind, bool only_sampled, bool at_end, struct metrics *metrics,
	      struct heaps **ret)
{
	is(in->sampler, "sampler");
	assert_ptr_equal(metrics, some_metrics);
	buf_printf(&calls, "%u%s%s-", first_kind, only_sampled ? "-sampled" : "", at_end ? "-at-end" : "");
	return make("heaps", ret);
}

/* --- events, kinds, the rest of the agent --- */

int agent_choose_cpus(struct agent *a, const struct agent_filter *filter, struct agent_error *err)
{
	assert_true(a->cpus && a->cpu_cap == 4096 && filter == &config.filter && err);
	return step("choose-cpus");
}

int agent_follow_cpus(struct agent *a)
{
	is(a->in.side_band, "side-band");
	return step("cpus");
}

int agent_watch(struct agent *a)
{
	assert_int_equal(a->clock_fd, -1);
	return step("watch");
}

void agent_unwatch(struct agent *a)
{
	(void)a;
	buf_puts(&calls, "unwatch ");
}

int agent_metrics(struct agent *a)
{
	(void)a;
	return step("metrics");
}

void agent_metrics_off(struct agent *a)
{
	(void)a;
	buf_puts(&calls, "metrics-off ");
}

unsigned perf_event_max_freq(void)
{
	return 777;
}

const struct kind kind_alloc_objects, kind_contention;
static const struct kind a_kind;

int kinds_choose(const struct agent_config *c, struct session_kinds *ret, struct agent_error *err)
{
	assert_true(c == &config && err);
	ret->count = 2;
	return step("kinds");
}

void kinds_fini(struct session_kinds *k)
{
	(void)k;
	buf_puts(&calls, "~kinds ");
}

int sampler_filter_check(const struct agent_filter *filter, const char **option_ret, struct agent_error *err)
{
	assert_true(filter == &config.filter && err);
	*option_ret = "tid";
	return step("filter");
}

int allocator_add(struct alloc_set *set, uint32_t pid, struct agent_error *err)
{
	(void)err;
	assert_ptr_equal(set, &things);
	assert_int_equal(pid, 55);
	return step("allocator");
}

bool probe_is_text(const char *text)
{
	return strchr(text, ':');
}

/* --- --- */

static inline int begin(void **state)
{
	(void)state;
	thing_count = alive = step_count = fails_at = 0;
	failing = NULL;
	failure = -ENOMEM;
	kinds = (struct session_kinds){ .count = 1,
					.list = { { .kind = &a_kind, .event = "cycles", .what = { .freq_hz = 20 } } } };
	config = (struct agent_config){ .kinds = &kinds,
					.runtimes_off = 3u << RUNTIME_OF_CODE | 5,
					.report_interval_ns = 9 };
	buf_reset(&calls);
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	buf_fini(&calls);
	return 0;
}

#endif
