/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth check` of hosts made up here: of each place it reads, the value that is well, those that are not, and
 * none. */
#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/utsname.h>

#include <cmocka.h>
#include <linux/capability.h>

#include "agent/agent.h"
#include "agent/check/check_host.h"
#include "agent/proc/proc_root.h"
#include "agent/kernel/tracepoints.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/pack/gzip.h"
#include "tests/unit/agent/other_root.h"
#include "tests/unit/descriptors.h"

#include "agent/check/check_host.c"

/* --- what was said --- */

static struct {
	char name[64], found[512];
	enum check_result result;
} said[32];
static int said_count;

static void on_check(void *arg, const struct check *check)
{
	(void)arg;
	assert_true(said_count < (int)ARRAY_LEN(said));
	assert_non_null(check->means);
	assert_true(check->result != CHECK_YES || !check->advice[0]);
	snprintf(said[said_count].name, sizeof(said[0].name), "%s", check->name);
	snprintf(said[said_count].found, sizeof(said[0].found), "%s", check->found);
	said[said_count++].result = check->result;
}

static struct checker checker(void)
{
	said_count = 0;
	return (struct checker){ .fn = on_check };
}

/* @found: NULL: anything. */
static void assert_said(const char *name, enum check_result result, const char *found)
{
	for (int i = 0; i < said_count; i++) {
		if (strcmp(said[i].name, name))
			continue;
		assert_int_equal(said[i].result, result);
		if (found)
			assert_string_equal(said[i].found, found);
		return;
	}
	fail_msg("nothing said of %s", name);
}

static int new_root(void **state)
{
	(void)state;
	other_root_new();
	return 0;
}

static int free_root(void **state)
{
	(void)state;
	other_root_free();
	return 0;
}

/* --- tests --- */

#define ALL_BUT_TWO                                                                                              \
	"CONFIG_BPF_SYSCALL=y\nCONFIG_PERF_EVENTS=y\nCONFIG_BPF_EVENTS=y\nCONFIG_KALLSYMS=y\nCONFIG_CGROUPS=y\n" \
	"CONFIG_CHECKPOINT_RESTORE=y\n"

static void test_config(void **state)
{
	struct checker c = checker();
	struct utsname u;
	char path[300];

	(void)state;
	uname(&u);
	check_kernel_config(&c);
	assert_said("kernel configuration", CHECK_UNKNOWN, "not to be found");
	assert_int_equal(c.failed, 0);
	/* the place that is looked at last, then those before it */
	snprintf(path, sizeof(path), "/lib/modules/%s/config", u.release);
	other_root_file(path, ALL_BUT_TWO "CONFIG_DEBUG_INFO_BTF=y\nCONFIG_BPF_JIT=y\n");
	c = checker();
	check_kernel_config(&c);
	assert_said("kernel configuration", CHECK_YES, path);
	snprintf(path, sizeof(path), "/boot/config-%s", u.release);
	other_root_file(path, ALL_BUT_TWO "CONFIG_DEBUG_INFO_BTF=y\nCONFIG_BPF_JIT=m\n");
	c = checker();
	check_kernel_config(&c);
	assert_said("kernel configuration", CHECK_PARTLY, "CONFIG_BPF_JIT is not set");
	assert_int_equal(c.failed, 0);
	other_root_file("/proc/config.gz", "no archive");
	c = checker();
	check_kernel_config(&c);
	assert_said("kernel configuration", CHECK_PARTLY, "CONFIG_BPF_JIT is not set");
	other_root_file(path, ALL_BUT_TWO);
	c = checker();
	check_kernel_config(&c);
	assert_said("kernel configuration", CHECK_NO, "CONFIG_DEBUG_INFO_BTF is not set, CONFIG_BPF_JIT is not set");
	assert_int_equal(c.failed, 1);
}

static void test_security(void **state)
{
	struct checker c = checker();

	(void)state;
	check_security(&c);
	assert_said("kernel lockdown", CHECK_YES, "none");
	assert_said("security modules", CHECK_YES, "none");
	assert_int_equal(said_count, 2);
	other_root_file("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	other_root_file("/sys/kernel/security/lsm", "capability,apparmor\n");
	other_root_file("/proc/self/attr/current", "unconfined\n");
	other_root_file("/proc/self/status", "Name:\tx\nSeccompX:\t2\nSeccomp:\t0\nSeccomp_filters:\t0\n");
	c = checker();
	check_security(&c);
	assert_said("kernel lockdown", CHECK_YES, "integrity");
	assert_said("security modules", CHECK_YES, "capability,apparmor; this process is unconfined");
	assert_said("seccomp", CHECK_YES, "no filter");
	other_root_file("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	other_root_file("/proc/self/attr/current", "docker-default (enforce)\n");
	other_root_file("/proc/self/status", "Seccomp:\t2\n");
	c = checker();
	check_security(&c);
	assert_said("kernel lockdown", CHECK_NO, "confidentiality");
	assert_said("security modules", CHECK_PARTLY, "capability,apparmor; this process is docker-default (enforce)");
	assert_said("seccomp", CHECK_PARTLY, "a filter is on");
	assert_int_equal(c.failed, 1);
	other_root_file("/proc/self/attr/current", "kernel\n");
	c = checker();
	check_security(&c);
	assert_said("security modules", CHECK_YES, NULL);
}

static void test_privileges(void **state)
{
	struct checker c = checker();

	(void)state;
	check_privileges(&c);
	assert_int_equal(said_count, 0);
	other_root_file("/proc/self/status", "CapPrm:\t0\nCapEff:\t000001ffffffffff\nCapBnd:\t0\n");
	c = checker();
	check_privileges(&c);
	assert_said("capabilities", CHECK_YES, geteuid() ? "all of them" : "root");
	other_root_file("/proc/self/status", "CapEff:\t000001fbffffffff\nCapBnd:\t000001ffffffffff\n");
	c = checker();
	check_privileges(&c);
	assert_said("capabilities", CHECK_PARTLY, "CAP_SYSLOG missing");
}

static void test_settings(void **state)
{
	static const struct {
		const char *restricted, *frames;
		enum check_result symbols, stack;
	} cases[] = {
		{ "0\n", "127\n", CHECK_YES, CHECK_YES },
		{ "1\n", "126\n", CHECK_YES, CHECK_PARTLY },
		{ "2\n", "1024\n", CHECK_PARTLY, CHECK_YES },
	};
	struct checker c = checker();

	(void)state;
	check_settings(&c);
	assert_int_equal(said_count, 1); /* of tracefs */
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		other_root_file("/proc/sys/kernel/kptr_restrict", cases[i].restricted);
		other_root_file("/proc/sys/kernel/perf_event_max_stack", cases[i].frames);
		other_root_file("/proc/sys/kernel/perf_event_paranoid", "3\n");
		other_root_file("/proc/sys/kernel/perf_event_max_sample_rate", "100000\n");
		c = checker();
		check_settings(&c);
		assert_said("kernel symbol addresses", cases[i].symbols, NULL);
		assert_said("kernel stack frames", cases[i].stack, NULL);
		assert_said("kernel.perf_event_paranoid", CHECK_YES, "3");
		assert_said("samples a second", CHECK_YES, "100000");
		assert_int_equal(said_count, 5);
	}
}

static void test_surroundings(void **state)
{
	struct checker c = checker();

	(void)state;
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("container");
	check_surroundings(&c);
	assert_said("container", CHECK_YES, "none");
	assert_said("the host's users", CHECK_NO, NULL);
	assert_said("control groups of version 2", CHECK_PARTLY, NULL);
	assert_int_equal(c.failed, 1);
	other_root_file("/proc/self/ns/user", ""); /* of another inode than the first namespace's */
	other_root_file("/proc/self/mounts", "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n");
	setenv("container", "lxc", 1);
	c = checker();
	check_surroundings(&c);
	assert_said("container", CHECK_YES, "lxc");
	assert_said("the host's users", CHECK_NO, NULL);
	assert_said("control groups of version 2", CHECK_PARTLY, NULL);
	other_root_file("/proc/self/mounts", "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
	setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	c = checker();
	check_surroundings(&c);
	assert_said("container", CHECK_YES, "kubernetes");
	assert_said("control groups of version 2", CHECK_YES, NULL);
	other_root_file("/run/.containerenv", "");
	c = checker();
	check_surroundings(&c);
	assert_said("container", CHECK_YES, "podman");
	other_root_file("/.dockerenv", "");
	c = checker();
	check_surroundings(&c);
	assert_said("container", CHECK_YES, "docker");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_config, new_root),	     cmocka_unit_test_setup(test_security, new_root),
		cmocka_unit_test_setup(test_privileges, new_root),   cmocka_unit_test_setup(test_settings, new_root),
		cmocka_unit_test_setup(test_surroundings, new_root),
	};

	return run_group_of_descriptors(tests, NULL, free_root);
}
