/* SPDX-License-Identifier: Apache-2.0 */
/* Probes at functions of allocators: which are there while processes begin, become other programs, map libraries and end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kernel/sampler_allocs.h"
#include "agent/probe/allocator.h"
#include "base/vec.h"
#include "bpf/allocs.skel.h"
#include "tests/unit/agent/kernel/bpf_stand_in.h"

/* The first members of the state that is the file's own. */
struct allocs_head {
	struct allocs_bpf *skel;
	struct alloc_set *set;
	struct {
		uint32_t pid, size;
		uint64_t more[3];
	} * list;
	uint32_t count;
};

/* --- allocators --- */

/* Each has two functions, but a file called "no..." */
int allocator_add_file(struct alloc_set *set, uint32_t pid, const char *path)
{
	if (strstr(path, "/no"))
		return -ENOENT;
	for (uint32_t i = 0; i < 2; i++) {
		char *file;

		assert_true(asprintf(&file, "/proc/%u/root%s", pid, path) > 0);
		assert_int_equal(vec_reach(&set->list, &set->cap, set->count), 0);
		set->list[set->count++] = (struct alloc_place){
			.pid = pid, .size = 3 + i, .file = file, .offset = 0x100 * (i + 1)
		};
	}
	return 0;
}

bool allocator_is_libc(const char *path)
{
	return strstr(path, "libc.so");
}

static struct alloc_set *set;
static struct sampled what;

static int begin(void **state)
{
	(void)state;
	kernel_begins();
	set = calloc(1, sizeof(*set));
	assert_non_null(set);
	set->follows_children = true;
	what = (struct sampled){ .allocs = set, .period = 4000 };
	return allocator_add_file(set, 7, "/libc.so");
}

static int end(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < set->count; i++)
		free(set->list[i].file);
	free(set->list);
	free(set);
	return 0;
}

static struct sampler *loaded(bool tail_form)
{
	struct sampler *s = sampler_of_stand_in(tail_form);
	struct agent_error err = { "" };

	assert_int_equal(sampler_allocs_load(s, &what, 5, &err), 0);
	assert_string_equal(err.message, "");
	return s;
}

static const struct allocs_head *state_of(const struct sampler *s)
{
	return (const struct allocs_head *)s->allocs;
}

static void done(struct sampler *s)
{
	int files = open_descriptors(), live;

	live = kernel.live;
	sampler_allocs_free(s);
	assert_null(s->allocs);
	assert_int_equal(live, 0); /* links are descriptors */
	assert_true(open_descriptors() <= files);
	sampler_of_stand_in_free(s);
}

static void programs_are_told_what_they_need(void **state)
{
	struct sampler *s = loaded(false);
	const struct allocs_bpf *skel = state_of(s)->skel;

	(void)state;
	asked("load allocs_bpf: on_alloc\nalloc_draws[0] = 8 bytes, 1000\nalloc_draws[1] = 8 bytes, 2000\n");
	assert_int_equal(skel->rodata->cfg_kind, 5);
	assert_true(skel->rodata->cfg_tracepoint && skel->rodata->cfg_values && skel->rodata->cfg_pages);
	assert_true(skel->rodata->cfg_no_kernel && skel->rodata->cfg_preempted);
	assert_int_equal(skel->rodata->cfg_mean_bytes, 4000);
	assert_int_equal(bpf_map__max_entries(skel->maps.alloc_draws), STAND_IN_CPUS);
	assert_int_equal(s->caller_cnt, 1);
	assert_int_equal(s->callers[0].type, BPF_PROG_TYPE_KPROBE);
	assert_int_equal(s->callers[0].programs, bpf_map__fd(skel->maps.programs));
	assert_true(s->callers[0].is_preempted);
	kernel.missed = 6;
	assert_int_equal(sampler_allocs_missed(s), 6);
	done(s);
	kernel_begins();
	kernel.version = 5019;
	s = loaded(true);
	asked("load allocs_bpf: on_alloc_tail alloc_walk_tail alloc_send_tail\nalloc_draws[0] = 8 bytes, 1000\n"
	      "alloc_draws[1] = 8 bytes, 2000\nprograms[16] = alloc_walk_tail\nprograms[17] = alloc_send_tail\n");
	assert_false(state_of(s)->skel->rodata->cfg_preempted);
	assert_false(s->callers[0].is_preempted);
	assert_int_equal(sampler_allocs_enable(s, true), 0);
	assert_non_null(strstr(kernel.log, "link on_alloc_tail, cookie 3\n"));
	done(s);
	s = sampler_of_stand_in(false);
	assert_int_equal(sampler_allocs_missed(s), 0);
	assert_int_equal(sampler_allocs_enable(s, true), 0);
	sampler_process_began(s, 7, 8);
	sampler_process_changed(s, 7);
	sampler_process_mapped(s, 7, "/libc.so");
	sampler_process_ended(s, 7);
	done(s);
}

