/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for time off the CPUs: what they are told, in which order they begin and end, and the walk over all threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kernel/kernel_ranges.h"
#include "agent/kernel/sampler_waits.h"
#include "bpf/offcpu.skel.h"
#include "tests/unit/agent/kernel/bpf_stand_in.h"

/* The first member of the state that is the file's own. */
struct waits_head {
	struct offcpu_bpf *skel;
};

static const struct kernel_ranges ranges = { .irqs = { { 10, 20 }, { 30, 40 } } };
static int switch_arguments; /* those of sched_switch, with the tracepoint's own; 0: there is no BTF, -1: it is of no
				function */

const struct kernel_ranges *kernel_ranges(void)
{
	return &ranges;
}

struct btf *btf__load_vmlinux_btf(void)
{
	struct btf *btf = switch_arguments ? btf__new_empty() : NULL;
	int number, proto;

	if (!btf)
		return NULL;
	number = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	proto = switch_arguments < 0 ? number : btf__add_func_proto(btf, 0);
	for (int i = 0; i < switch_arguments; i++)
		assert_int_equal(btf__add_func_param(btf, "", number), 0);
	assert_true(btf__add_typedef(btf, "btf_trace_sched_switch", btf__add_ptr(btf, proto)) > 0);
	return btf;
}

static const struct wait_kinds two_kinds = { .blocked = 1, .runnable = 2 };

static struct sampler *loaded(bool tail_form, const struct wait_kinds *kinds)
{
	struct sampler *s = sampler_of_stand_in(tail_form);

	sampler_waits_load(s, 5000, kinds);
	return s;
}

static void done(struct sampler *s)
{
	sampler_waits_free(s);
	assert_null(s->waits);
	sampler_of_stand_in_free(s);
}

static const struct offcpu_bpf *skel_of(const struct sampler *s)
{
	return ((const struct waits_head *)s->waits)->skel;
}

static int begin(void **state)
{
	(void)state;
	kernel_begins();
	switch_arguments = 5;
	return 0;
}

static void programs_are_told_what_they_need(void **state)
{
	const struct wait_kinds kinds = { .blocked = 1, .runnable = 2, .waker = 3, .has_wakers = true };
	struct sampler *s = loaded(false, &kinds);
	const struct offcpu_bpf *skel = skel_of(s);

	(void)state;
	asked("load offcpu_bpf: on_switch on_waking on_new_thread on_again tell_asleep\nattach tell_asleep\niterate\n");
	assert_true(skel->rodata->cfg_tracepoint && skel->rodata->cfg_values && skel->rodata->cfg_task_storage);
	assert_true(skel->rodata->cfg_wakers && skel->rodata->cfg_switch_has_state);
	assert_int_equal(skel->rodata->cfg_mean_ns, 5000);
	assert_int_equal(skel->rodata->cfg_blocked_kind, 1);
	assert_int_equal(skel->rodata->cfg_runnable_kind, 2);
	assert_int_equal(skel->rodata->cfg_waker_kind, 3);
	assert_int_equal(skel->rodata->cfg_wait_cost_ns, 500000);
	assert_int_equal(skel->rodata->cfg_wait_burst_ns, 500000000);
	assert_int_equal(skel->rodata->cfg_irq_start, 10);
	assert_int_equal(skel->rodata->cfg_irq_end, 20);
	assert_int_equal(skel->rodata->cfg_irq_too_start, 30);
	assert_int_equal(skel->rodata->cfg_irq_too_end, 40);
	assert_int_equal(skel->rodata->cfg_calls[SYS_read], WAIT_CALL_FD);
	assert_int_equal(bpf_map__max_entries(skel->maps.wanted_stacks), STAND_IN_CPUS);
	assert_int_equal(bpf_map__max_entries(skel->maps.self_interrupts), STAND_IN_CPUS);
	assert_int_equal(bpf_map__max_entries(skel->maps.wanted_wakers), STAND_IN_CPUS);
	assert_int_equal(bpf_map__max_entries(skel->maps.irq_records), STAND_IN_CPUS);
	assert_true(bpf_map__autocreate(skel->maps.wait_storage));
	assert_int_equal(bpf_map__max_entries(skel->maps.wait_table), 1);
	assert_true(skel->bss->begins);
	assert_int_equal(s->caller_cnt, 1);
	assert_int_equal(s->callers[0].type, BPF_PROG_TYPE_RAW_TRACEPOINT);
	assert_int_equal(s->callers[0].programs, bpf_map__fd(skel->maps.programs));
	sampler_waits_free(s);
	asked("detach tell_asleep\nclose offcpu_bpf\n");
	sampler_of_stand_in_free(s);
}

