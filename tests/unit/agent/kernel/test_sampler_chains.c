/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime whose program the kernel does not take, and one that is not wanted: said once, counted, not tried again. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kernel/sampler_state.h"
#include "bpf/runtime/python.skel.h"
#include "tests/unit/agent/kernel/bpf_stand_in.h"

static int opened_cnt;
static bool is_no_object;

/* Before libbpf's. */
struct bpf_object *bpf_object__open_mem(const void *bytes, size_t len, const struct bpf_object_open_opts *opts)
{
	typeof(bpf_object__open_mem) *real = (typeof(real))dlsym(RTLD_NEXT, "bpf_object__open_mem");

	assert_true(bytes && len && !opts && real);
	opened_cnt++;
	errno = EBADMSG;
	return is_no_object ? NULL : real(bytes, len, opts);
}

static int begin(void **state)
{
	(void)state;
	kernel_begins();
	opened_cnt = 0;
	is_no_object = false;
	return 0;
}

static int begin_without_objects(void **state)
{
	begin(state);
	is_no_object = true;
	return 0;
}

/* Tells the sampler of runtime @id; how often a message said it in *@said. */
static int tell(struct sampler *s, uint32_t id, int *said)
{
	struct chain_state state = { .asid = 1, .runtime = id };
	int ends[2], kept = dup(STDERR_FILENO), error;
	char text[1024] = "";
	ssize_t len;

	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	error = sampler_set_chain(s, &state);
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	len = read(ends[0], text, sizeof(text) - 1);
	*said = len > 0 && strstr(text, "cannot load the program") && strstr(text, strerror(EBADMSG));
	close(ends[0]);
	close(ends[1]);
	close(kept);
	return error;
}

static void test_failure(void **state)
{
	struct sampler s = { .caller_cnt = 1 };
	int said;

	(void)state;
	assert_false(sampler_chain_failed(&s, RUNTIME_PYTHON));
	assert_int_equal(tell(&s, RUNTIME_PYTHON, &said), -EBADMSG);
	assert_true(said && opened_cnt == 1);
	assert_int_equal(tell(&s, RUNTIME_PYTHON, &said), -EBADMSG);
	assert_true(!said && opened_cnt == 1);
	assert_true(sampler_chain_failed(&s, RUNTIME_PYTHON));
	assert_false(sampler_chain_failed(&s, RUNTIME_PHP));
	assert_int_equal(tell(&s, RUNTIME_ID_MAX, &said), -EINVAL);
	sampler_chains_free(&s);
}

static void test_not_wanted(void **state)
{
	const struct agent_config config = { .runtimes_off = 1u << RUNTIME_PYTHON };
	struct sampler s = { .caller_cnt = 1 };
	int said;

	(void)state;
	sampler_chains_configure(&s, &config);
	assert_int_equal(tell(&s, RUNTIME_PYTHON, &said), -EOPNOTSUPP);
	assert_true(!said && !opened_cnt);
	assert_false(sampler_chain_failed(&s, RUNTIME_PYTHON));
	assert_int_equal(tell(&s, RUNTIME_PHP, &said), -EBADMSG);
	assert_true(said && opened_cnt == 1);
	sampler_chains_free(&s);
}

/* --- programs that are loaded --- */

static struct sampler *sampler_with(bool tail_form, const struct chain_caller *callers, uint32_t count)
{
	struct sampler *s = sampler_of_stand_in(tail_form);

	for (uint32_t i = 0; i < count; i++) {
		struct chain_caller caller = callers[i];

		/* tables that there are, so that they have names */
		caller.programs = bpf_map__fd(i ? s->skel->maps.tracepoint_cpus : s->skel->maps.programs);
		sampler_chains_add_caller(s, &caller);
	}
	assert_int_equal(s->caller_cnt, count);
	asked_whatever();
	return s;
}

static void done(struct sampler *s)
{
	sampler_chains_free(s);
	sampler_of_stand_in_free(s);
}

static void each_runtime_has_its_program_and_place(void **state)
{
	static const struct {
		uint32_t id;
		const char *program;
	} cases[] = {
		{ RUNTIME_PYTHON, "chain_python" }, { RUNTIME_PHP, "chain_php" }, { RUNTIME_PERL, "chain_perl" },
		{ RUNTIME_RUBY, "chain_ruby" },	    { RUNTIME_LUA, "chain_lua" }, { RUNTIME_LUAJIT, "chain_luajit" },
		{ CONTEXT_ID, "chain_context" },
	};
	const struct chain_caller caller = { .type = BPF_PROG_TYPE_PERF_EVENT };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (int tail = 0; tail < 2; tail++) {
			struct sampler *s = sampler_with(tail, &caller, 1);
			struct chain_state first = { .asid = 5, .runtime = cases[i].id }, second = first;
			char text[256];

			assert_int_equal(sampler_set_chain(s, &first), 0);
			assert_true(first.seq_head && first.seq_head == first.seq_tail);
			snprintf(text, sizeof(text), "load %s%s\nprograms[%u] = %s%s\n", cases[i].program,
				 tail ? "_tail" : "", cases[i].id, cases[i].program, tail ? "_tail" : "");
			assert_int_equal(strncmp(kernel.log, text, strlen(text)), 0);
			assert_non_null(strstr(kernel.log, "chain_states[5] = "));
			asked_whatever();
			assert_int_equal(sampler_set_chain(s, &second), 0); /* once */
			assert_null(strstr(kernel.log, "load"));
			assert_int_equal(second.seq_head, first.seq_head + 1);
			assert_false(sampler_chain_failed(s, cases[i].id));
			done(s);
		}
	}
}

