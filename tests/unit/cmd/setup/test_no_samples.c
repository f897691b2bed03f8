/* SPDX-License-Identifier: Apache-2.0 */
/* Why there was no sample: the likeliest reason that the options leave, with what to change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cmd/setup/child.h"
#include "cmd/setup/no_samples.h"
#include "tests/unit/cmd/parsed.h"

static void test_reasons(void **state)
{
	static const struct child no_command, running = { .pid = 7 },
					      quick = { .pid = 7, .is_reaped = true, .cpu_ns = 149 * NSEC_PER_MSEC },
					      slow = { .pid = 7, .is_reaped = true, .cpu_ns = 150 * NSEC_PER_MSEC };
	static const struct {
		const char *words[6];
		const struct child *command;
		uint64_t lasted_ns;
		const char *has, *lacks;
	} cases[] = {
		{ { "--delay", "2s" }, &no_command, 2 * NSEC_PER_SEC, "the recording ended before --delay was over", NULL },
		{ { "--delay", "2s" }, &no_command, 2 * NSEC_PER_SEC + 1, "no CPU was busy", "--delay" },
		{ { "--probabilistic", "5/1m" }, &no_command, NSEC_PER_SEC, "--probabilistic 5/1m may have", NULL },
		{ { "-e", "cycles" }, &no_command, NSEC_PER_SEC, "too few cycles events were counted; ", "command" },
		{ { "-e", "cycles" },
		  &running,
		  NSEC_PER_SEC,
		  "events were counted in the command and its children (-a:",
		  NULL },
		{ { "-e", "cycles", "-a" }, &running, NSEC_PER_SEC, "events were counted; ", "in the command" },
		{ { "-e", "cpu-clock" }, &no_command, NSEC_PER_SEC, "no CPU was busy", "cpu-clock" },
		{ { "-e", "task-clock" }, &no_command, NSEC_PER_SEC, "no CPU was busy", "task-clock" },
		{ { "--comm", "x", "--uid", "0" },
		  &no_command,
		  NSEC_PER_SEC,
		  "nothing that --comm with --uid lets pass was on a CPU at a moment of sampling",
		  "command" },
		{ { "--comm", "x" },
		  &running,
		  NSEC_PER_SEC,
		  "nothing that --comm lets pass was on a CPU at a moment of sampling in the command",
		  NULL },
		{ { "-F", "20" },
		  &running,
		  NSEC_PER_SEC,
		  "only the command and its children were recorded; with -a",
		  "took" },
		{ { "-F", "20" },
		  &quick,
		  NSEC_PER_SEC,
		  "recorded, which took 149.0 ms of CPU time, and a sample is taken each 50.0 ms of it (-F); with -a",
		  NULL },
		{ { "-F", "20" }, &slow, NSEC_PER_SEC, "recorded, which took 150.0 ms of CPU time; with -a", "is taken" },
		{ { "-c", "2000000" }, &no_command, NSEC_PER_SEC, "moment of sampling, each 2.0 ms; record longer", NULL },
		{ { "-F", "100" }, &no_command, NSEC_PER_SEC, "moment of sampling, each 10.0 ms; record longer", NULL },
		{ { "-F", "max" }, &no_command, NSEC_PER_SEC, "moment of sampling; record longer", NULL },
		{ { "-F", "100", "-a" }, &quick, NSEC_PER_SEC, "no CPU was busy", "command" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY;
		struct config config = parse_words(&cmd_record, cases[i].words);

		no_samples_explain(&config, cases[i].command, cases[i].lasted_ns, &out);
		if (strncmp(buf_text(&out), "no sample was taken: ", 21) != 0 || !strstr(buf_text(&out), cases[i].has) ||
		    (cases[i].lacks && strstr(buf_text(&out), cases[i].lacks)))
			fail_msg("%zu: %s", i, buf_text(&out));
		config_fini(&config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_reasons) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
