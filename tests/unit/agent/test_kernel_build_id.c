/* SPDX-License-Identifier: Apache-2.0 */
/* Notes with build ids: made ones, broken ones, and the running kernel's, which stands among its bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/kernel_build_id.h"
#include "base/cleanup.h"

/* A note of another kind, then a build id of four bytes; little-endian. */
static const uint8_t notes[] = "\6\0\0\0\4\0\0\0\1\0\0\0Linux\0\0\0abcd"
			       "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\x12\xab\xcd\xef";

static void test_notes(void **state)
{
	char id[BUILD_ID_CHARS] = "";

	(void)state;
	assert_true(build_id_of_notes(notes, sizeof(notes) - 1, id));
	assert_string_equal(id, "12abcdef");
	for (size_t len = 0; len < sizeof(notes) - 1; len++) {
		AUTO_FREE uint8_t *cut = malloc(len ? len : 1); /* so that reading past its end is seen by the sanitizers */

		assert_non_null(cut);
		memcpy(cut, notes, len);
		assert_false(build_id_of_notes(cut, len, id));
	}
	assert_false(build_id_of_notes((const uint8_t *)"\4\0\0\0\xff\xff\xff\xff\3\0\0\0GNU\0abcd", 20, id));
	assert_false(build_id_of_notes((const uint8_t *)"\xff\xff\xff\xff\4\0\0\0\3\0\0\0GNU\0abcd", 20, id));
}

static void test_running_kernel(void **state)
{
	char id[BUILD_ID_CHARS] = "", command[200];

	(void)state;
	assert_false(kernel_build_id("no such module", id));
	assert_false(kernel_build_id("../kernel", id));
	if (access("/sys/kernel/notes", R_OK))
		skip();
	assert_true(kernel_build_id("", id));
	snprintf(command, sizeof(command), "test \"$(od -An -v -tx1 /sys/kernel/notes | tr -d ' \\n' | grep -c %s)\" = 1",
		 id);
	assert_int_equal(system(command), 0);
	assert_int_equal(strlen(id), 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_notes), cmocka_unit_test(test_running_kernel) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