static void levels_are_made_once(void **state)
{
	struct sampler *s = sampler_of_stand_in(false);

	(void)state;
	sampler_allocs_configure(s);
	sampler_allocs_configure(s);
	assert_int_equal(s->levels, 1 + POOL_LEVELS);
	assert_int_equal(s->skel->rodata->cfg_pool_levels, POOL_LEVELS);
	assert_int_equal(bpf_map__max_entries(s->skel->maps.tracepoint_cpus), STAND_IN_CPUS);
	sampler_of_stand_in_free(s);
	s = sampler_of_stand_in(true);
	sampler_allocs_configure(s);
	assert_int_equal(s->levels, 1);
	assert_int_equal(s->skel->rodata->cfg_pool_levels, 0);
	assert_int_equal(bpf_map__max_entries(s->skel->maps.tracepoint_cpus), STAND_IN_CPUS);
	sampler_of_stand_in_free(s);
}

static void refuses(unsigned version, bool tail_form, const char *call, int wanted, const char *says)
{
	struct sampler *s = sampler_of_stand_in(tail_form);
	struct agent_error err = { "" };

	kernel_begins();
	kernel.version = version;
	if (call)
		kernel_refuses(call, 0, EINVAL);
	assert_int_equal(sampler_allocs_load(s, &what, 5, &err), wanted);
	if (!strstr(err.message, says) != !*says && *says)
		fail_msg("'%s' and not '%s'", err.message, says);
	assert_int_equal(s->caller_cnt, wanted ? 0 : 1);
	done(s);
}

static void errors_say_what_it_takes(void **state)
{
	(void)state;
	refuses(6000, true, NULL, -EINVAL, "--no-bpf-loop does not go with -e malloc");
	refuses(5019, true, NULL, 0, "");
	refuses(5014, false, "load", -EINVAL, "-e malloc needs Linux 5.15");
	refuses(5015, false, "load", -EINVAL, "cannot load the programs for malloc: Invalid argument");
	refuses(5015, false, "update", -EINVAL, "cannot load the programs for malloc: Invalid argument");
	refuses(5015, true, "update", -EINVAL, "cannot load the programs for malloc: Invalid argument");
	refuses(5015, false, "reuse", -EINVAL, "cannot load the programs for malloc: Invalid argument");
}

#define EVENT(pid, file, offset, cookie) \
	"event of pid " #pid ", cpu any: /proc/" file " + " #offset ", config 0\nlink on_alloc, cookie " #cookie "\n"
#define BOTH(pid, file) EVENT(pid, file, 0x100, 3) EVENT(pid, file, 0x200, 4)

static void probes_begin_and_end_together(void **state)
{
	struct sampler *s = loaded(false);
	int files = open_descriptors();

	(void)state;
	asked_whatever();
	assert_int_equal(sampler_allocs_enable(s, false), 0);
	assert_int_equal(sampler_allocs_enable(s, true), 0);
	asked(BOTH(7, "7/root/libc.so"));
	assert_int_equal(open_descriptors(), files + 2); /* not the events */
	assert_int_equal(sampler_allocs_enable(s, true), 0);
	asked("");
	assert_int_equal(sampler_allocs_enable(s, false), 0);
	asked("");
	assert_int_equal(open_descriptors(), files);
	kernel_refuses("link", 1, EBUSY); /* the first stands already */
	assert_int_equal(sampler_allocs_enable(s, true), -EBUSY);
	assert_int_equal(open_descriptors(), files);
	kernel_refuses("event", 0, EMFILE);
	assert_int_equal(sampler_allocs_enable(s, true), -EMFILE);
	kernel_refuses("event", 0, ESRCH); /* it has ended */
	assert_int_equal(sampler_allocs_enable(s, true), 0);
	assert_int_equal(open_descriptors(), files);
	assert_int_equal(sampler_allocs_enable(s, false), 0);
	kernel.fail_call = NULL;
	kernel.uprobe = 0;
	assert_int_equal(sampler_allocs_enable(s, true), -ENOSYS);
	done(s);
}

