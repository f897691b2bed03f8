/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of texts and patterns for want of memory at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/text/pattern.h"
#include "tests/unit/failing_memory.h"

static int interned(struct buf *out)
{
	struct intern *t = intern_new();
	int error = t ? 0 : -ENOMEM;

	for (unsigned i = 0; i < 3000 && !error; i++) {
		unsigned key = i % 2000 * 7;
		uint32_t place = UINT32_MAX;
		int is_new = intern_add(t, &key, sizeof(key), &place);

		error = is_new < 0 ? is_new : 0;
		if (!error)
			buf_printf(out, "%u%c", place, is_new ? '+' : ' ');
	}
	intern_free(t);
	return error;
}

static int patterns(struct buf *out)
{
	struct pattern *p = NULL;
	struct pattern_error why;
	int error = pattern_new("^ma(in|ll)oc+$", 0, &p, &why);

	if (!error)
		buf_printf(out, "%d %d", pattern_matches(p, "malloc", 6), pattern_matches(p, "mallo", 5));
	pattern_free(p);
	return error;
}

static const struct memory_scenario scenarios[] = {
	{ "interned", interned, false },
	{ "patterns", patterns, true },
};

static void test_scenarios(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(scenarios); i++)
		memory_fails_everywhere(&scenarios[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scenarios) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
