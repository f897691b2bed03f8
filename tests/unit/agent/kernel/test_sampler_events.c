/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler as it is loaded: options and sizes of its maps, in which order all is made and taken down, and that what is
 * refused leaves nothing behind. Then its events: one a kind and CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/cpu/cpu.h"
#include "agent/kernel/map_sizes.h"
#include "agent/kernel/sampler_allocs.h"
#include "agent/kernel/sampler_memory.h"
#include "agent/kernel/sampler_probes.h"
#include "agent/kernel/sampler_rings.h"
#include "agent/kernel/sampler_waits.h"
#include "agent/probe/allocator.h"
#include "agent/probe/probe.h"
#include "agent/proc/cpu_idle.h"
#include "tests/unit/agent/kernel/bpf_stand_in.h"

/* --- rings --- */

static int rings_made;

void sampler_rings_choose(struct sampler *s, uint64_t wanted_bytes, unsigned freq_hz)
{
	s->ring_cnt = 1;
	s->ring_bytes = wanted_bytes;
	note("rings for %u Hz\n", freq_hz);
}

int sampler_rings_make(struct sampler *s)
{
	assert_int_equal(s->ring_cnt, 1);
	if (is_refused("rings"))
		return -errno;
	rings_made++;
	return 0;
}

int sampler_rings_wait(struct sampler *s)
{
	assert_int_equal(s->ring_cnt, 1);
	assert_int_equal(rings_made, 1);
	return is_refused("places") ? -errno : 0;
}

void sampler_rings_free(struct sampler *s)
{
	note("rings end\n");
	s->ring_cnt = 0;
	rings_made = 0;
}

uint64_t sampler_rings_bytes(const struct sampler *s)
{
	return s->ring_bytes;
}

/* --- the machine --- */

void map_host_read(struct map_host *ret)
{
	*ret = (struct map_host){ .cpus = 512, .processes = 2000, .memory_bytes = 24ull << 30 };
}

struct map_sizes map_sizes_choose(const struct map_host *host, unsigned scale)
{
	assert_int_equal(host->cpus, STAND_IN_CPUS);
	assert_int_equal(host->processes, 2000);
	return (struct map_sizes){ .procs = 100 + scale, .mappings = 200, .blocks = 300 };
}

static uint64_t idle_ns[4];

int cpu_idle_each(void (*fn)(void *arg, uint32_t cpu, uint64_t idle_ns), void *arg)
{
	for (uint32_t i = 0; i < ARRAY_LEN(idle_ns); i++)
		fn(arg, i, idle_ns[i]);
	return 0;
}

/* --- kinds --- */

static struct agent_config config;
static struct agent_error err;

static unsigned hz(const struct sampled *what)
{
	return what->freq_hz;
}

static void configure_kind(struct sampler *s, const struct sampled_kind *k)
{
	note("configure %u\n", (unsigned)(k - s->kinds));
}

static int load_kind(struct sampler *s, const struct sampled_kind *k, struct agent_error *error)
{
	if (is_refused("kind")) {
		snprintf(error->message, sizeof(error->message), "no such kind");
		return -errno;
	}
	note("load %u\n", (unsigned)(k - s->kinds));
	return 0;
}

static int add_cpu(struct sampler *s, struct sampled_kind *k, struct cpu_event *e)
{
	e->fd = sampler_open_event(s, k, e->cpu);
	return e->fd < 0 ? e->fd : 0;
}

static void enable_cpu(struct sampler *s, struct sampled_kind *k, struct cpu_event *e, bool on)
{
	note("cpu %u of %u %s\n", e->cpu, (unsigned)(k - s->kinds), on ? "on" : "off");
	if (on && is_refused("enable"))
		return;
	e->since_ns = on;
}

static int enable_all(struct sampler *s, struct sampled_kind *k, bool on)
{
	if (is_refused("all"))
		return -errno;
	note("all of %u %s\n", (unsigned)(k - s->kinds), on ? "on" : "off");
	return 0;
}