static void children_are_probed_as_their_parents(void **state)
{
	struct sampler *s = loaded(false);
	int files;

	(void)state;
	sampler_process_began(s, 7, 8); /* before sampling: when it begins */
	assert_int_equal(state_of(s)->count, 4);
	asked_whatever();
	assert_int_equal(sampler_allocs_enable(s, true), 0);
	asked(BOTH(7, "7/root/libc.so") BOTH(8, "7/root/libc.so"));
	files = open_descriptors();
	sampler_process_began(s, 8, 9);
	asked(BOTH(9, "7/root/libc.so"));
	assert_int_equal(open_descriptors(), files + 2);
	sampler_process_began(s, 10, 11); /* of no concern */
	asked("");
	sampler_process_ended(s, 8);
	assert_int_equal(open_descriptors(), files);
	assert_int_equal(state_of(s)->count, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(state_of(s)->list[i].pid, i < 2 ? 7 : 9);
	set->follows_children = false;
	sampler_process_began(s, 7, 12);
	assert_int_equal(state_of(s)->count, 4);
	done(s);
}

static void so_many_functions_are_probed_and_no_more(void **state)
{
	struct sampler *s = loaded(false);

	(void)state;
	for (uint32_t pid = 100; pid < 700; pid++)
		sampler_process_began(s, 7, pid);
	assert_int_equal(state_of(s)->count, 1024);
	done(s);
}

static void another_program_has_another_allocator(void **state)
{
	struct sampler *s = loaded(false);
	int files;

	(void)state;
	assert_int_equal(sampler_allocs_enable(s, true), 0);
	files = open_descriptors();
	asked_whatever();
	sampler_process_mapped(s, 7, "/other.so"); /* it is the program that it was */
	sampler_process_changed(s, 99);		   /* of no concern */
	sampler_process_mapped(s, 99, "/other.so");
	asked("");
	sampler_process_changed(s, 7);
	sampler_process_changed(s, 7);
	sampler_process_mapped(s, 7, "/nothing");
	asked("");
	assert_int_equal(state_of(s)->count, 2);
	sampler_process_mapped(s, 7, "/libc.so"); /* is probed, and stays so */
	asked("");
	sampler_process_mapped(s, 7, "/lib/libc.so"); /* the C library is known */
	asked("");
	sampler_process_mapped(s, 7, "/jemalloc.so"); /* goes before that */
	asked(BOTH(7, "7/root/jemalloc.so"));
	assert_int_equal(open_descriptors(), files);
	assert_int_equal(state_of(s)->count, 2);
	sampler_process_mapped(s, 7, "/more.so"); /* found */
	asked("");
	assert_int_equal(set->count, 4);
	sampler_process_changed(s, 7);
	sampler_process_mapped(s, 7, "/more.so");
	asked(BOTH(7, "7/root/more.so"));
	sampler_process_mapped(s, 7, "/jemalloc.so");
	asked("");
	/* of who has ended, or whose search has, nothing stays */
	sampler_process_began(s, 7, 8);
	sampler_process_changed(s, 7);
	sampler_process_changed(s, 8);
	sampler_process_ended(s, 7);
	asked_whatever();
	sampler_process_mapped(s, 7, "/libc.so");
	asked("");
	sampler_process_mapped(s, 8, "/libc.so");
	asked(BOTH(8, "8/root/libc.so"));
	assert_int_equal(open_descriptors(), files);
	done(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(programs_are_told_what_they_need, begin, end),
		cmocka_unit_test_setup_teardown(levels_are_made_once, begin, end),
		cmocka_unit_test_setup_teardown(errors_say_what_it_takes, begin, end),
		cmocka_unit_test_setup_teardown(probes_begin_and_end_together, begin, end),
		cmocka_unit_test_setup_teardown(children_are_probed_as_their_parents, begin, end),
		cmocka_unit_test_setup_teardown(so_many_functions_are_probed_and_no_more, begin, end),
		cmocka_unit_test_setup_teardown(another_program_has_another_allocator, begin, end),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
