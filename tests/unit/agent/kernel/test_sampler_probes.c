/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: which programs are loaded for which of them, by what they are attached, and what is said when that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kernel/sampler_probes.h"
#include "agent/probe/probe.h"
#include "bpf/probe.skel.h"
#include "tests/unit/agent/kernel/bpf_stand_in.h"

enum { MANY = 70 };

/* The first members of the state that is the file's own. */
struct probes_head {
	const struct probe_set *set;
	uint64_t period;
	uint32_t kind;
	bool flags[3];
	struct {
		struct probe_bpf *skel;
		void *programs[3];
	} * objects;
	uint32_t object_cnt;
};

static struct probe list[MANY];
static struct probe_set set = { .list = list };
static struct sampled what = { .probes = &set };

#define PROBE(kind_, target_, ...)                                                                                   \
	{                                                                                                            \
		.type = PROBE_##kind_, .target = (char *)(target_), .label = (char *)#kind_ ":" target_, __VA_ARGS__ \
	}

static void probes_are(const struct probe *probes, uint32_t count)
{
	memcpy(list, probes, count * sizeof(*probes));
	set.count = count;
}

static int begin(void **state)
{
	(void)state;
	kernel_begins();
	what.period = 1;
	probes_are((const struct probe[]){ PROBE(UPROBE, "/a", .offset = 0x10), PROBE(URETPROBE, "/a", .offset = 0x20),
					   PROBE(USDT, "/b", .offset = 0x30, .semaphore = 0x40),
					   PROBE(KPROBE, "do_it", .offset = 4), PROBE(KRETPROBE, "do_it"),
					   PROBE(FENTRY, "f"), PROBE(FEXIT, "g") },
		   7);
	return 0;
}

static struct agent_error err;

static struct sampler *load_all(bool tail_form, int wanted)
{
	struct sampler *s = sampler_of_stand_in(tail_form);

	err.message[0] = '\0';
	assert_int_equal(sampler_probes_load(s, &what, 5, &err), wanted);
	assert_int_equal(!err.message[0], !wanted);
	return s;
}

static const struct probes_head *state_of(const struct sampler *s)
{
	return (const struct probes_head *)s->probes;
}

static const struct probe_bpf *skel_of(const struct sampler *s, uint32_t i)
{
	assert_true(i < state_of(s)->object_cnt);
	return state_of(s)->objects[i].skel;
}

static void done(struct sampler *s)
{
	sampler_probes_free(s);
	assert_null(s->probes);
	sampler_of_stand_in_free(s);
}

static void each_probe_has_its_program_and_its_number(void **state)
{
	int files = open_descriptors();
	struct sampler *s = load_all(false, 0);

	(void)state;
	asked("load probe_bpf: on_probe\nload probe_bpf: on_probe\n"
	      "on_function is of f\nload probe_bpf: on_function\n"
	      "on_return is of g\nload probe_bpf: on_return\n"
	      "event of pid -1, cpu this: /a + 0x10, config 0, disabled\nlink on_probe, cookie 0\n"
	      "event of pid -1, cpu this: /a + 0x20, config 0x1, disabled\nlink on_probe, cookie 1\n"
	      "event of pid -1, cpu this: /b + 0x30, config 0x4000000000, disabled\nlink on_probe, cookie 2\n"
	      "event of the kernel: do_it + 0x4, config 0, disabled\nlink on_probe, cookie 3\n"
	      "event of the kernel: do_it + 0, config 0x1, disabled\nlink on_probe, cookie 4\n"
	      "trampoline on_function\ntrampoline on_return\n");
	assert_int_equal(open_descriptors(), files + 7);
	assert_int_equal(state_of(s)->object_cnt, 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct probe_bpf *skel = skel_of(s, i);

		assert_int_equal(skel->rodata->cfg_kind, 5);
		assert_true(skel->rodata->cfg_tracepoint && skel->rodata->cfg_probes);
		assert_int_equal(skel->rodata->cfg_every, 1);
		assert_int_equal(skel->rodata->cfg_cookies, i < 2);
		assert_int_equal(skel->rodata->cfg_preempted, i == 0);
		assert_int_equal(skel->rodata->cfg_no_kernel, i == 0);
		assert_int_equal(skel->rodata->cfg_skipped_frames, i < 2 ? 0 : 2);
		assert_int_equal(skel->rodata->cfg_probe, ((const uint32_t[]){ 0, 3, 5, 6 })[i]);
		assert_false(skel->rodata->cfg_arguments);
	}
	assert_int_equal(s->caller_cnt, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(s->callers[i].type, BPF_PROG_TYPE_KPROBE);
		assert_int_equal(s->callers[i].attach_type, 0);
		assert_int_equal(s->callers[i].programs, bpf_map__fd(skel_of(s, i)->maps.programs));
		assert_int_equal(s->callers[i].is_preempted, i == 0);
	}
	sampler_probes_free(s);
	assert_int_equal(open_descriptors(), files);
	asked("close probe_bpf\nclose probe_bpf\nclose probe_bpf\nclose probe_bpf\n");
	done(s);
}

