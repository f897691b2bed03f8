/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what threads wait for: this process's own files, addresses of sockets, what cannot be known. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/proc/wait_targets.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "tests/unit/descriptors.h"

static struct metrics *metrics;
static struct wait_targets *targets;

static int make(void **state)
{
	(void)state;
	metrics = metrics_new();
	return !metrics || wait_targets_new(metrics, &targets);
}

static int destroy(void **state)
{
	(void)state;
	wait_targets_free(targets);
	metrics_free(metrics);
	return 0;
}

static struct wait_target file_at(int fd)
{
	struct wait_target t = { .kind = TARGET_FILE, .fd = fd };
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	t.inode = st.st_ino;
	return t;
}

static const char *name(uint32_t pid, const struct wait_target *t)
{
	return wait_targets_name(targets, pid, t);
}

/* A descriptor is named while it has that file; a name that was found is kept until the next interval. */
static void test_files(void **state)
{
	struct wait_target of_pipe, of_null;
	uint32_t pid = (uint32_t)getpid();
	char expected[64];
	int fds[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(!pipe(fds) && null >= 0);
	of_pipe = file_at(fds[0]);
	of_null = file_at(null);
	snprintf(expected, sizeof(expected), "pipe:[%llu]", (unsigned long long)of_pipe.inode);
	assert_string_equal(name(pid, &of_pipe), expected);
	assert_string_equal(name(pid, &of_null), "/dev/null");
	close(fds[0]);
	assert_string_equal(name(pid, &of_pipe), expected); /* as it was when it was looked at */
	assert_true(wait_targets_memory_bytes(targets) > 0);
	wait_targets_begin(targets);
	assert_string_equal(name(pid, &of_pipe), "[file closed]");
	assert_int_equal(dup2(null, fds[0]), fds[0]); /* another file under the same number */
	assert_string_equal(name(pid, &of_pipe), "[file closed]");
	assert_string_equal(name(0, &of_null), ""); /* a process that /proc does not have */
	close(fds[0]);
	close(fds[1]);
	close(null);
}

/* No more look-ups than an interval has, and the others are counted. */
static void test_budget(void **state)
{
	struct wait_target gone = { .kind = TARGET_FILE, .fd = -1 };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	uint32_t refused = 0;

	(void)state;
	for (uint64_t i = 0; i < 3000; i++) {
		gone.inode = i + 1;
		refused += !strcmp(name((uint32_t)getpid(), &gone), "[file not looked up]");
	}
	assert_int_equal(refused, 1000);
	metrics_write(metrics, &text);
	assert_non_null(strstr(buf_text(&text), "hearth_wait_files_not_looked_up_total 1000\n"));
	assert_non_null(strstr(buf_text(&text), "hearth_wait_files_gone_total 2000\n"));
	wait_targets_begin(targets);
	assert_string_equal(name((uint32_t)getpid(), &gone), "[file closed]");
}

static struct wait_target inet(int family, const char *address, uint16_t port, uint16_t protocol, uint8_t flags)
{
	struct wait_target t = {
		.kind = TARGET_INET, .family = (uint16_t)family, .port = port, .protocol = protocol, .flags = flags
	};

	assert_int_equal(inet_pton(family, address, t.name), 1);
	return t;
}

static void test_sockets(void **state)
{
	const struct {
		struct wait_target target;
		const char *expected;
	} cases[] = {
		{ inet(AF_INET, "10.0.0.1", 5432, IPPROTO_TCP, 0), "tcp 10.0.0.1:5432" },
		{ inet(AF_INET, "0.0.0.0", 80, IPPROTO_TCP, TARGET_LISTENS), "tcp listening *:80" },
		{ inet(AF_INET, "127.0.0.1", 80, IPPROTO_TCP, TARGET_LISTENS), "tcp listening 127.0.0.1:80" },
		{ inet(AF_INET, "0.0.0.0", 0, IPPROTO_UDP, 0), "udp" },
		{ inet(AF_INET6, "::1", 53, IPPROTO_UDP, 0), "udp [::1]:53" },
		{ inet(AF_INET6, "::", 443, IPPROTO_TCP, TARGET_LISTENS), "tcp listening *:443" },
		{ { .kind = TARGET_INET,
		    .family = AF_INET,
		    .port = 50000,
		    .protocol = IPPROTO_TCP,
		    .addr = 80,
		    .name = { 10, 0, 0, 7 } },
		  "tcp :80 client 10.0.0.7" },
		{ { .kind = TARGET_INET,
		    .family = AF_INET,
		    .port = 80,
		    .protocol = IPPROTO_TCP,
		    .addr = 50000,
		    .name = { 10, 0, 0, 7 } },
		  "tcp 10.0.0.7:80" },
		{ inet(AF_INET, "1.2.3.4", 0, 132, 0), "ip 132 1.2.3.4:0" },
		{ { .kind = TARGET_UNIX, .name = "/run/db.sock" }, "unix /run/db.sock" },
		{ { .kind = TARGET_UNIX, .name = "\0bus" }, "unix @bus" },
		{ { .kind = TARGET_UNIX, .name = "/\x1b[2J" }, "unix /?[2J" },
		{ { .kind = TARGET_UNIX }, "unix" },
		{ { .kind = TARGET_FUTEX, .addr = 0x7f0012345678 }, "futex 0x7f0012345678" },
		{ { .kind = TARGET_PIPE, .inode = 77 }, "pipe:[77]" },
		{ { .kind = TARGET_NONE }, "" },
		{ { .kind = 200 }, "" },
		{ { .kind = TARGET_INET, .family = 99, .name = { 1 } }, "" },
	};
	struct wait_target full = { .kind = TARGET_UNIX };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(name(1, &cases[i].target), cases[i].expected);
	memset(full.name, 'x', sizeof(full.name)); /* without an end */
	assert_int_equal(strlen(name(1, &full)), 5 + TARGET_NAME_BYTES);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_files, make, destroy),
		cmocka_unit_test_setup_teardown(test_budget, make, destroy),
		cmocka_unit_test_setup_teardown(test_sockets, make, destroy),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
