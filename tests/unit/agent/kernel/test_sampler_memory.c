/* SPDX-License-Identifier: Apache-2.0 */
/* Programs at page faults: which of them are needed, what they are told, and that they begin and end together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kernel/sampler_memory.h"
#include "base/io.h"
#include "bpf/memory.skel.h"
#include "tests/unit/agent/kernel/bpf_stand_in.h"

/* The first member of the state that is the file's own. */
struct memory_head {
	struct memory_bpf *skel;
};

static const char *all_sizes, *one_size; /* of huge pages: what the kernel says; NULL: there is no such file */

ssize_t io_read_text(int folder, const char *path, char *text, size_t size)
{
	const char *said = strstr(path, "hugepages-2048kB") ? one_size : all_sizes;

	assert_int_equal(folder, AT_FDCWD);
	assert_int_equal(strncmp(path, "/sys/kernel/mm/transparent_hugepage/", 36), 0);
	if (!said)
		return -ENOENT;
	return snprintf(text, size, "%s", said);
}

static int begin(void **state)
{
	(void)state;
	kernel_begins();
	all_sizes = "always [madvise] never\n";
	one_size = NULL;
	return 0;
}

static struct sampler *loaded(bool tail_form)
{
	struct sampler *s = sampler_of_stand_in(tail_form);

	sampler_memory_load(s, 4000, 5);
	return s;
}

static void done(struct sampler *s)
{
	sampler_memory_free(s);
	assert_null(s->memory);
	sampler_of_stand_in_free(s);
}

static const struct memory_bpf *skel_of(const struct sampler *s)
{
	return ((const struct memory_head *)s->memory)->skel;
}

static void programs_are_told_what_they_need(void **state)
{
	struct sampler *s = loaded(false);
	const struct memory_bpf *skel = skel_of(s);

	(void)state;
	asked("load memory_bpf: on_fault on_kernel_fault on_growth\n"
	      "fault_cpus[0] = 32 bytes, 1000\nfault_cpus[1] = 32 bytes, 2000\n");
	assert_int_equal(((const uint32_t *)kernel.value)[0] + ((const uint32_t *)kernel.value)[1], 4000);
	for (int i = 2; i < 8; i++)
		assert_int_equal(((const uint32_t *)kernel.value)[i], 0);
	assert_int_equal(skel->rodata->cfg_kind, 5);
	assert_true(skel->rodata->cfg_tracepoint && skel->rodata->cfg_values && skel->rodata->cfg_pages);
	assert_true(skel->rodata->cfg_no_kernel && skel->rodata->cfg_huge_pages);
	assert_int_equal(skel->rodata->cfg_mean_bytes, 4000);
	assert_int_equal(bpf_map__max_entries(skel->maps.fault_cpus), STAND_IN_CPUS);
	assert_int_equal(s->caller_cnt, 1);
	assert_int_equal(s->callers[0].type, BPF_PROG_TYPE_RAW_TRACEPOINT);
	assert_int_equal(s->callers[0].programs, bpf_map__fd(skel->maps.programs));
	assert_false(s->callers[0].is_preempted);
	kernel.missed = 3;
	assert_int_equal(sampler_memory_missed(s), 3);
	sampler_memory_free(s);
	asked("close memory_bpf\n");
	assert_int_equal(sampler_memory_missed(s), 0);
	sampler_memory_configure(s);
	assert_int_equal(bpf_map__max_entries(s->skel->maps.tracepoint_cpus), STAND_IN_CPUS);
	done(s);
}

static void tail_calls_have_programs_of_their_own(void **state)
{
	struct sampler *s = loaded(true);

	(void)state;
	asked("load memory_bpf: on_fault_tail memory_walk_tail memory_send_tail on_kernel_fault_tail on_growth_tail\n"
	      "fault_cpus[0] = 32 bytes, 1000\nfault_cpus[1] = 32 bytes, 2000\nprograms[16] = "
	      "memory_walk_tail\nprograms[17] = memory_send_tail\n");
	assert_int_equal(sampler_memory_enable(s, true), 0);
	asked("attach on_fault_tail\nattach on_kernel_fault_tail\nattach on_growth_tail\n");
	done(s);
}

static void growth_counts_where_there_are_huge_pages(void **state)
{
	static const struct {
		const char *all, *one;
		bool has;
	} cases[] = {
		{ "[always] madvise never", NULL, true },
		{ "always [madvise] never", NULL, true },
		{ "always madvise [never]", NULL, false },
		{ NULL, NULL, false },
		{ "always madvise [never]", "[always] inherit madvise never", true },
		{ "always madvise [never]", "always inherit [madvise] never", true },
		{ "always madvise [never]", "always [inherit] madvise never", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sampler *s;

		begin(NULL);
		all_sizes = cases[i].all;
		one_size = cases[i].one;
		s = loaded(false);
		assert_int_equal(skel_of(s)->rodata->cfg_huge_pages, cases[i].has);
		assert_int_equal(strstr(kernel.log, "on_growth") != NULL, cases[i].has);
		asked_whatever();
		kernel.missed = 3;
		assert_int_equal(sampler_memory_missed(s), cases[i].has ? 3 : 0);
		assert_int_equal(sampler_memory_enable(s, true), 0);
		assert_int_equal(kernel.live, cases[i].has ? 3 : 2);
		done(s);
	}
}

static void programs_begin_and_end_together(void **state)
{
	static const char on[] = "attach on_fault\nattach on_kernel_fault\nattach on_growth\n",
			  off[] = "detach on_fault\ndetach on_kernel_fault\ndetach on_growth\n";
	struct sampler *s = loaded(false);

	(void)state;
	asked_whatever();
	assert_int_equal(sampler_memory_enable(s, false), 0);
	asked("");
	assert_int_equal(sampler_memory_enable(s, true), 0);
	asked(on);
	assert_int_equal(sampler_memory_enable(s, true), 0);
	asked("");
	assert_int_equal(sampler_memory_enable(s, false), 0);
	asked(off);
	kernel_refuses("attach", 1, EBUSY);
	assert_int_equal(sampler_memory_enable(s, true), -EBUSY);
	asked("attach on_fault\nattach fails\ndetach on_fault\n");
	kernel.fail_call = NULL;
	assert_int_equal(sampler_memory_enable(s, true), 0); /* it may be there the next time */
	asked(on);
	done(s);
	/* a kernel without such tracepoints is asked once, and samples the rest */
	begin(NULL);
	s = loaded(false);
	kernel_refuses("attach", 0, ENOENT);
	assert_int_equal(sampler_memory_enable(s, true), 0);
	asked_whatever();
	assert_int_equal(sampler_memory_enable(s, true), 0);
	asked("");
	done(s);
}

static void programs_that_are_refused_are_done_without(void **state)
{
	static const char *const calls[] = { "load", "update", "reuse" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		for (int good = 0; good < (i == 1 ? 3 : 1); good++) {
			struct sampler *s;

			begin(NULL);
			kernel_refuses(calls[i], good, EINVAL);
			s = loaded(true);
			assert_null(s->memory);
			assert_int_equal(s->caller_cnt, 0);
			assert_int_equal(sampler_memory_enable(s, true), 0);
			assert_non_null(strstr(kernel.log, "close memory_bpf\n"));
			done(s);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(programs_are_told_what_they_need, begin),
		cmocka_unit_test_setup(tail_calls_have_programs_of_their_own, begin),
		cmocka_unit_test_setup(growth_counts_where_there_are_huge_pages, begin),
		cmocka_unit_test_setup(programs_begin_and_end_together, begin),
		cmocka_unit_test_setup(programs_that_are_refused_are_done_without, begin),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
