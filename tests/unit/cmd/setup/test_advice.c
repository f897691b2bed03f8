/* SPDX-License-Identifier: Apache-2.0 */
/* Advice for files of packages, for files that are none's, and for files of other machines. dpkg is the witness. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/setup/advice.h"
#include "symbols/symbols.h"

#define ID "00112233445566778899aabbccddeeff00112233"

static void check(const char *path, const char *build_id, const char *expected)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	advice_debug_files(NULL, path, build_id, &out);
	assert_string_equal(buf_text(&out), expected);
}

static void test_no_package(void **state)
{
	static const char at[] =
		"put its debug file at /usr/lib/debug/.build-id/00/112233445566778899aabbccddeeff00112233.debug";

	(void)state;
	check("/usr/bin/nowhere", ID, at);
	check("/proc/self/exe", ID, at); /* another build of it */
	check("/proc/self/exe", "", "it has no build id; build it with -g and keep it unstripped");
	check("[vdso]", ID, "");
	check("//anon", ID, "");
	check("", ID, "");
}

/* The first line that @command prints, without its end. */
static bool ask(const char *command, char *line, int size)
{
	FILE *f = popen(command, "re");
	bool has = f && fgets(line, size, f);

	line[has ? strcspn(line, "\n") : 0] = '\0';
	return f && pclose(f) == 0 && has;
}

static void check_package(const char *path)
{
	char command[512], real[256], package[128], expected[256];
	AUTO_CLOSE int fd = -1;
	struct build_ids ids;

	snprintf(command, sizeof(command), "readlink -f '%s'", path);
	assert_true(ask(command, real, sizeof(real)));
	snprintf(command, sizeof(command),
		 "p='%s'; { dpkg -S \"$p\" || dpkg -S \"${p#/usr}\"; } 2>/dev/null | head -n 1 | cut -d : -f 1", real);
	assert_true(ask(command, package, sizeof(package)));
	snprintf(expected, sizeof(expected), "install %s%s", package, strcmp(package, "libc6") ? "-dbgsym" : "-dbg");
	fd = open(real, O_RDONLY | O_CLOEXEC);
	assert_int_equal(build_ids_read(fd, &ids), 0);
	check(real, ids.gnu, expected);
}

static void test_package(void **state)
{
	char line[256];

	(void)state;
	if (!ask("dpkg -S /usr/bin/dpkg 2>/dev/null", line, sizeof(line)))
		skip();
	check_package("/usr/bin/dpkg");
	check_package("/bin/ls");
	assert_true(ask("ldconfig -p 2>/dev/null | sed -n 's/.*libc.so.6 (libc6,x86-64.* => //p;s/.*libc.so.6 "
			"(libc6,AArch64.* => //p'",
			line, sizeof(line)));
	check_package(line);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_package), cmocka_unit_test(test_package) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
