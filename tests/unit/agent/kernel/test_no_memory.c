/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier's log of programs, for want of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kernel/sampler_state.h"
#include "agent/kernel/verifier_log.h"
#include "bpf/offcpu.skel.h"
#include "tests/unit/failing_memory.h"

static struct offcpu_bpf *programs;

static int open_programs(void **state)
{
	(void)state;
	programs = offcpu_bpf__open();
	return !programs;
}

static int close_programs(void **state)
{
	(void)state;
	offcpu_bpf__destroy(programs);
	return 0;
}

static int logged(struct buf *out)
{
	struct verifier_log *log = NULL;
	int error = verifier_log_new(programs->obj, 1, &log);

	if (error) {
		assert_null(log);
		return error;
	}
	verifier_log_print(log); /* nothing is loaded yet */
	buf_printf(out, "%d", bpf_program__log_buf(programs->progs.tell_asleep, &(size_t){ 0 }) != NULL);
	verifier_log_free(log);
	return 0;
}

static void test_log(void **state)
{
	static const struct memory_scenario scenario = { "the verifier's log", logged, false };

	(void)state;
	memory_fails_everywhere(&scenario);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_log) };

	return cmocka_run_group_tests(tests, open_programs, close_programs);
}