static uint64_t not_sampled(struct sampler *s, struct sampled_kind *k)
{
	return k - s->kinds ? 7 : 3;
}

static const struct sampled_ops timer_ops = {
	.levels = 1, .expected_hz = hz, .add_cpu = add_cpu, .enable_cpu = enable_cpu, .not_sampled = not_sampled
};
static const struct sampled_ops own_ops = { .levels = 2,
					    .has_own_programs = true,
					    .configure = configure_kind,
					    .load = load_kind,
					    .enable_cpu = enable_cpu,
					    .enable = enable_all,
					    .not_sampled = not_sampled };
static const struct sampled timer = { .ops = &timer_ops,
				      .attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK },
				      .freq_hz = 100 };
static const struct sampled own = { .ops = &own_ops };
static const struct sampled *const both[] = { &timer, &own };

static int begin(void **state)
{
	(void)state;
	kernel_begins();
	memset(&config, 0, sizeof(config));
	memset(idle_ns, 0, sizeof(idle_ns));
	config.ring_bytes = 4096;
	err.message[0] = '\0';
	return 0;
}

static struct sampler *made(const struct sampled *const *kinds, uint32_t count, int wanted)
{
	struct sampler *s = NULL;

	assert_int_equal(sampler_new(&config, kinds, count, 77, &s, &err), wanted);
	assert_int_equal(s != NULL, !wanted);
	return s;
}

static void done(struct sampler *s)
{
	sampler_free(s);
	assert_int_equal(kernel.live, 0);
	assert_int_equal(rings_made, 0);
	asked_whatever();
}

static void options_are_those_of_this_machine(void **state)
{
	struct sampler *s;

	(void)state;
	config.map_scale = 1;
	s = made(both, 2, 0);
	asked("configure 1\nrings for 100 Hz\nload sampler_bpf: on_sample\nload 1\nattach all of sampler_bpf\n");
	assert_int_equal(s->skel->rodata->cfg_pid_ns, 77);
	assert_int_equal(s->skel->rodata->cfg_rings, 1);
	assert_int_equal(s->skel->rodata->cfg_wake_bytes, 1024);
	assert_int_equal(s->skel->rodata->cfg_stack_chunks, 64);
	/* 1100 samples a second, each of 16 chunks */
	assert_int_equal(s->skel->rodata->cfg_chunk_cost_ns, 1000000000 / (1100 * 16));
	assert_int_equal(s->skel->rodata->cfg_chunk_burst_ns, 2000000000);
	assert_true(s->skel->rodata->cfg_code_mask == cpu_code_mask());
	assert_true(s->skel->rodata->cfg_task_btf && s->skel->rodata->cfg_find_vma);
	assert_int_equal(s->skel->rodata->cfg_levels, 3);
	assert_int_equal(bpf_map__max_entries(s->skel->maps.procs), 101);
	assert_int_equal(bpf_map__max_entries(s->skel->maps.mappings), 200);
	assert_int_equal(bpf_map__max_entries(s->skel->maps.unwind_blocks), 300);
	assert_int_equal(bpf_map__max_entries(s->skel->maps.levels), STAND_IN_CPUS);
	assert_int_equal(bpf_map__max_entries(s->skel->maps.cpu_states), 3 * STAND_IN_CPUS);
	assert_int_equal(bpf_map__max_entries(s->skel->maps.scratches), 3 * STAND_IN_CPUS);
	assert_int_equal(bpf_map__max_entries(s->skel->maps.first_level), 3 * STAND_IN_CPUS * FIRST_LEVEL_ENTRIES);
	assert_int_equal(s->caller_cnt, 1);
	assert_int_equal(s->callers[0].type, BPF_PROG_TYPE_PERF_EVENT);
	assert_int_equal(s->callers[0].programs, bpf_map__fd(s->skel->maps.programs));
	assert_string_equal(sampler_form(s), "bpf_loop");
	assert_int_equal(sampler_not_sampled(s), 10);
	assert_int_equal(sampler_malformed(s), 0);
	assert_int_equal(sampler_threads_refused(s), 0);
	sampler_free(s);
	asked("all of 1 off\nrings end\nclose sampler_bpf\n");
}

