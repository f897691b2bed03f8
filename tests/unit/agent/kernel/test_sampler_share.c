/* SPDX-License-Identifier: Apache-2.0 */
/* The things that objects share: maps and options of the same names, a table's program, and where each CPU begins to draw.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kernel/sampler_state.h"
#include "bpf/memory.skel.h"
#include "tests/unit/agent/kernel/bpf_stand_in.h"

static struct sampler *s;
static struct memory_bpf *memory;

static int begin(void **state)
{
	(void)state;
	kernel_begins();
	s = sampler_of_stand_in(false);
	memory = memory_bpf__open();
	return !memory;
}

static int end(void **state)
{
	(void)state;
	memory_bpf__destroy(memory);
	sampler_of_stand_in_free(s);
	return 0;
}

static void maps_of_the_same_name_are_shared(void **state)
{
	struct bpf_map *map;
	uint32_t shared = 0;

	(void)state;
	bpf_object__for_each_map(map, s->skel->obj)(void) bpf_map__fd(map);
	kernel.notes_shared = true;
	assert_int_equal(sampler_share_maps(s, memory->obj), 0);
	bpf_object__for_each_map(map, memory->obj)
	{
		const char *name = bpf_map__name(map);
		char text[128];
		bool is_own = bpf_map__is_internal(map) || !strcmp(name, "programs") || !strcmp(name, "fault_cpus") ||
			      !strcmp(name, "noted_faults");

		snprintf(text, sizeof(text), "%s takes %s\n", name, name);
		if ((strstr(kernel.log, text) != NULL) == is_own)
			fail_msg("%s", name);
		shared += !is_own;
	}
	assert_true(shared > 3);
	kernel.notes_shared = false;
	kernel_refuses("reuse", 1, EINVAL);
	asked_whatever();
	assert_int_equal(sampler_share_maps(s, memory->obj), -EINVAL);
	asked("reuse fails\n"); /* and no more is tried */
}

static void options_of_the_same_name_have_the_same_value(void **state)
{
	(void)state;
	memset(s->skel->rodata, 0, sizeof(*s->skel->rodata));
	s->skel->rodata->cfg_rings = 0x11223344;
	s->skel->rodata->cfg_chunk_burst_ns = 0x1122334455667788;
	s->skel->rodata->cfg_idle = true;
	s->skel->rodata->cfg_uids[FILTER_UIDS - 1] = 77;
	memset((void *)&s->skel->rodata->cfg_comm, 0x5a, sizeof(s->skel->rodata->cfg_comm));
	memory->rodata->cfg_mean_bytes = 99; /* its own */
	memory->rodata->cfg_kind = 4;
	assert_int_equal(sampler_share_options(s, memory->obj), 0);
	assert_int_equal(memory->rodata->cfg_rings, 0x11223344);
	assert_true(memory->rodata->cfg_chunk_burst_ns == 0x1122334455667788);
	assert_true(memory->rodata->cfg_idle && !memory->rodata->cfg_no_kernel);
	assert_int_equal(memory->rodata->cfg_uids[FILTER_UIDS - 1], 77);
	assert_memory_equal(&memory->rodata->cfg_comm, &s->skel->rodata->cfg_comm, sizeof(s->skel->rodata->cfg_comm));
	assert_int_equal(memory->rodata->cfg_kind, 0); /* the sampler has one, too */
	assert_int_equal(memory->rodata->cfg_mean_bytes, 99);
}

static void one_option_is_set_by_its_name(void **state)
{
	(void)state;
	assert_int_equal(sampler_set_option(memory->obj, "cfg_preempted", true), 0);
	assert_true(memory->rodata->cfg_preempted);
	assert_int_equal(sampler_set_option(memory->obj, "cfg_preempted", false), 0);
	assert_false(memory->rodata->cfg_preempted);
	assert_int_equal(sampler_set_option(memory->obj, "cfg_nothing", true), -ENOENT);
	assert_int_equal(sampler_set_option(memory->obj, "cfg_kind", true), -ENOENT); /* is no bool */
	assert_int_equal(memory->rodata->cfg_kind, 0);
}

static void each_cpu_begins_elsewhere_in_the_window(void **state)
{
	static const uint64_t means[] = { 1, 1000, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(means); i++) {
		const uint32_t *value = (const uint32_t *)(const void *)kernel.value;

		kernel.random = 0;
		assert_int_equal(sampler_fill_draws(s, memory->maps.fault_cpus, means[i]), 0);
		assert_int_equal(value[0], means[i] / 2);
		assert_int_equal(value[0] + value[1], means[i]);
		for (int k = 2; k < 8; k++)
			assert_int_equal(value[k], 0);
	}
	asked_whatever();
	s->possible_cpus = 3;
	assert_int_equal(sampler_fill_draws(s, memory->maps.fault_cpus, 8), 0);
	asked("fault_cpus[0] = 32 bytes, 6\nfault_cpus[1] = 32 bytes, 0\nfault_cpus[2] = 32 bytes, 2\n");
	kernel_refuses("update", 1, E2BIG);
	assert_int_equal(sampler_fill_draws(s, memory->maps.fault_cpus, 8), -E2BIG);
	/* values that have more than what is known here */
	assert_int_equal(sampler_fill_draws(s, s->skel->maps.cpu_states, 8), -E2BIG);
}

static void walks_stand_behind_the_chains(void **state)
{
	(void)state;
	assert_int_equal(
		sampler_set_called(memory->maps.programs, memory->progs.memory_walk_tail, memory->progs.memory_send_tail),
		0);
	asked("programs[16] = memory_walk_tail\nprograms[17] = memory_send_tail\n");
	kernel_refuses("update", 0, EPERM);
	assert_int_equal(
		sampler_set_called(memory->maps.programs, memory->progs.memory_walk_tail, memory->progs.memory_send_tail),
		-EPERM);
	kernel.missed = 12;
	assert_int_equal(sampler_program_missed(memory->progs.on_fault), 12);
	kernel_refuses("info", 0, EPERM);
	assert_int_equal(sampler_program_missed(memory->progs.on_fault), 0);
}

static void there_are_so_many_callers(void **state)
{
	(void)state;
	for (int i = 0; i < MAX_CALLERS + 2; i++)
		sampler_chains_add_caller(s, &(struct chain_caller){ .programs = i });
	assert_int_equal(s->caller_cnt, MAX_CALLERS);
	assert_int_equal(s->callers[MAX_CALLERS - 1].programs, MAX_CALLERS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(maps_of_the_same_name_are_shared, begin, end),
		cmocka_unit_test_setup_teardown(options_of_the_same_name_have_the_same_value, begin, end),
		cmocka_unit_test_setup_teardown(one_option_is_set_by_its_name, begin, end),
		cmocka_unit_test_setup_teardown(each_cpu_begins_elsewhere_in_the_window, begin, end),
		cmocka_unit_test_setup_teardown(walks_stand_behind_the_chains, begin, end),
		cmocka_unit_test_setup_teardown(there_are_so_many_callers, begin, end),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
