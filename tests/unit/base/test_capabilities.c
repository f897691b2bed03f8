/* SPDX-License-Identifier: Apache-2.0 */
/* Who keeps what, and that it is kept for good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/capability.h>

#include "base/capabilities.h"

#define CAP(number) (1ull << (number))

static void test_table(void **state)
{
	const uint64_t all = UINT64_MAX,
		       opener = CAP(CAP_CHECKPOINT_RESTORE) | CAP(CAP_SYS_PTRACE) | CAP(CAP_DAC_READ_SEARCH);

	(void)state;
	assert_int_equal(capabilities_of(CAPABILITY_OPENER, all), opener);
	assert_int_equal(capabilities_of(CAPABILITY_OPENER, CAP(CAP_SYS_PTRACE) | CAP(CAP_SYS_CHROOT)), CAP(CAP_SYS_PTRACE));
	assert_int_equal(capabilities_of(0, all), 0);
	assert_false(capabilities_of(CAPABILITY_AGENT, all) & CAP(CAP_SYS_ADMIN));
	assert_true(capabilities_of(CAPABILITY_AGENT | CAPABILITY_EVENTS, all) & CAP(CAP_SYS_ADMIN));
	/* SYS_ADMIN stands for the new ones */
	assert_true(capabilities_of(CAPABILITY_AGENT, CAP(CAP_SYS_ADMIN)) == CAP(CAP_SYS_ADMIN));
	assert_true(capabilities_of(CAPABILITY_AGENT, all & ~CAP(CAP_PERFMON)) & CAP(CAP_SYS_ADMIN));
	assert_false(capabilities_of(CAPABILITY_KEEPER, CAP(CAP_SYS_ADMIN)));
}

static int keep_two(void)
{
	const uint64_t before = capabilities_effective(), two = CAP(CAP_SYS_PTRACE) | CAP(CAP_BPF);

	if (capabilities_keep(two) || capabilities_effective() != (before & two))
		return 1;
	if (!capabilities_keep(UINT64_MAX) && capabilities_effective() != (before & two))
		return 2; /* they came back */
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 3;
}

static void test_keep(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid)
		_exit(keep_two());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_table), cmocka_unit_test(test_keep) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