static void little_is_made_room_for_at_least(void **state)
{
	static const struct {
		unsigned freq_hz;
		uint32_t chunks, stack_chunks;
		uint64_t cost_ns;
	} cases[] = {
		{ 256, 0, 64, 1000000000 / 4096 },
		{ 257, 5, 5, 1000000000 / (257 * 16) },
		{ 1, MAX_STACK_CHUNKS, MAX_STACK_CHUNKS, 1000000000 / 4096 },
		{ 1, MAX_STACK_CHUNKS + 1, MAX_STACK_CHUNKS, 1000000000 / 4096 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sampled what = timer;
		const struct sampled *const one[] = { &what };
		struct sampler *s;

		begin(NULL);
		what.freq_hz = cases[i].freq_hz;
		config.stack_chunks = cases[i].chunks;
		s = made(one, 1, 0);
		assert_int_equal(s->skel->rodata->cfg_stack_chunks, cases[i].stack_chunks);
		assert_int_equal(s->skel->rodata->cfg_chunk_cost_ns, cases[i].cost_ns);
		done(s);
	}
}

static void older_kernels_have_tail_calls(void **state)
{
	struct sampler *s;

	(void)state;
	for (int asked_for = 0; asked_for < 2; asked_for++) {
		begin(NULL);
		config.no_bpf_loop = asked_for;
		config.bpf_log_level = 1;
		kernel.helpers_missing = !asked_for;
		s = made(both, 2, 0);
		asked("configure 1\nrings for 100 Hz\nload sampler_bpf: on_sample_tail walk_tail send_tail\n"
		      "programs[16] = walk_tail\nprograms[17] = send_tail\nload 1\nattach all of sampler_bpf\n");
		assert_string_equal(sampler_form(s), "tail calls");
		assert_int_equal(s->log_level, 1);
		assert_int_equal(s->skel->rodata->cfg_task_btf, asked_for);
		assert_false(s->skel->rodata->cfg_find_vma);
		done(s);
	}
}

static void each_helper_counts(void **state)
{
	static const struct {
		enum bpf_func_id missing;
		bool has_loop, has_task, finds_vma;
	} cases[] = {
		{ BPF_FUNC_loop, false, true, false },
		{ BPF_FUNC_get_current_task_btf, true, false, false },
		{ BPF_FUNC_task_pt_regs, true, false, false },
		{ BPF_FUNC_find_vma, true, true, false },
		{ BPF_FUNC_get_attach_cookie, true, true, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sampler *s;

		begin(NULL);
		kernel.missing = cases[i].missing;
		s = made(both, 1, 0);
		assert_int_equal(!s->tail_form, cases[i].has_loop);
		assert_int_equal(s->skel->rodata->cfg_task_btf, cases[i].has_task);
		assert_int_equal(s->skel->rodata->cfg_find_vma, cases[i].finds_vma);
		done(s);
	}
}

static struct probe probe = { .type = PROBE_KPROBE, .target = (char *)"k", .label = (char *)"k" };
static struct probe_set probes = { .list = &probe, .count = 1 };
static struct alloc_place place = { .pid = 7, .file = (char *)"/f" };
static struct alloc_set allocs = { .list = &place, .count = 1 };

static int load_all(struct sampler *s, const struct sampled_kind *k, struct agent_error *error)
{
	const struct wait_kinds waits = { .blocked = 0 };

	sampler_waits_load(s, 1, &waits);
	sampler_memory_load(s, 1, 0);
	return sampler_probes_load(s, k->what, 0, error) || sampler_allocs_load(s, k->what, 0, error);
}

static void all_programs_end_before_those_that_they_share_with(void **state)
{
	const struct sampled_ops ops = {
		.levels = 1, .has_own_programs = true, .load = load_all, .enable_cpu = enable_cpu, .not_sampled = not_sampled
	};
	const struct sampled all = { .ops = &ops, .probes = &probes, .allocs = &allocs, .period = 1 };
	const struct sampled *const one[] = { &all };
	int files = open_descriptors();
	struct sampler *s = made(one, 1, 0);

	(void)state;
	assert_int_equal(sampler_enable(s, true), 0);
	asked_whatever();
	sampler_free(s);
	asked("detach tell_asleep\nclose offcpu_bpf\nclose probe_bpf\nclose memory_bpf\nclose allocs_bpf\nrings end\n"
	      "close sampler_bpf\n");
	assert_int_equal(open_descriptors(), files);
	assert_int_equal(kernel.live, 0);
}

/* Kinds with programs of their own need not the sampler's. */
static void programs_that_nobody_needs_are_not_loaded(void **state)
{
	struct sampler *s;

	(void)state;
	for (int tail = 0; tail < 2; tail++) {
		begin(NULL);
		config.no_bpf_loop = tail;
		s = made(both + 1, 1, 0);
		asked("configure 0\nrings for 0 Hz\nload sampler_bpf:\nload 0\nattach all of sampler_bpf\n");
		assert_int_equal(s->caller_cnt, 0);
		assert_int_equal(sampler_cpus(s), 0);
		done(s);
	}
}

static void refusals_are_explained_and_all_is_taken_back(void **state)
{
	static const struct {
		const char *call;
		int error;
		unsigned log_level, map_scale;
		const char *says;
	} cases[] = {
		{ "load", EPERM, 0, 0, "cannot load the BPF programs: permission denied. Sampling needs root" },
		{ "load", EACCES, 0, 0, "cannot load the BPF programs: permission denied. Sampling needs root" },
		{ "load", EINVAL, 0, 0, "cannot load the BPF programs: Invalid argument. 'hearth check' says" },
		{ "load", ENOSPC, 0, 0, "cannot load the BPF programs: No space left on device" },
		{ "load", ENOSPC, 2, 0, "take --bpf-log-level 1" },
		{ "load", ENOMEM, 0, 0, "cannot load the BPF programs: Cannot allocate memory" },
		{ "load", ENOMEM, 0, 3, "take a smaller --map-scale than 3" },
		{ "rings", ENOMEM, 0, 0, "cannot make the ring buffers: Cannot allocate memory" },
		{ "places", EBUSY, 0, 0, "cannot put the ring buffers in place: Device or resource busy" },
		{ "kind", ENOTSUP, 0, 0, "no such kind" },
		{ "attach", ENOENT, 0, 0, "cannot attach to task_newtask: No such file or directory" },
		{ "update", ENOENT, 0, 0, "cannot link the BPF programs: No such file or directory" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin(NULL);
		config.no_bpf_loop = true;
		config.bpf_log_level = cases[i].log_level;
		config.map_scale = cases[i].map_scale;
		kernel_refuses(cases[i].call, 0, cases[i].error);
		made(both, 2, -cases[i].error);
		if (!strstr(err.message, cases[i].says))
			fail_msg("'%s' and not '%s'", err.message, cases[i].says);
		assert_non_null(strstr(kernel.log, "rings end\nclose sampler_bpf\n"));
		assert_int_equal(rings_made, 0);
	}
	sampler_free(NULL);
}

/* --- events --- */

static void each_cpu_and_kind_has_its_event(void **state)
{
	int files = open_descriptors();
	struct sampler *s = made(both, 2, 0);

	(void)state;
	asked_whatever();
	assert_int_equal(sampler_add_cpu(s, 1), 0);
	asked("event of pid -1, cpu 1: type 1, config 0, period 10000000, disabled\nevent runs on_sample\n"
	      "cpu 1 of 0 off\ncpu 1 of 1 off\n");
	assert_int_equal(open_descriptors(), files + 1);
	assert_int_equal(sampler_add_cpu(s, 1), -EEXIST);
	asked("");
	assert_int_equal(sampler_add_cpu(s, 0), 0);
	assert_int_equal(sampler_cpus(s), 2);
	asked_whatever();
	idle_ns[1] = 500;
	assert_int_equal(sampler_enable(s, true), 0);
	asked("all of 1 on\ncpu 1 of 0 on\ncpu 0 of 0 on\ncpu 1 of 1 on\ncpu 0 of 1 on\n");
	assert_int_equal(s->kinds[0].events[0].idle_ns, 500);
	assert_int_equal(s->kinds[0].events[1].idle_ns, 0);
	idle_ns[2] = 900;
	assert_int_equal(sampler_add_cpu(s, 2), 0); /* begins at once */
	assert_non_null(strstr(kernel.log, "cpu 2 of 0 on\ncpu 2 of 1 on\n"));
	assert_int_equal(s->kinds[0].events[2].idle_ns, 900);
	asked_whatever();
	sampler_remove_cpu(s, 1);
	asked("cpu 1 of 0 off\ncpu 1 of 1 off\n");
	assert_int_equal(open_descriptors(), files + 2);
	assert_int_equal(sampler_cpus(s), 2);
	assert_int_equal(s->kinds[0].events[0].cpu, 2); /* the last one */
	sampler_remove_cpu(s, 1);
	asked("");
	/* one kind has it still */
	s->kinds[1].event_cnt = 0;
	assert_int_equal(sampler_add_cpu(s, 2), 0);
	asked("cpu 2 of 1 on\n");
	assert_int_equal(sampler_enable(s, false), 0);
	asked("all of 1 off\ncpu 2 of 0 off\ncpu 0 of 0 off\ncpu 2 of 1 off\n");
	done(s);
	assert_int_equal(open_descriptors(), files);
}

static void events_that_are_refused_leave_nothing(void **state)
{
	static const char *const calls[] = { "event", "ioctl" };
	int files = open_descriptors();
	struct sampler *s = made(both, 2, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		kernel_refuses(calls[i], 0, ENODEV);
		assert_int_equal(sampler_add_cpu(s, 0), -ENODEV);
		assert_int_equal(sampler_cpus(s), 0);
		assert_int_equal(open_descriptors(), files);
	}
	kernel.fail_call = NULL;
	assert_int_equal(sampler_add_cpu(s, 0), 0);
	assert_int_equal(sampler_add_cpu(s, 1), 0);
	kernel_refuses("all", 0, EBUSY);
	asked_whatever();
	assert_int_equal(sampler_enable(s, true), -EBUSY);
	asked("all fails\n");
	kernel_refuses("enable", 1, EINVAL);
	assert_int_equal(sampler_enable(s, true), -EINVAL);
	kernel.fail_call = NULL;
	done(s);
	assert_int_equal(open_descriptors(), files);
}

static void facts_are_those_of_maps(void **state)
{
	struct sampler *s = made(both, 2, 0);
	struct proc_value proc = { .pid = 3 };
	struct capture_class class = { .count = 2 };

	(void)state;
	assert_int_equal(sampler_map_bytes(s), 0); /* descriptors that are none */
	asked_whatever();
	assert_int_equal(sampler_set_capture(s, 5, &class), 0);
	assert_non_null(strstr(kernel.log, "capture_classes[5] = 28 bytes, 2\n"));
	kernel_refuses("update", 0, E2BIG);
	assert_int_equal(sampler_set_capture(s, 5, &class), -E2BIG);
	assert_int_equal(sampler_set_proc(s, &proc), -E2BIG);
	done(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(options_are_those_of_this_machine, begin),
		cmocka_unit_test_setup(little_is_made_room_for_at_least, begin),
		cmocka_unit_test_setup(older_kernels_have_tail_calls, begin),
		cmocka_unit_test_setup(each_helper_counts, begin),
		cmocka_unit_test_setup(all_programs_end_before_those_that_they_share_with, begin),
		cmocka_unit_test_setup(programs_that_nobody_needs_are_not_loaded, begin),
		cmocka_unit_test_setup(refusals_are_explained_and_all_is_taken_back, begin),
		cmocka_unit_test_setup(each_cpu_and_kind_has_its_event, begin),
		cmocka_unit_test_setup(events_that_are_refused_leave_nothing, begin),
		cmocka_unit_test_setup(facts_are_those_of_maps, begin),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
