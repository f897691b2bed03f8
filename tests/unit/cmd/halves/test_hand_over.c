/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand-over by root to the backend, with owners of this test's: folders by descriptor, copies of secrets that follow
 * their files, files of sinks. Nobody's files change their owner here.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/handed.h"
#include "cmd/halves/hand_over.h"
#include "tests/unit/cmd/parsed.h"

enum { FIRST_HANDED_FD = 100, USER = 1234 };

static char folder[] = "/tmp/test_hand_over-XXXXXX";
/* What was handed over is named by texts of the settings, which live as long as the process. */
static struct config configs[40], *config = configs;
static struct share shares[40], *share = shares;
static struct handed_over handed;

/* --- stand-ins --- */

static bool may_change = true, changes = true;
static char owner_of[256], taken[512]; /* whose owner was asked for; the folders that were taken */
static int first_refusal, refusal;     /* of owner_take_folder() */

bool owner_may_change(void)
{
	return may_change;
}

struct owner owner_for(const char *path)
{
	snprintf(owner_of, sizeof(owner_of), "%s", path ? path : "none");
	return (struct owner){ .is_decided = true, .changes = changes, .uid = USER, .gid = USER + 1 };
}

int owner_take_folder(const struct owner *owner, const char *path)
{
	const int err = first_refusal ? first_refusal : refusal;

	snprintf(taken + strlen(taken), sizeof(taken) - strlen(taken), "%s%s ", owner->changes ? "" : "root's ", path);
	first_refusal = 0;
	return err ? err : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int owner_become(const struct owner *owner)
{
	(void)owner;
	return 0;
}

static uid_t given_to;

int fchown(int fd, uid_t uid, gid_t gid)
{
	(void)fd;
	assert_int_equal(gid, uid + 1);
	given_to = uid;
	return 0;
}

/* --- --- */

/* The path of the file @name, which lives as long as what names it. */
static const char *path_of(const char *name)
{
	static char paths[8][sizeof(folder) + 32];
	size_t i = 0;

	while (paths[i][0] && strcmp(paths[i] + sizeof(folder), name) != 0)
		assert_true(++i < 8);
	snprintf(paths[i], sizeof(paths[0]), "%s/%s", folder, name);
	return paths[i];
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* The file at @path holds @text. */
static void assert_holds(const char *path, const char *text)
{
	char is[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_return_code(fd, errno);
	assert_true(read(fd, is, sizeof(is) - 1) >= 0);
	close(fd);
	assert_string_equal(is, text);
}

static int set_up(void **state)
{
	(void)state;
	setenv("STATE_DIRECTORY", "/default", 1);
	unsetenv("DEBUGINFOD_URLS");
	unsetenv("DEBUGINFOD_CACHE_PATH");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void begin(const char *const *words, bool keeps)
{
	assert_ptr_not_equal(config, &configs[39]);
	*++config = parse_words(&cmd_run, words);
	share++;
	*taken = '\0';
	setenv("STATE_DIRECTORY", "/default", 1);
	assert_int_equal(share_divide(config, share), 0);
	hand_over(share, keeps, &handed);
}

static void end(void)
{
	for (size_t i = 0; i < handed.folder_count; i++)
		assert_true(handed.folders[i] >= FIRST_HANDED_FD);
	first_refusal = refusal = 0;
	changes = true;
}

#define BEGIN(keeps, ...) begin((const char *const[]){ __VA_ARGS__, NULL }, keeps)

static bool is_descriptor(const char *path)
{
	return !strncmp(path, "/proc/self/fd/", 14) || !strncmp(path, "/dev/fd/", 8);
}

/* --- stores --- */

/* Which folder is the store's, and whose owner decides. */
static void test_stores(void **state)
{
	static const struct {
		const char *words[4];
		bool keeps;
		const char *owner, *taken;
	} rows[] = {
		{ { "--store", "/s" }, false, "/s", "/s " },
		{ { "--store", "/s" }, true, "/s", "/s " },
		{ { "--sink", "store=/k" }, false, "/k", "/k " },
		{ { "--store", ":memory:" }, true, "/default", "" },
		{ { "--sink", "store=null" }, false, "null", "null " },
		{ { "--metrics-address", "127.0.0.1:0" }, true, "/default", "/default " },
		{ { "--metrics-address", "127.0.0.1:0" }, false, "/default", "" },
		{ { "--store", "clickhouse+http://h" }, false, "/default", "/default " },
		{ { "--store", "file=x" }, false, "/default", "" },
		{ { "--store", "/s", "--spool", "/p" }, false, "/s", "/s /p " },
		{ { "--store", "/a=b" }, false, "/a=b", "/a=b " },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *words[5] = { rows[i].words[0], rows[i].words[1], rows[i].words[2], rows[i].words[3], NULL };

		begin(words, rows[i].keeps);
		if (strcmp(owner_of, rows[i].owner) || strcmp(taken, rows[i].taken))
			fail_msg("row %zu: owner of %s, taken %s", i, owner_of, taken);
		assert_int_equal(handed.store_errno, 0);
		assert_string_equal(handed.store_error, "");
		end();
	}
}

/* Settings name by descriptor what changed its owner, and messages by the name that was given. */
static void test_names(void **state)
{
	(void)state;
	BEGIN(false, "--store", "/s1", "--spool", "/p1");
	assert_true(is_descriptor(share->backend.store));
	assert_string_equal(handed_name(share->backend.store), "/s1");
	assert_true(is_descriptor(share->backend.spool));
	assert_string_equal(handed_name(share->backend.spool), "/p1");
	assert_ptr_equal(share->senders.spool, share->backend.spool);
	assert_null(share->senders.store);
	assert_string_equal(getenv("STATE_DIRECTORY"), "/default");
	assert_int_equal(handed.folder_count, 2);
	end();
	BEGIN(false, "--sink", "store=/k1");
	assert_null(share->backend.store);
	assert_int_equal(share->backend.sinks.count, 1);
	assert_memory_equal(share->backend.sinks.items[0], "store=", 6);
	assert_string_equal(handed_name(share->backend.sinks.items[0] + 6), "/k1");
	end();
	BEGIN(true, "--metrics-address", "127.0.0.1:0");
	assert_null(share->backend.store);
	assert_string_equal(handed_name(getenv("STATE_DIRECTORY")), "/default");
	assert_true(is_descriptor(getenv("STATE_DIRECTORY")));
	end();
	changes = false;
	BEGIN(false, "--store", "/s2", "--spool", "/p2");
	assert_string_equal(share->backend.store, "/s2");
	assert_string_equal(share->backend.spool, "/p2");
	assert_int_equal(handed.folder_count, 2);
	end();
}

/* A folder with others' things in it leaves the backend root's; a further one is not to be had. */
static void test_refused(void **state)
{
	(void)state;
	first_refusal = -EPERM;
	BEGIN(false, "--store", "/s3");
	assert_string_equal(taken, "/s3 root's /s3 ");
	assert_true(handed.owner.is_decided && !handed.owner.changes);
	assert_int_equal(handed.owner.uid, geteuid());
	assert_int_equal(handed.owner.gid, getegid());
	assert_int_equal(handed.store_errno, 0);
	assert_string_equal(share->backend.store, "/s3");
	assert_true(is_said_last("/s3 is root's and holds more than hearth's files"));
	end();
	refusal = -EPERM;
	BEGIN(false, "--store", "/s4");
	assert_int_equal(handed.store_errno, -EPERM);
	assert_string_equal(handed.store_error, "cannot keep profiles in /s4: Operation not permitted");
	assert_int_equal(handed.folder_count, 0);
	end();
	refusal = -ENOSPC;
	BEGIN(true, "--metrics-address", "127.0.0.1:0");
	assert_string_equal(taken, "/default ");
	assert_true(handed.owner.changes);
	assert_string_equal(handed.store_error, "cannot keep profiles in /default: No space left on device");
	assert_string_equal(getenv("STATE_DIRECTORY"), "/default");
	end();
}

/* --- debug files --- */

static void test_cache(void **state)
{
	static const struct {
		const char *urls, *set, *taken;
		bool changes;
	} rows[] = {
		{ "http://h", NULL, "/s /s/debuginfod ", true },
		{ "http://h", "/c", "/s /c ", true },
		{ "http://h", "", "/s /s/debuginfod ", true },
		{ "", NULL, "/s ", true },
		{ NULL, "/c", "/s ", true },
		{ "http://h", NULL, "root's /s ", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		unsetenv("DEBUGINFOD_URLS");
		unsetenv("DEBUGINFOD_CACHE_PATH");
		if (rows[i].urls)
			setenv("DEBUGINFOD_URLS", rows[i].urls, 1);
		if (rows[i].set)
			setenv("DEBUGINFOD_CACHE_PATH", rows[i].set, 1);
		changes = rows[i].changes;
		BEGIN(false, "--store", "/s");
		assert_string_equal(taken, rows[i].taken);
		if (i < 3)
			assert_string_equal(handed_name(getenv("DEBUGINFOD_CACHE_PATH")), i == 1 ? "/c" : "/s/debuginfod");
		end();
	}
	unsetenv("DEBUGINFOD_URLS");
	unsetenv("DEBUGINFOD_CACHE_PATH");
}

/* --- secrets --- */

/* A copy has what the file has, for the owner alone, and follows the file; a file that is not there stays so. */
static void test_secrets(void **state)
{
	struct stat st;
	int copy;

	(void)state;
	write_file("token", "word");
	write_file("key", "longer secret");
	BEGIN(false, "--metrics-address", "127.0.0.1:0", "--token-file", path_of("token"), "--tls-key", path_of("key"),
	      "--collector-ca", path_of("none"), "--tls-cert", folder);
	assert_int_equal(handed.secret_count, 2);
	assert_true(is_descriptor(share->backend.token_file));
	assert_string_equal(handed_name(share->backend.token_file), path_of("token"));
	assert_string_equal(handed_name(share->backend.tls_key), path_of("key"));
	assert_string_equal(share->backend.tls_cert, folder); /* no file: it fails where it is used */
	assert_ptr_equal(share->senders.tls_key, share->backend.tls_key);
	assert_string_equal(share->agent.token_file, path_of("token"));
	assert_int_equal(given_to, USER);
	assert_holds(share->backend.token_file, "word");
	assert_holds(share->backend.tls_key, "longer secret");
	assert_string_equal(handed_name(share->backend.collector_ca), path_of("none"));
	assert_int_equal(open(share->backend.collector_ca, O_RDONLY), -1);
	assert_int_equal(errno, ENOENT);
	copy = handed.secrets[0].copy;
	assert_true(copy >= FIRST_HANDED_FD && fcntl(copy, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fstat(copy, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0400);
	end();

	hand_over_again(&handed);
	assert_holds(share->backend.tls_key, "longer secret");
	write_file("key", "short"); /* and the rest of the longer one is gone */
	hand_over_again(&handed);
	assert_holds(share->backend.tls_key, "short");
	assert_holds(share->backend.token_file, "word");
	write_file("other", "shore"); /* as long: another file takes its place */
	assert_int_equal(rename(path_of("other"), path_of("key")), 0);
	hand_over_again(&handed);
	assert_holds(share->backend.tls_key, "shore");
	assert_int_equal(unlink(path_of("key")), 0);
	hand_over_again(&handed);
	assert_holds(share->backend.tls_key, "shore");
	assert_int_equal(mkfifo(path_of("key"), 0600), 0);
	hand_over_again(&handed); /* nobody writes there, and nobody is waited for */
	assert_holds(share->backend.tls_key, "shore");
	/* the same place and length, written a second later */
	write_file("token", "wort");
	assert_int_equal(utimensat(AT_FDCWD, path_of("token"), (struct timespec[]){ { 7, 0 }, { 7, 0 } }, 0), 0);
	hand_over_again(&handed);
	assert_holds(share->backend.token_file, "wort");
}

/* Who stays who he is reads his files himself. */
static void test_no_secrets(void **state)
{
	(void)state;
	changes = false;
	BEGIN(false, "--metrics-address", "127.0.0.1:0", "--token-file", path_of("token"));
	assert_int_equal(handed.secret_count, 0);
	assert_string_equal(share->backend.token_file, path_of("token"));
	end();
}

/* A secret that is too large is not cut. */
static void test_large_secret(void **state)
{
	(void)state;
	write_file("large", "");
	assert_int_equal(truncate(path_of("large"), (1 << 20) + 1), 0);
	BEGIN(false, "--metrics-address", "127.0.0.1:0", "--token-file", path_of("large"));
	assert_int_equal(handed.secret_count, 0);
	assert_string_equal(share->backend.token_file, path_of("large"));
	end();
}

/* --- ports --- */

/* Ports below 1024 are bound before privileges go, others later. */
static void test_ports(void **state)
{
	static const char *const addresses[] = { "127.0.0.1:1021", "127.0.0.1:1022", "127.0.0.1:1023",
						 "127.0.0.1:1020", "127.0.0.1:1019", "127.0.0.1:1018" };
	unsigned port;
	int fd;

	(void)state;
	if (geteuid())
		skip();
	hand_over_ports(&(struct config){ .http_address = addresses[0],
					  .page_address = addresses[1],
					  .metrics_address = addresses[2],
					  .grpc_address = addresses[3],
					  .rest_address = addresses[4],
					  .pprof_address = addresses[5] });
	for (size_t i = 0; i < 6; i++) {
		fd = handed_take_socket(addresses[i], &port);
		assert_true(fd >= 0);
		assert_int_equal(port, strtoul(addresses[i] + 10, NULL, 10));
		close(fd);
	}
	hand_over_ports(
		&(struct config){ .http_address = "127.0.0.1:1024", .page_address = "127.0.0.1:0", .grpc_address = "off" });
	assert_int_equal(handed_take_socket("127.0.0.1:1024", &port), -1);
	assert_int_equal(handed_take_socket("127.0.0.1:0", &port), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stores),	     cmocka_unit_test(test_names),   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_cache),	     cmocka_unit_test(test_secrets), cmocka_unit_test(test_no_secrets),
		cmocka_unit_test(test_large_secret), cmocka_unit_test(test_ports),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
