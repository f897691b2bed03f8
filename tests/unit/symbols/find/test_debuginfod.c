/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from servers: elfutils' own server on loopback (left out where there is none), folders that stand for servers
 * (file: addresses), one that never answers. A file that comes is verified, a failure is remembered, limits hold, and
 * elfutils' own client finds in the cache what ours put there, and the other way round.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/find/debuginfod.h"
#include "symbols/find/symbol_files.h"
#include "symbols/symbols.h"

#define ID	 "feedc0de01feedc0de01feedc0de01feedc0de01" /* elfutils passes over shorter ones */
#define OTHER_ID "feedc0de02feedc0de02feedc0de02feedc0de02"

static char folder[] = "/tmp/test_debuginfod.XXXXXX";

static int try_run(const char *command)
{
	char line[2048];

	snprintf(line, sizeof(line), "cd %s && %s", folder, command);
	return system(line);
}

static void run(const char *command)
{
	assert_int_equal(try_run(command), 0);
}

static void set(const char *name, const char *value)
{
	assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

/* A client of the folder @server, with an empty cache. */
static struct debuginfod *start(const char *server)
{
	struct debuginfod *d;
	char urls[256];

	run("rm -rf cache");
	snprintf(urls, sizeof(urls), "  file://%s/nowhere  file://%s/%s/ ", folder, folder, server);
	set("DEBUGINFOD_URLS", urls);
	assert_int_equal(debuginfod_new(&d), 0);
	return d;
}

static void assert_has_id(int fd, const char *id)
{
	struct build_ids ids;

	assert_true(fd >= 0);
	assert_int_equal(build_ids_read(fd, &ids), 0);
	assert_string_equal(ids.gnu, id);
	close(fd);
}

static int make(void **state)
{
	char cache[128];

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(cache, sizeof(cache), "%s/cache", folder);
	set("DEBUGINFOD_CACHE_PATH", cache);
	run("echo 'int main(void) { return 0; }' >a.c && gcc -g -Wl,--build-id=0x" ID " -o whole a.c && "
	    "gcc -g -Wl,--build-id=0x" OTHER_ID " -o other a.c && mkdir -p served/buildid/" ID " wrong/buildid/" ID);
	run("objcopy --only-keep-debug whole served/buildid/" ID "/debuginfo && strip -o stripped whole && "
	    "objcopy --only-keep-debug other wrong/buildid/" ID "/debuginfo");
	return 0;
}

static int destroy(void **state)
{
	(void)state;
	run("rm -r \"$PWD\"");
	return 0;
}

static void test_fetch(void **state)
{
	struct debuginfod *d = start("served");
	struct pollfd event = { .fd = debuginfod_event_fd(d), .events = POLLIN };
	struct debuginfod_counts counts;
	struct stat st;
	char path[128];
	int fd;

	(void)state;
	assert_int_equal(debuginfod_find(d, ID), -EINPROGRESS);
	assert_int_equal(poll(&event, 1, 30000), 1);
	fd = debuginfod_find(d, ID);
	assert_has_id(fd, ID);
	counts = debuginfod_counts(d);
	snprintf(path, sizeof(path), "%s/cache/" ID "/debuginfo", folder);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(counts.fetched, 1);
	assert_int_equal(counts.bytes, st.st_size);
	run("test \"$(ls cache/" ID ")\" = debuginfo"); /* nothing else is left */
	debuginfod_free(d);

	/* It stays, and needs no server. */
	set("DEBUGINFOD_URLS", "file:///nowhere");
	assert_int_equal(debuginfod_new(&d), 0);
	assert_has_id(debuginfod_find(d, ID), ID);
	debuginfod_free(d);
}

static void test_missing(void **state)
{
	struct debuginfod *d = start("served");
	char command[256];

	(void)state;
	assert_int_equal(debuginfod_wait(d, OTHER_ID), -ENOENT);
	assert_int_equal(debuginfod_counts(d).missing, 1);
	run("test -f cache/" OTHER_ID "/debuginfo && test ! -s cache/" OTHER_ID "/debuginfo");
	/* There by now, but it was asked for a moment ago. */
	run("mkdir served/buildid/" OTHER_ID " && objcopy --only-keep-debug other served/buildid/" OTHER_ID "/debuginfo");
	assert_int_equal(debuginfod_wait(d, OTHER_ID), -ENOENT);
	assert_int_equal(debuginfod_counts(d).missing, 1);
	debuginfod_free(d);
	/* Another client heeds that, too, until it is long ago. */
	assert_int_equal(debuginfod_new(&d), 0);
	assert_int_equal(debuginfod_find(d, OTHER_ID), -ENOENT);
	run("touch -d '11 minutes ago' cache/" OTHER_ID "/debuginfo");
	assert_has_id(debuginfod_wait(d, OTHER_ID), OTHER_ID);
	debuginfod_free(d);
	snprintf(command, sizeof(command), "rm -r served/buildid/" OTHER_ID);
	run(command);
}

static void test_unverified(void **state)
{
	struct debuginfod *d = start("wrong");

	(void)state;
	assert_int_equal(debuginfod_wait(d, ID), -EBADMSG);
	assert_int_equal(debuginfod_wait(d, ID), -EBADMSG); /* remembered */
	assert_int_equal(debuginfod_counts(d).unverified, 1);
	assert_int_equal(debuginfod_counts(d).fetched, 0);
	run("test ! -e cache/" ID);
	debuginfod_free(d);
}

static void test_limits(void **state)
{
	struct debuginfod *d;

	(void)state;
	set("DEBUGINFOD_MAXSIZE", "1000");
	d = start("served");
	assert_int_equal(debuginfod_wait(d, ID), -EFBIG);
	assert_int_equal(debuginfod_counts(d).failed, 1);
	debuginfod_free(d);
	set("DEBUGINFOD_MAXSIZE", NULL);
	d = start("served");
	assert_int_equal(debuginfod_find(d, "../../etc/x"), -EINVAL);
	assert_int_equal(debuginfod_find(d, "ab"), -EINVAL);
	assert_int_equal(debuginfod_find(d, ""), -EINVAL);
	debuginfod_free(d);
	set("DEBUGINFOD_URLS", " ");
	assert_int_equal(debuginfod_new(&d), -ENOENT);
	set("DEBUGINFOD_URLS", NULL);
	assert_int_equal(debuginfod_new(&d), -ENOENT);
	debuginfod_free(NULL);
}

/* A server that takes the connection and says nothing: it is left after the time-out, and when nobody waits any more. */
static void test_silent(void **state)
{
	AUTO_CLOSE int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	struct pollfd event = { .fd = listener, .events = POLLIN };
	struct debuginfod *d;
	char url[64];

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", ntohs(addr.sin_port));
	set("DEBUGINFOD_URLS", url);
	set("DEBUGINFOD_TIMEOUT", "1");
	run("rm -rf cache");
	assert_int_equal(debuginfod_new(&d), 0);
	assert_int_equal(debuginfod_wait(d, ID), -ETIMEDOUT);
	debuginfod_free(d);
	run("test ! -e cache/" ID);
	set("DEBUGINFOD_TIMEOUT", "3000");
	assert_int_equal(debuginfod_new(&d), 0);
	close(accept(listener, NULL, NULL)); /* of the one before */
	assert_int_equal(debuginfod_find(d, ID), -EINPROGRESS);
	assert_int_equal(debuginfod_find(d, ID), -EINPROGRESS);
	assert_int_equal(poll(&event, 1, 30000), 1);
	debuginfod_free(d); /* the transfer runs */
	set("DEBUGINFOD_TIMEOUT", NULL);
}

/* What nobody read for a week goes, once a day. */
static void test_cleaning(void **state)
{
	struct debuginfod *d = start("served");

	(void)state;
	debuginfod_free(d);
	run("mkdir cache/aaaa cache/bbbb && echo >cache/aaaa/debuginfo && echo >cache/bbbb/debuginfo && echo >cache/mine && "
	    "touch -d '8 days ago' cache/aaaa/debuginfo cache/mine");
	assert_int_equal(debuginfod_new(&d), 0);
	debuginfod_free(d);
	run("test -e cache/aaaa"); /* cleaned a moment ago */
	run("touch -d '2 days ago' cache/cache_clean_interval_s");
	assert_int_equal(debuginfod_new(&d), 0);
	assert_int_equal(debuginfod_wait(d, ID) >= 0, 1);
	debuginfod_free(d);
	run("test ! -e cache/aaaa && test -e cache/bbbb/debuginfo && test -e cache/mine");
}

/* --- elfutils --- */

static pid_t start_server(const char *port)
{
	pid_t pid = fork();

	if (pid == 0) {
		int log = chdir(folder) ? -1 : open("server.log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		unsetenv("DEBUGINFOD_URLS"); /* it would ask itself */
		execlp("debuginfod", "debuginfod", "-p", port, "-d", ":memory:", "-F", "repository", (char *)NULL);
		_exit(1);
	}
	return pid;
}

/* A stripped program's names by way of elfutils' server. */
static void test_elfutils_server(void **state)
{
	struct symbol_files files;
	struct debuginfod *d;
	char port[16], url[64], path[128];
	AUTO_CLOSE int fd = -1;
	int found = -ENOENT;
	pid_t server;

	(void)state;
	if (system("command -v debuginfod >/dev/null"))
		skip();
	run("rm -rf cache && mkdir -p repository cache && echo 0 >cache/cache_miss_s && "
	    "cp served/buildid/" ID "/debuginfo repository/whole.debug");
	snprintf(port, sizeof(port), "%d", 20000 + getpid() % 12000); /* below the ports that the kernel gives */
	snprintf(url, sizeof(url), "http://127.0.0.1:%s/", port);
	set("DEBUGINFOD_URLS", url);
	server = start_server(port);
	assert_int_equal(debuginfod_new(&d), 0);
	for (int i = 0; i < 100 && found < 0; i++) { /* until it listens, and has looked at its files */
		found = debuginfod_wait(d, ID);
		usleep(200000);
		run("rm -rf cache/" ID);
	}
	assert_has_id(found, ID);
	snprintf(path, sizeof(path), "%s/stripped", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(symbol_files_open(fd, path, NULL, d, &files), 0);
	assert_non_null(files.debug.data);
	symbol_files_close(&files);
	debuginfod_free(d);
	kill(server, SIGKILL); /* a SIGTERM between two instructions of its waiting loop would be forgotten until the next */
	waitpid(server, NULL, 0);
	/* Its client finds it in the cache, now that the server is gone. */
	if (!system("command -v debuginfod-find >/dev/null"))
		run("test \"$(debuginfod-find debuginfo " ID ")\" = \"$DEBUGINFOD_CACHE_PATH/" ID "/debuginfo\"");
}

/* What elfutils' client put into the cache, ours finds; that there is nothing, too. */
static void test_elfutils_client(void **state)
{
	struct debuginfod *d;
	char url[256];

	(void)state;
	if (system("command -v debuginfod-find >/dev/null"))
		skip();
	run("rm -rf cache");
	snprintf(url, sizeof(url), "file://%s/served", folder);
	set("DEBUGINFOD_URLS", url);
	run("debuginfod-find debuginfo " ID " >/dev/null && ! debuginfod-find debuginfo " OTHER_ID " 2>/dev/null");
	set("DEBUGINFOD_URLS", "file:///nowhere");
	assert_int_equal(debuginfod_new(&d), 0);
	assert_has_id(debuginfod_find(d, ID), ID);
	assert_int_equal(debuginfod_find(d, OTHER_ID), -ENOENT);
	debuginfod_free(d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fetch),		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_unverified),	cmocka_unit_test(test_limits),
		cmocka_unit_test(test_silent),		cmocka_unit_test(test_cleaning),
		cmocka_unit_test(test_elfutils_server), cmocka_unit_test(test_elfutils_client),
	};

	return cmocka_run_group_tests(tests, make, destroy);
}