static void tail_calls_have_programs_of_their_own(void **state)
{
	struct sampler *s;

	(void)state;
	kernel.version = 5019;
	s = load_all(true, 0);
	assert_non_null(strstr(kernel.log, "load probe_bpf: on_probe_tail probe_walk_tail probe_send_tail\nprograms[16] = "
					   "probe_walk_tail\nprograms[17] = probe_send_tail\n"));
	assert_non_null(strstr(kernel.log,
			       "on_function_tail is of f\nfunction_walk_tail is of f\nfunction_send_tail is of f\n"
			       "load probe_bpf: on_function_tail function_walk_tail function_send_tail\n"
			       "programs[16] = function_walk_tail\nprograms[17] = function_send_tail\n"));
	assert_non_null(strstr(kernel.log, "on_return_tail is of g\nreturn_walk_tail is of g\nreturn_send_tail is of g\n"
					   "load probe_bpf: on_return_tail return_walk_tail return_send_tail\n"
					   "programs[16] = return_walk_tail\nprograms[17] = return_send_tail\n"));
	assert_false(skel_of(s, 0)->rodata->cfg_preempted || s->callers[0].is_preempted);
	done(s);
	kernel.version = 6000;
	s = load_all(true, -EINVAL);
	assert_non_null(strstr(err.message, "--no-bpf-loop does not go with uprobes"));
	done(s);
	set.list += 3; /* those in the kernel */
	set.count = 2;
	s = load_all(true, 0);
	done(s);
	set.list = list;
}

/* Before 5.15 programs are not told which probe it is: there is one for each. */
static void without_cookies_each_has_an_object(void **state)
{
	struct sampler *s;

	(void)state;
	kernel.helpers_missing = true;
	set.count = 2;
	s = load_all(false, 0);
	asked("load probe_bpf: on_probe\nload probe_bpf: on_probe\n"
	      "event of pid -1, cpu this: /a + 0x10, config 0, disabled\nevent runs on_probe\n"
	      "event of pid -1, cpu this: /a + 0x20, config 0x1, disabled\nevent runs on_probe\n");
	assert_int_equal(state_of(s)->object_cnt, 2);
	assert_false(skel_of(s, 1)->rodata->cfg_cookies);
	assert_int_equal(skel_of(s, 1)->rodata->cfg_probe, 1);
	assert_int_equal(s->caller_cnt, 1);
	kernel.missed = 4;
	assert_int_equal(sampler_probes_missed(s), 8);
	done(s);
	kernel_refuses("ioctl", 0, EINVAL);
	s = load_all(false, -EINVAL);
	assert_string_equal(err.message, "cannot probe 'UPROBE:/a': Invalid argument");
	done(s);
	kernel.fail_call = NULL;
	for (uint32_t i = 0; i < MANY; i++)
		list[i] = (struct probe)PROBE(KPROBE, "k", .offset = i);
	set.count = 64;
	s = load_all(false, 0);
	done(s);
	set.count = 65;
	s = load_all(false, -E2BIG);
	assert_non_null(strstr(err.message, "65 probes are too many here"));
	assert_non_null(strstr(err.message, "a program each, 64 at most"));
	done(s);
}

static void many_in_files_are_links_of_many(void **state)
{
	struct sampler *s;

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		list[i] = (struct probe)PROBE(UPROBE, "/a", .offset = i, .semaphore = i == 2 ? 0x99 : 0);
	list[1].target = (char *)"/b";
	list[3].type = PROBE_URETPROBE;
	list[4].type = PROBE_KPROBE;
	list[5].type = PROBE_USDT;
	kernel.has_multi = true;
	set.count = 10; /* nine in files */
	s = load_all(false, 0);
	asked("load probe_bpf: on_probe(multi)\nload probe_bpf: on_probe\n"
	      "multi on_probe in /a: 0:0/0 2:0x2/0x99 5:0x5/0 6:0x6/0 7:0x7/0 8:0x8/0 9:0x9/0\n"
	      "multi on_probe in /b: 1:0x1/0\nmulti on_probe in /a, returns: 3:0x3/0\n"
	      "event of the kernel: /a + 0x4, config 0, disabled\nlink on_probe, cookie 4\n");
	assert_int_equal(s->callers[0].attach_type, UPROBE_MULTI);
	assert_int_equal(s->callers[1].attach_type, 0);
	done(s);
	kernel_refuses("multi", 1, ENOENT);
	s = load_all(false, -ENOENT);
	assert_string_equal(err.message, "cannot probe 'UPROBE:/a': No such file or directory"); /* by its label */
	done(s);
	kernel_begins();
	kernel.has_multi = true;
	set.count = 9; /* eight in files */
	s = load_all(false, 0);
	assert_null(strstr(kernel.log, "multi"));
	done(s);
}