static void without_wakers_nothing_is_made_for_them(void **state)
{
	struct sampler *s = loaded(true, &two_kinds);
	const struct offcpu_bpf *skel = skel_of(s);

	(void)state;
	asked("load offcpu_bpf: on_switch on_waking on_new_thread on_again_tail again_walk_tail again_send_tail "
	      "tell_asleep\n"
	      "programs[16] = again_walk_tail\nprograms[17] = again_send_tail\nattach tell_asleep\niterate\n");
	assert_true(!skel->rodata->cfg_wakers && !skel->rodata->cfg_irq_start && !skel->rodata->cfg_irq_too_end);
	assert_int_equal(bpf_map__max_entries(skel->maps.wanted_wakers), 1);
	assert_int_equal(bpf_map__max_entries(skel->maps.irq_records), 1);
	done(s);
}

static void states_are_told_from_the_fourth_argument_on(void **state)
{
	static const struct {
		int arguments;
		bool has_state;
	} cases[] = { { 0, false }, { -1, false }, { 4, false }, { 5, true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sampler *s;

		kernel_begins();
		switch_arguments = cases[i].arguments;
		s = loaded(false, &two_kinds);
		assert_int_equal(skel_of(s)->rodata->cfg_switch_has_state, cases[i].has_state);
		done(s);
	}
}

/* Without task storage there is a table; what cannot be had that way either is told, and all is taken back. */
static void programs_that_are_refused_are_tried_with_a_table(void **state)
{
	static const char *const calls[] = { "load", "attach", "iterate", "update", "reuse" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		for (int times = 0; times < 2; times++) {
			struct sampler *s = sampler_of_stand_in(true);

			kernel_refuses(calls[i], 0, EINVAL);
			kernel.fail_times = times;
			sampler_waits_load(s, 1, &two_kinds);
			if (times) {
				assert_non_null(s->waits);
				assert_false(skel_of(s)->rodata->cfg_task_storage);
				assert_false(bpf_map__autocreate(skel_of(s)->maps.wait_storage));
				assert_int_equal(bpf_map__max_entries(skel_of(s)->maps.wait_table), 65536);
				assert_int_equal(kernel.live, 1);
				done(s);
				continue;
			}
			assert_null(s->waits);
			assert_int_equal(s->caller_cnt, 0);
			assert_int_equal(kernel.live, 0);
			/* as if it were not wanted */
			assert_int_equal(sampler_waits_enable(s, true), 0);
			assert_int_equal(sampler_waits_add_cpu(s, 0), -1);
			assert_int_equal(sampler_waits_missed(s), 0);
			assert_int_equal(sampler_waits_refused(s), 0);
			assert_int_equal(sampler_tell_asleep(s, NULL, NULL), 0);
			done(s);
		}
	}
}

static unsigned walks;

static void refuse_a_thread(const struct bpf_object_skeleton *loaded)
{
	for (int i = 0; i < loaded->map_cnt; i++) {
		const char *name = bpf_map__name(*loaded->maps[i].map);

		if (strstr(name, ".bss"))
			(*(struct offcpu_bpf__bss **)loaded->maps[i].mmaped)->waits_refused = 4;
	}
	walks++;
}

static void threads_without_room_are_lived_with(void **state)
{
	struct sampler *s;

	(void)state;
	walks = 0;
	kernel.on_walk = refuse_a_thread;
	s = loaded(false, &two_kinds);
	assert_int_equal(walks, 2); /* first in storage, then in the table */
	assert_int_equal(sampler_waits_refused(s), 4);
	assert_false(skel_of(s)->rodata->cfg_task_storage);
	assert_int_equal(s->caller_cnt, 1);
	done(s);
}

static void programs_begin_from_the_last_and_end_from_the_first(void **state)
{
	static const char off[] = "detach on_switch\ndetach on_waking\ndetach on_new_thread\ndetach on_again\n";
	struct sampler *s = loaded(false, &two_kinds);

	(void)state;
	asked_whatever();
	skel_of(s)->bss->begins = false;
	assert_int_equal(sampler_waits_enable(s, false), 0);
	asked("");
	assert_int_equal(sampler_waits_enable(s, true), 0);
	asked("attach on_again\nattach on_new_thread\nattach on_waking\nattach on_switch\niterate\n");
	assert_true(skel_of(s)->bss->begins);
	assert_int_equal(sampler_waits_enable(s, true), 0);
	asked("");
	assert_int_equal(sampler_waits_enable(s, false), 0);
	asked(off);
	assert_int_equal(sampler_waits_enable(s, false), 0);
	asked("");
	for (int good = 0; good < 4; good++) {
		static const char *const taken_back[] = {
			"attach fails\n",
			"attach on_again\nattach fails\ndetach on_again\n",
			"attach on_again\nattach on_new_thread\nattach fails\ndetach on_new_thread\ndetach on_again\n",
			("attach on_again\nattach on_new_thread\nattach on_waking\nattach fails\ndetach on_waking\n"
			 "detach on_new_thread\ndetach on_again\n"),
		};

		kernel_refuses("attach", good, EBUSY);
		assert_int_equal(sampler_waits_enable(s, true), -EBUSY);
		asked(taken_back[good]);
	}
	kernel_refuses("iterate", 0, EMFILE);
	assert_int_equal(sampler_waits_enable(s, true), -EMFILE);
	kernel.fail_call = NULL;
	asked_whatever();
	assert_int_equal(sampler_waits_enable(s, true), 0); /* it is off, so it begins */
	asked("attach on_again\nattach on_new_thread\nattach on_waking\nattach on_switch\niterate\n");
	sampler_waits_free(s);
	assert_int_equal(kernel.live, 0);
	sampler_of_stand_in_free(s);
}

static void tail_calls_have_a_program_of_their_own(void **state)
{
	struct sampler *s = loaded(true, &two_kinds);

	(void)state;
	asked_whatever();
	assert_int_equal(sampler_waits_enable(s, true), 0);
	asked("attach on_again_tail\nattach on_new_thread\nattach on_waking\nattach on_switch\niterate\n");
	done(s);
}

/* --- threads that are asleep --- */

static uint32_t seen[64], seen_cnt;

static void see(void *arg, const struct record *record)
{
	assert_ptr_equal(arg, seen);
	seen[seen_cnt++] = record->size;
}

static int tell(struct sampler *s, const void *walk, size_t bytes)
{
	kernel.walk = walk;
	kernel.walk_bytes = bytes;
	seen_cnt = 0;
	return sampler_tell_asleep(s, see, seen);
}

static void records_of_a_walk_are_told_whole(void **state)
{
	struct sampler *s = loaded(false, &two_kinds);
	static uint8_t walk[60 << 10];
	struct record record = { .size = MAX_RECORD_BYTES };

	(void)state;
	assert_int_equal(tell(s, walk, 0), 0); /* not while it is off */
	assert_null(strstr(kernel.log, "iterate\niterate"));
	assert_int_equal(sampler_waits_enable(s, true), 0);
	assert_int_equal(tell(s, walk, 0), 0);
	assert_false(skel_of(s)->bss->begins);
	assert_int_equal(seen_cnt, 0);
	memcpy(walk, &record, sizeof(record)); /* the longest, the shortest, and a half */
	record.size = sizeof(record);
	memcpy(walk + MAX_RECORD_BYTES, &record, sizeof(record));
	record.size = 2 * sizeof(record);
	memcpy(walk + MAX_RECORD_BYTES + sizeof(record), &record, sizeof(record));
	assert_int_equal(tell(s, walk, MAX_RECORD_BYTES + 2 * sizeof(record)), 0);
	assert_int_equal(seen_cnt, 2);
	assert_int_equal(seen[0], MAX_RECORD_BYTES);
	assert_int_equal(seen[1], sizeof(record));
	assert_int_equal(tell(s, walk, MAX_RECORD_BYTES + 3 * sizeof(record)), 0);
	assert_int_equal(seen_cnt, 3);
	record.size = MAX_RECORD_BYTES + 1;
	memcpy(walk, &record, sizeof(record));
	assert_int_equal(tell(s, walk, sizeof(walk)), -EBADMSG);
	record.size = sizeof(record) - 1;
	memcpy(walk, &record, sizeof(record));
	assert_int_equal(tell(s, walk, sizeof(record)), -EBADMSG);
	assert_int_equal(seen_cnt, 0);
	done(s);
}

/* --- CPUs, and counts --- */

static void each_cpu_can_interrupt_itself(void **state)
{
	struct sampler *s = loaded(false, &two_kinds);
	int fd, again;

	(void)state;
	asked_whatever();
	fd = sampler_waits_add_cpu(s, STAND_IN_CPUS - 1);
	assert_true(fd > 0);
	asked("event of pid -1, cpu 1: type 1, config 10, period 1\nself_interrupts[1] = descriptor\n");
	assert_int_equal(kernel.attr.sample_type, PERF_SAMPLE_RAW);
	assert_int_equal(kernel.attr.wakeup_events, 1);
	assert_int_equal(*(const int *)kernel.value, fd);
	again = sampler_waits_add_cpu(s, STAND_IN_CPUS - 1); /* it was away */
	assert_true(again > 0);
	assert_int_equal(sampler_waits_add_cpu(s, STAND_IN_CPUS), -1);
	close(fd);
	close(again);
	kernel_refuses("event", 0, ENODEV);
	assert_int_equal(sampler_waits_add_cpu(s, 0), -ENODEV);
	kernel_refuses("update", 0, E2BIG);
	assert_int_equal(sampler_waits_add_cpu(s, 0), -E2BIG);
	done(s);
}

static void counts_are_those_of_the_programs(void **state)
{
	struct sampler *s = loaded(false, &two_kinds);
	struct sample_sum taken = { 1, 10 };

	(void)state;
	skel_of(s)->bss->asleep_taken = 5;
	skel_of(s)->bss->asleep_value = 500;
	skel_of(s)->bss->waits_refused = 7;
	kernel.missed = 3;
	sampler_waits_count(s, two_kinds.runnable, &taken);
	assert_int_equal(taken.samples, 1);
	sampler_waits_count(s, two_kinds.blocked, &taken);
	assert_int_equal(taken.samples, 6);
	assert_int_equal(taken.value, 510);
	assert_int_equal(sampler_waits_refused(s), 7);
	assert_int_equal(sampler_waits_missed(s), 6);
	kernel_refuses("info", 0, EPERM);
	assert_int_equal(sampler_waits_missed(s), 0);
	done(s);
	s = sampler_of_stand_in(false);
	sampler_waits_count(s, 0, &taken);
	assert_int_equal(taken.samples, 6);
	sampler_of_stand_in_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(programs_are_told_what_they_need, begin),
		cmocka_unit_test_setup(without_wakers_nothing_is_made_for_them, begin),
		cmocka_unit_test_setup(states_are_told_from_the_fourth_argument_on, begin),
		cmocka_unit_test_setup(programs_that_are_refused_are_tried_with_a_table, begin),
		cmocka_unit_test_setup(threads_without_room_are_lived_with, begin),
		cmocka_unit_test_setup(programs_begin_from_the_last_and_end_from_the_first, begin),
		cmocka_unit_test_setup(tail_calls_have_a_program_of_their_own, begin),
		cmocka_unit_test_setup(records_of_a_walk_are_told_whole, begin),
		cmocka_unit_test_setup(each_cpu_can_interrupt_itself, begin),
		cmocka_unit_test_setup(counts_are_those_of_the_programs, begin),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