static void each_caller_has_programs_of_its_type(void **state)
{
	const struct chain_caller callers[] = {
		{ .type = BPF_PROG_TYPE_PERF_EVENT },
		{ .type = BPF_PROG_TYPE_KPROBE, .attach_type = (enum bpf_attach_type)UPROBE_MULTI, .is_preempted = true },
	};
	struct sampler *s = sampler_with(false, callers, 2);
	struct chain_state state_of = { .asid = 5, .runtime = RUNTIME_PYTHON };
	struct python_bpf *fresh;
	uint32_t own_cnt = 0;
	struct bpf_map *own;

	(void)state;
	s->levels = 3;
	assert_int_equal(sampler_set_chain(s, &state_of), 0);
	assert_non_null(strstr(kernel.log, "load chain_python\nprograms[0] = chain_python\n"));
	assert_non_null(strstr(kernel.log, "programs takes tracepoint_cpus\nload chain_python(multi)\n"));
	assert_int_equal(opened_cnt, 2);
	assert_int_equal(kernel.type, BPF_PROG_TYPE_KPROBE);
	fresh = python_bpf__open();
	bpf_object__for_each_map(own, s->chains[RUNTIME_PYTHON].object)
	{
		const char *name = bpf_map__name(own);
		bool is_own = !bpf_object__find_map_by_name(s->skel->obj, name);
		uint32_t before;

		if (bpf_map__is_internal(own)) /* is called otherwise */
			continue;
		before = bpf_map__max_entries(bpf_object__find_map_by_name(fresh->obj, name));
		assert_int_equal(bpf_map__max_entries(own), is_own ? before * STAND_IN_CPUS * s->levels : before);
		own_cnt += is_own;
	}
	assert_true(own_cnt > 0);
	python_bpf__destroy(fresh);
	done(s);
	/* only what the first one takes counts */
	for (int good = 0; good < 2; good++) {
		begin(NULL);
		s = sampler_with(false, callers, 2);
		kernel_refuses("load", good, EINVAL);
		assert_int_equal(sampler_set_chain(s, &state_of), good ? 0 : -EINVAL);
		assert_int_equal(opened_cnt, good + 1);
		assert_int_equal(sampler_chain_failed(s, RUNTIME_PYTHON), !good);
		done(s);
	}
}

static void programs_that_are_refused_are_not_tried_again(void **state)
{
	static const char *const calls[] = { "reuse", "load", "update" };
	const struct chain_caller caller = { .type = BPF_PROG_TYPE_PERF_EVENT };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct chain_state state_of = { .asid = 5, .runtime = RUNTIME_PERL };
		struct sampler *s;

		begin(NULL);
		s = sampler_with(false, &caller, 1);
		kernel_refuses(calls[i], 0, E2BIG);
		assert_int_equal(sampler_set_chain(s, &state_of), -E2BIG);
		assert_true(sampler_chain_failed(s, RUNTIME_PERL));
		assert_null(s->chains[RUNTIME_PERL].object);
		kernel.fail_call = NULL;
		assert_int_equal(sampler_set_chain(s, &state_of), -E2BIG);
		assert_int_equal(opened_cnt, 1);
		state_of.runtime = MAX_CHAINS; /* a state that no program reads chains by */
		assert_int_equal(sampler_set_chain(s, &state_of), 0);
		kernel_refuses("update", 0, EBUSY);
		assert_int_equal(sampler_set_chain(s, &state_of), -EBUSY);
		assert_int_equal(sampler_set_program(s, &(struct program_key){ 0 }, &(struct program_value){ 0 }), -EBUSY);
		kernel.fail_call = NULL;
		assert_int_equal(sampler_set_program(s, &(struct program_key){ 0 }, &(struct program_value){ 0 }), 0);
		done(s);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_failure, begin_without_objects),
		cmocka_unit_test_setup(test_not_wanted, begin_without_objects),
		cmocka_unit_test_setup(each_runtime_has_its_program_and_place, begin),
		cmocka_unit_test_setup(each_caller_has_programs_of_its_type, begin),
		cmocka_unit_test_setup(programs_that_are_refused_are_not_tried_again, begin),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