static void arguments_are_told_by_probe(void **state)
{
	struct sampler *s;

	(void)state;
	list[1].args.count = 1;
	s = load_all(false, 0);
	assert_true(skel_of(s, 0)->rodata->cfg_arguments && skel_of(s, 1)->rodata->cfg_arguments);
	assert_false(skel_of(s, 2)->rodata->cfg_arguments || skel_of(s, 3)->rodata->cfg_arguments);
	assert_int_equal(bpf_map__max_entries(skel_of(s, 0)->maps.probe_arguments), 7);
	assert_non_null(strstr(kernel.log, "probe_arguments[0] = "));
	assert_non_null(strstr(kernel.log, "probe_arguments[6] = "));
	assert_null(strstr(kernel.log, "probe_arguments[7] = "));
	done(s);
	kernel_refuses("update", 1, E2BIG);
	s = load_all(false, -E2BIG);
	done(s);
}

static void probes_are_taken_off_and_put_on_again(void **state)
{
	int files = open_descriptors();
	struct sampler *s = load_all(false, 0);
	uint64_t missed;

	(void)state;
	asked_whatever();
	assert_int_equal(sampler_probes_enable(s, true), 0); /* it is */
	asked("");
	missed = sampler_probes_missed(s);
	assert_int_equal(missed, 70); /* ten by each link */
	kernel.missed = 1;
	assert_int_equal(sampler_probes_missed(s), 74);
	assert_int_equal(sampler_probes_enable(s, false), 0);
	assert_int_equal(open_descriptors(), files);
	assert_int_equal(sampler_probes_missed(s), 74); /* those of before stay */
	assert_int_equal(sampler_probes_enable(s, false), 0);
	assert_int_equal(sampler_probes_enable(s, true), 0);
	assert_int_equal(open_descriptors(), files + 7);
	assert_int_equal(sampler_probes_missed(s), 144);
	assert_int_equal(sampler_probes_enable(s, false), 0);
	kernel_refuses("link", 2, EBUSY);
	assert_int_equal(sampler_probes_enable(s, true), -EBUSY);
	assert_int_equal(open_descriptors(), files);
	done(s);
	kernel_begins();
	what.period = 10;
	s = load_all(false, 0);
	assert_int_equal(skel_of(s, 0)->rodata->cfg_every, 10);
	assert_int_equal(sampler_probes_missed(s), 7); /* so many samples */
	done(s);
	s = sampler_of_stand_in(false);
	assert_int_equal(sampler_probes_enable(s, true), 0);
	assert_int_equal(sampler_probes_missed(s), 0);
	done(s);
}

static void of_a_pattern_some_may_be_refused(void **state)
{
	int files = open_descriptors();
	struct sampler *s;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		list[i] = (struct probe)PROBE(KPROBE, "k", .offset = i, .is_of_pattern = true);
	set.count = 4;
	kernel_refuses("link", 1, EINVAL);
	s = load_all(false, 0);
	assert_int_equal(open_descriptors(), files + 1);
	done(s);
	kernel_refuses("link", 0, EINVAL); /* all */
	s = load_all(false, -EINVAL);
	assert_string_equal(err.message, "cannot probe 'KPROBE:k': the kernel does not let this place be probed, or has "
					 "several functions of that name");
	done(s);
	kernel_refuses("link", 1, EMFILE); /* one's own limits */
	s = load_all(false, -EMFILE);
	assert_string_equal(err.message, "4 probes need as many descriptors: raise 'ulimit -n'");
	done(s);
	kernel_refuses("link", 3, ENOMEM);
	s = load_all(false, -ENOMEM);
	done(s);
	list[2].is_of_pattern = false;
	kernel_refuses("link", 1, EINVAL);
	s = load_all(false, -EINVAL);
	done(s);
}

