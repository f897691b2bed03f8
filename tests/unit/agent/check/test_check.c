/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `hearth check` that judge a text: capabilities, the kernel's configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <linux/capability.h>

#include "agent/check/check_host.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

#define CAP(number) (1ull << (number))

static void test_capabilities(void **state)
{
	static const uint64_t all = CAP(CAP_BPF) | CAP(CAP_PERFMON) | CAP(CAP_CHECKPOINT_RESTORE) | CAP(CAP_SYS_PTRACE) |
				    CAP(CAP_SYSLOG) | CAP(CAP_DAC_READ_SEARCH) | CAP(CAP_SETUID) | CAP(CAP_SETGID) |
				    CAP(CAP_CHOWN);
	static const uint64_t admin = CAP(CAP_SYS_ADMIN) | CAP(CAP_SYS_PTRACE) | CAP(CAP_SYSLOG) | CAP(CAP_DAC_READ_SEARCH);
	char text[256];

	(void)state;
	assert_int_equal(check_capabilities_missing(all, true, text, sizeof(text)), CHECK_YES);
	assert_string_equal(text, "");
	assert_int_equal(check_capabilities_missing(admin, false, text, sizeof(text)), CHECK_YES);
	assert_int_equal(check_capabilities_missing(admin, true, text, sizeof(text)), CHECK_PARTLY);
	assert_string_equal(text, "CAP_SETUID, CAP_SETGID, CAP_CHOWN");
	assert_int_equal(check_capabilities_missing(all & ~CAP(CAP_SETGID), true, text, sizeof(text)), CHECK_PARTLY);
	assert_string_equal(text, "CAP_SETGID");
	assert_int_equal(check_capabilities_missing(all & ~CAP(CAP_SYSLOG), true, text, sizeof(text)), CHECK_PARTLY);
	assert_string_equal(text, "CAP_SYSLOG");
	assert_int_equal(
		check_capabilities_missing(all & ~(CAP(CAP_PERFMON) | CAP(CAP_SYS_PTRACE)), true, text, sizeof(text)),
		CHECK_NO);
	assert_string_equal(text, "CAP_PERFMON, CAP_SYS_PTRACE");
	assert_int_equal(check_capabilities_missing(0, true, text, 16), CHECK_NO);
	assert_true(strlen(text) < 16);
}

static void test_config(void **state)
{
	static const char config[] =
		"# CONFIG_BPF is not set\nCONFIG_BPF_SYSCALL=y\nCONFIG_BPF_JIT=m\nCONFIG_HZ=250\nCONFIG_LAST=y";
	static const struct {
		const char *key, *value;
	} values[] = {
		{ "CONFIG_BPF_SYSCALL", "y" }, { "CONFIG_BPF_JIT", "m" }, { "CONFIG_HZ", "250" },
		{ "CONFIG_LAST", "y" },	       { "CONFIG_BPF", "" },	  { "CONFIG_NONE", "" },
	};
	char value[8];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		check_config_value(config, values[i].key, value, sizeof(value));
		assert_string_equal(value, values[i].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_capabilities), cmocka_unit_test(test_config) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
