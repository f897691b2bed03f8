/* SPDX-License-Identifier: Apache-2.0 */
/* The running kernel's build id stands among the bytes of its notes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/kernel/kernel_build_id.h"
#include "tests/unit/descriptors.h"

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
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_running_kernel) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
