/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of this very program by their names, as the file has them and as people read them. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/config.h"
#include "agent/probe/probe_file.h"
#include "agent/probe/user_places.h"
#include "base/cleanup.h"
#include "base/io.h"

void probed_here(void);
__attribute__((noinline)) void probed_here(void)
{
	__asm__ volatile("");
}

/* N4ours6callee: what a C++ compiler would call ours::callee(int) */
void _ZN4ours6calleeEi(void);
__attribute__((noinline)) void _ZN4ours6calleeEi(void)
{
	__asm__ volatile(" ");
}

static __attribute__((noinline)) void probed_static(void)
{
	__asm__ volatile("  ");
}

static int find(const char *text, struct probe_set *set, struct agent_error *err)
{
	static struct probe_text t;

	err->message[0] = '\0';
	assert_int_equal(probe_text_parse(text, &t, err), 0);
	return probe_user_places(text, &t, "/proc/self/exe", set, err);
}

/* Are the bytes of the file at the probe those of @function in memory? */
static void assert_stands_at(const struct probe *probe, void (*function)(void))
{
	AUTO_FCLOSE FILE *f = fopen("/proc/self/exe", "re");
	uint8_t bytes[8];

	assert_non_null(f);
	assert_int_equal(fseek(f, (long)probe->offset, SEEK_SET), 0);
	assert_int_equal(fread(bytes, 1, sizeof(bytes), f), sizeof(bytes));
	assert_memory_equal(bytes, (void *)(uintptr_t)function, sizeof(bytes));
}

static void test_found(void **state)
{
	struct probe_set *set = calloc(1, sizeof(*set));
	struct agent_error err;

	(void)state;
	assert_int_equal(find("uprobe:me:probed_here", set, &err), 0);
	assert_int_equal(find("uprobe:me:ours::callee", set, &err), 0);
	assert_int_equal(find("uprobe:me:ours::callee(int)", set, &err), 0);
	assert_int_equal(find("uprobe:me:_ZN4ours6calleeEi", set, &err), 0);
	assert_int_equal(find("uretprobe:me:probed_static", set, &err), 0);
	assert_int_equal(set->count, 5);
	assert_stands_at(&set->list[0], probed_here);
	for (int i = 1; i < 4; i++)
		assert_stands_at(&set->list[i], _ZN4ours6calleeEi);
	assert_stands_at(&set->list[4], probed_static);
	assert_string_equal(set->list[0].label, "uprobe:me:probed_here");
	assert_string_equal(set->list[3].label, "uprobe:me:ours::callee");
	assert_string_equal(set->list[0].target, "/proc/self/exe");
	assert_int_equal(find("uprobe:me:probed_*", set, &err), 0);
	assert_int_equal(set->count, 7);
	assert_true(set->list[6].is_of_pattern);
	probe_set_free(set);
}

static void test_refused(void **state)
{
	struct probe_set *set = calloc(1, sizeof(*set));
	struct agent_error err;

	(void)state;
	assert_int_equal(find("uprobe:me:probed_her", set, &err), -ENOENT);
	assert_non_null(strstr(err.message, "did you mean probed_here?"));
	assert_int_equal(find("uprobe:me:callee", set, &err), -ENOENT);
	assert_non_null(strstr(err.message, "did you mean ours::callee?"));
	assert_int_equal(find("uprobe:me:probed_here+100000", set, &err), -EINVAL);
	assert_non_null(strstr(err.message, "ends before that offset"));
	assert_int_equal(find("uprobe:me:0x1", set, &err), -EINVAL);
	assert_non_null(strstr(err.message, "not in the code"));
	assert_int_equal(find("usdt:me:none:at_all", set, &err), -ENOENT);
	assert_int_equal(set->count, 0);
	probe_set_free(set);
	/* Between two instructions a probe may stand, within one it may not. */
	set = calloc(1, sizeof(*set));
	if (find("uprobe:me:main+1", set, &err))
		assert_non_null(strstr(err.message, "no instruction begins there"));
	else
		assert_string_equal(set->list[0].label, "uprobe:me:main+1");
	probe_set_free(set);
}

static void test_files(void **state)
{
	struct agent_error err;
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(probe_file_find("libc", path, &err), 0);
	assert_non_null(strstr(path, "/libc.so.6"));
	assert_int_equal(probe_file_find("libc.so", path, &err), 0);
	assert_non_null(strstr(path, "/libc.so.6"));
	assert_int_equal(probe_file_find("libc.so.6", path, &err), 0);
	assert_int_equal(probe_file_find("true", path, &err), 0);
	assert_non_null(strstr(path, "bin/true"));
	assert_int_equal(probe_file_find("/proc/self/exe", path, &err), 0);
	assert_string_equal(path, "/proc/self/exe");
	assert_int_equal(probe_file_find("/etc/passwd", path, &err), -ENOEXEC);
	assert_int_equal(probe_file_find("/no/such", path, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/no/such"));
	assert_int_equal(probe_file_find("no-such-thing", path, &err), -ENOENT);
	assert_non_null(strstr(err.message, "give its path"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_files),
	};

	probed_here();
	_ZN4ours6calleeEi();
	probed_static();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
