/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels hearth works on, by what uname() says, which is the test's word here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/cpu/cpu.h"
#include "agent/kernel/kernel_version.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

static const char *release; /* NULL: uname() fails */

int uname(struct utsname *u)
{
	if (!release)
		return -1;
	snprintf(u->release, sizeof(u->release), "%s", release);
	return 0;
}

static void test_versions(void **state)
{
	static const struct {
		const char *release;
		unsigned version;
	} cases[] = {
		{ "6.18.44-fc-v657", 6018 },
		{ "5.10.0-28-amd64", 5010 },
		{ "5.4", 5004 },
		{ "6.1-rc3", 6001 },
		{ "10.100.1", 10100 },
		{ "4.19.0", 4019 },
		{ "", 0 },
		{ "six.one", 0 },
		{ "6", 0 },
		{ "6.x", 0 },
		{ NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		release = cases[i].release;
		assert_int_equal(kernel_version(), cases[i].version);
	}
}

/* Before 5.19 the bug was not there yet, since 6.4 it is mended. */
static void test_safe_ones(void **state)
{
	static const char *const safe[] = { "5.18.19", "5.10.1", "4.19.0", "6.4.0", "6.18.0", "7.0.0" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(safe); i++) {
		release = safe[i];
		assert_true(kernel_is_safe());
	}
}

/* In between the kernel itself is looked at: all versions of that time say the same of it. */
static void test_those_in_between(void **state)
{
	static const char *const between[] = { "5.19.0", "6.0.9", "6.1.0", "6.3.13" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(between); i++) {
		struct agent_error err = { .message = "" };
		bool safe;

		release = between[i];
		safe = kernel_is_safe();
		if (access(KERNEL_BTF, R_OK))
			continue;
		assert_int_equal(kernel_is_supported(true, true, &err), 0);
		assert_string_equal(err.message, "");
		assert_int_equal(kernel_is_supported(false, true, &err), safe ? 0 : -ENOTSUP);
		if (!safe)
			assert_string_equal(err.message, UNSAFE_KERNEL_TEXT " Update it, or start with --unsafe-kernel.");
	}
}

static void test_too_old(void **state)
{
	struct agent_error err = { .message = "" };
	char oldest[32], older[32];

	(void)state;
	if (access(KERNEL_BTF, R_OK))
		skip();
	snprintf(older, sizeof(older), "%d.%d.99", (CPU_MIN_KERNEL - 1) / 1000, (CPU_MIN_KERNEL - 1) % 1000);
	snprintf(oldest, sizeof(oldest), "%d.%d.0", CPU_MIN_KERNEL / 1000, CPU_MIN_KERNEL % 1000);
	release = older;
	assert_int_equal(kernel_is_supported(true, false, &err), -ENOTSUP);
	assert_memory_equal(err.message, "Linux ", 6);
	assert_memory_equal(err.message + 6, older, strlen(older));
	assert_string_equal(err.message + 6 + strlen(older), " is too old: hearth needs " CPU_MIN_KERNEL_TEXT
							     " or newer; --no-version-check tries all the same");
	assert_int_equal(kernel_is_supported(true, true, &err), 0);
	release = oldest;
	assert_int_equal(kernel_is_supported(true, false, &err), 0);
}

/* A version that is not told is none that is new enough. */
static void test_not_told(void **state)
{
	struct agent_error err = { .message = "" };

	(void)state;
	release = NULL;
	assert_int_equal(kernel_is_supported(true, false, &err), -ENOTSUP);
	assert_non_null(strstr(err.message, "is too old"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions), cmocka_unit_test(test_safe_ones), cmocka_unit_test(test_those_in_between),
		cmocka_unit_test(test_too_old),	 cmocka_unit_test(test_not_told),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