static void refusals_are_explained(void **state)
{
	static const struct {
		const struct probe probe;
		const char *call;
		int error;
		const char *says;
	} cases[] = {
		{ PROBE(UPROBE, "u"), "link", EPERM, "not permitted: run it as root" },
		{ PROBE(UPROBE, "u"), "event", EACCES, "not permitted: run it as root" },
		{ PROBE(UPROBE, "u"), "link", 524, "the instruction there cannot be probed" },
		{ PROBE(UPROBE, "u"), "link", EINVAL, "cannot probe 'UPROBE:u': Invalid argument" },
		{ PROBE(UPROBE, "u"), "event", ENOENT, "cannot probe 'UPROBE:u': No such file or directory" },
		{ PROBE(FEXIT, "f"), "trampoline", 524, "this kernel has no trampolines for it; try kprobe" },
		{ PROBE(KRETPROBE, "k"), "event", EADDRNOTAVAIL, "does not let this place be probed" },
		{ PROBE(KRETPROBE, "k"), "event", EILSEQ, "does not let this place be probed" },
		{ PROBE(KRETPROBE, "k"), "event", EBUSY, "cannot probe 'KRETPROBE:k': Device or resource busy" },
		{ PROBE(FENTRY, "f"), "target", ESRCH, "cannot probe 'FENTRY:f': the kernel's BTF does not have it" },
		{ PROBE(FENTRY, "f"), "target", ENOENT, "cannot probe 'FENTRY:f': the kernel's BTF does not have it" },
		{ PROBE(FENTRY, "f"), "load", EBUSY,
		  "cannot load the program of probes, for 'FENTRY:f': Device or resource busy. 'hearth check' says what "
		  "this "
		  "kernel allows; where there are no trampolines kprobe does the same" },
		{ PROBE(KPROBE, "k"), "load", ENOENT, "cannot load the program of probes, for 'KPROBE:k': No such" },
		{ PROBE(KPROBE, "k"), "reuse", EBUSY, "cannot load the program of probes, for 'KPROBE:k': Device" },
	};
	int files = open_descriptors();
	struct sampler *s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		probes_are(&cases[i].probe, 1);
		kernel_begins();
		kernel_refuses(cases[i].call, 0, cases[i].error);
		s = load_all(false, -cases[i].error);
		if (!strstr(err.message, cases[i].says))
			fail_msg("'%s' and not '%s'", err.message, cases[i].says);
		done(s);
	}
	for (int is_user = 0; is_user < 2; is_user++) {
		list[0] = is_user ? (struct probe)PROBE(UPROBE, "u") : (struct probe)PROBE(KPROBE, "k");
		kernel_begins();
		kernel.uprobe = kernel.kprobe = 0;
		s = load_all(false, -ENOSYS);
		assert_non_null(strstr(err.message, is_user ? "this kernel has no uprobes (CONFIG_UPROBE_EVENTS)"
							    : "this kernel has no kprobes (CONFIG_KPROBES)"));
		done(s);
	}
	assert_int_equal(open_descriptors(), files);
}

static void levels_are_made_for_programs_in_files(void **state)
{
	static const struct {
		uint32_t first, count;
		bool tail_form;
		uint32_t levels;
	} cases[] = {
		{ 0, 7, false, 1 + POOL_LEVELS }, { 0, 7, true, 1 }, { 3, 4, false, 1 }, { 2, 1, false, 1 + POOL_LEVELS }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sampler *s = sampler_of_stand_in(cases[i].tail_form);

		set.list = list + cases[i].first;
		set.count = cases[i].count;
		sampler_probes_configure(s, &what);
		assert_int_equal(s->levels, cases[i].levels);
		assert_int_equal(s->skel->rodata->cfg_pool_levels, cases[i].levels - 1);
		assert_int_equal(bpf_map__max_entries(s->skel->maps.tracepoint_cpus), STAND_IN_CPUS);
		sampler_probes_configure(s, &what);
		assert_int_equal(s->levels, cases[i].levels);
		sampler_of_stand_in_free(s);
	}
	set.list = list;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_probe_has_its_program_and_its_number, begin),
		cmocka_unit_test_setup(tail_calls_have_programs_of_their_own, begin),
		cmocka_unit_test_setup(without_cookies_each_has_an_object, begin),
		cmocka_unit_test_setup(many_in_files_are_links_of_many, begin),
		cmocka_unit_test_setup(arguments_are_told_by_probe, begin),
		cmocka_unit_test_setup(probes_are_taken_off_and_put_on_again, begin),
		cmocka_unit_test_setup(of_a_pattern_some_may_be_refused, begin),
		cmocka_unit_test_setup(refusals_are_explained, begin),
		cmocka_unit_test_setup(levels_are_made_for_programs_in_files, begin),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
