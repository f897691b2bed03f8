/* SPDX-License-Identifier: Apache-2.0 */
/* The line that a run of the agent ends with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "cmd/setup/session.h"

/* Stacks that were not walked are not in the percentage; losses and drops are named where there are some. */
static void test_account(void **state)
{
	static const struct {
		struct agent_stats stats;
		const char *losses;
		uint64_t dropped, spooled, other;
		const char *line;
	} cases[] = {
		{ { .taken = 0 }, "", 0, 0, 0, "0 samples taken = 0 delivered + 0 lost; 0 not sampled" },
		{ { .taken = 100, .delivered = 97, .lost = 3, .not_sampled = 7, .complete = 60, .truncated = 20 },
		  "ring full 2, out of memory 1",
		  0,
		  0,
		  9,
		  "100 samples taken = 97 delivered + 3 lost (ring full 2, out of memory 1); 7 not sampled; 75.0 % of user "
		  "stacks complete" },
		{ { .taken = 5, .delivered = 5, .truncated = 4 },
		  "",
		  2,
		  3,
		  0,
		  "5 samples taken = 5 delivered + 0 lost; 3 kept for the next start; 2 dropped by a sink "
		  "(reason=\"full\"); 0 "
		  "not sampled; 0.0 % of user stacks complete" },
		{ { .taken = 5, .delivered = 5, .complete = 4 },
		  "",
		  0,
		  0,
		  0,
		  "5 samples taken = 5 delivered + 0 lost; 0 not sampled; 100.0 % of user stacks complete" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY;
		struct metrics *metrics = metrics_new();

		assert_non_null(metrics);
		metric_add(metrics_counter(metrics, "hearth_x_dropped_samples_total", "reason=\"full\"", "Dropped."),
			   cases[i].dropped);
		metric_set(metrics_gauge(metrics, "hearth_spool_samples", NULL, "Spooled."), cases[i].spooled);
		metric_add(metrics_counter(metrics, "hearth_x_samples_total", NULL, "Others."), cases[i].other);
		session_print_account(&cases[i].stats, cases[i].losses, metrics, &out);
		assert_string_equal(buf_text(&out), cases[i].line);
		metrics_free(metrics);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_account) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
