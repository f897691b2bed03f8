/* SPDX-License-Identifier: Apache-2.0 */
/* Which known name a mistyped one is taken for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/nearest.h"
#include "tests/unit/descriptors.h"

static const char *const names[] = { "run", "record", "report", "serve", "check", "version", "help", "report-interval" };

static const struct {
	const char *word;
	const char *best; /* NULL: none is near */
	size_t distance;
} cases[] = {
	{ "recrod", "record", 1 },		      /* a swap of neighbours is one edit */
	{ "ercord", "record", 1 },		      /* also at the start */
	{ "reprot", "report", 1 },		      /* likewise */
	{ "rport", "report", 1 },		      /* one left out */
	{ "serves", "serve", 1 },		      /* one too many */
	{ "chack", "check", 1 },		      /* one replaced */
	{ "rum", "run", 1 },			      /* short words too */
	{ "report-intervall", "report-interval", 1 }, /* nearer than "report" */
	{ "ver", "version", 1 },		      /* the beginning of a name */
	{ "rerort", "report", 1 },
	{ "raport-enterval", "report-interval", 2 },
	{ "xyzzy", NULL, 0 },
	{ "hlpxyz", NULL, 0 }, /* four edits from help: too far */
	{ "zz", NULL, 0 },     /* nothing of it is left in any name within reach */
	{ "", NULL, 0 },
	{ "an-endless-word-that-is-longer-than-every-name-there-is", NULL, 0 },
};

static void test_nearest(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct nearest n = nearest_to(cases[i].word);

		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			nearest_offer(&n, names[k]);
		if (!cases[i].best) {
			if (n.best)
				fail_msg("'%s' taken for '%s'", cases[i].word, n.best);
			continue;
		}
		if (!n.best || strcmp(n.best, cases[i].best) || n.distance != cases[i].distance)
			fail_msg("'%s': '%s' at %zu", cases[i].word, n.best ? n.best : "(none)", n.distance);
	}
}

static void test_first_of_equals_wins(void **state)
{
	struct nearest n = nearest_to("bat");

	(void)state;
	nearest_offer(&n, "cat");
	nearest_offer(&n, "rat");
	assert_string_equal(n.best, "cat");
	nearest_offer(&n, "bat");
	assert_string_equal(n.best, "bat");
	assert_int_equal(n.distance, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_first_of_equals_wins),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
