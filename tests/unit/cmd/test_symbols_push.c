/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth symbols push` in front of a server of the test's own: what it sends, and what it makes of answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cmd/options/command.h"
#include "cmd/options/options.h"
#include "cmd/symbols_push.h"
#include "tests/unit/http_answers.h"

#define GOOD "{\"build_id\":\"ab\",\"functions\":3,\"named\":2,\"more\":[1]}"

static struct http_answers server;
static char said[4096];

/* Pushes @path to where the answer is @status, @text; what is logged goes to @said. */
static int push(const struct config *config, const char *path, int status, const char *text)
{
	const struct http_answer answers[] = { { "POST /", status, text }, { 0 } };
	char *paths[] = { (char *)(uintptr_t)path };
	AUTO_FCLOSE FILE *log = tmpfile();
	int saved = dup(STDERR_FILENO), result;
	size_t len;

	http_answers_begin(&server, answers);
	dup2(fileno(log), STDERR_FILENO);
	result = symbols_push(config, server.url, paths, 1);
	dup2(saved, STDERR_FILENO);
	close(saved);
	http_answers_end(&server);
	rewind(log);
	len = fread(said, 1, sizeof(said) - 1, log);
	said[len] = '\0';
	return result;
}

static void expect(const struct config *config, int wanted, const char *words, int status, const char *text)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/%d/exe", getpid());
	assert_int_equal(push(config, self, status, text), wanted);
	assert_int_equal(server.count, 1);
	if (!strstr(said, words))
		fail_msg("%s instead of %s", said, words);
}

/* The whole file goes, which says before how long it is. */
static void test_sent(void **state)
{
	struct config config = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	expect(&config, STATUS_DONE, "3 functions for build id ab, 2 addresses there have names", 200, GOOD);
	assert_int_equal(server.content_bytes, st.st_size);
	assert_int_equal(server.body_bytes, st.st_size);
	assert_non_null(strstr(server.head, "\r\nContent-Type: application/octet-stream\r\n"));
}

static void test_answers(void **state)
{
	static const struct {
		int status;
		const char *text, *words;
	} cases[] = {
		{ 200, "", "does not answer as a hearth does" },
		{ 200, "{}", "does not answer as a hearth does" },
		{ 200, "[]", "does not answer as a hearth does" },
		{ 200, "{\"build_id\":7}", "does not answer as a hearth does" },
		{ 200, "{\"build_id\":\"ab\",\"functions\":\"3\"}", "does not answer as a hearth does" },
		{ 200, "{\"build_id\":\"ab\",\"named\":-1}", "does not answer as a hearth does" },
		{ 200, "{\"build_id\":\"ab\"", "does not answer as a hearth does" },
		{ 401, "", "it wants its token" },
		{ 422, "{\"error\":\"it has no symbols\"}", "it has no symbols (status 422)" },
		{ 500, "two\r\nlines", ": two (status 500)" },
		{ 503, "", "no reason is given (status 503)" },
		{ 400, GOOD, "(status 400)" },
	};
	struct config config = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		expect(&config, STATUS_FAILED, cases[i].words, cases[i].status, cases[i].text);
}

/* An address as a browser has it leads to the API, also one that does already. */
static void test_addresses(void **state)
{
	static const struct {
		const char *behind, *path;
	} cases[] = {
		{ "", "/api/v1/symbols" },
		{ "/", "/api/v1/symbols" },
		{ "///", "/api/v1/symbols" },
		{ "/?view=x", "/api/v1/symbols" },
		{ "/#view=sandwich&fn=a", "/api/v1/symbols" },
		{ "/hearth/", "/hearth/api/v1/symbols" },
		{ "/api/v1/symbols", "/api/v1/symbols" },
		{ "/api/v1/symbols/", "/api/v1/symbols" },
		{ "/x/api/v1/symbols?a", "/x/api/v1/symbols" },
		{ "/api/v1/symbol", "/api/v1/symbol/api/v1/symbols" },
	};
	const struct http_answer answers[] = { { "POST /", 200, GOOD }, { 0 } };
	const struct config config = { 0 };
	char *paths[] = { (char *)"/proc/self/exe" }, url[128], wanted[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		http_answers_begin(&server, answers);
		snprintf(url, sizeof(url), "%s%s", server.url, cases[i].behind);
		assert_int_equal(symbols_push(&config, url, paths, 1), STATUS_DONE);
		http_answers_end(&server);
		snprintf(wanted, sizeof(wanted), "POST %s HTTP/1.1\r\n", cases[i].path);
		if (strncmp(server.head, wanted, strlen(wanted)) != 0)
			fail_msg("%s asks %s", cases[i].behind, server.head);
	}
}

/* Headers of options, and a token out of its file; without one nothing is sent. */
static void test_headers(void **state)
{
	char path[] = "/tmp/test_symbols_push.XXXXXX", *lines[] = { (char *)"X-One: 1", (char *)"X-Two: 2" };
	struct config config = { .collector_headers = { .items = lines, .count = 2 } };
	int fd = mkstemp(path);

	(void)state;
	expect(&config, STATUS_DONE, "3 functions", 200, GOOD);
	assert_non_null(strstr(server.head, "\r\nX-One: 1\r\n"));
	assert_non_null(strstr(server.head, "\r\nX-Two: 2\r\n"));
	assert_null(strstr(server.head, "\r\nAuthorization:"));
	config.collector_token_file = path;
	assert_int_equal(push(&config, "/proc/self/exe", 200, GOOD), STATUS_FAILED);
	assert_int_equal(server.count, 0);
	assert_non_null(strstr(said, "it does not hold a token: one word on one line"));
	assert_int_equal(write(fd, "secret\n", 7), 7);
	close(fd);
	expect(&config, STATUS_DONE, "3 functions", 200, GOOD);
	assert_non_null(strstr(server.head, "\r\nAuthorization: Bearer secret\r\n"));
	assert_non_null(strstr(server.head, "\r\nX-One: 1\r\n"));
	unlink(path);
	assert_int_equal(push(&config, "/proc/self/exe", 200, GOOD), STATUS_FAILED);
	assert_int_equal(server.count, 0);
	assert_non_null(strstr(said, ": No such file"));
}

/* Of an answer 64 kB are read, and of what it says no line is longer than one can read. */
static void test_long_answers(void **state)
{
	enum { MOST = 64 << 10 };
	static char text[MOST + 2];
	struct config config = { 0 };
	char *reason;

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		memset(text, ' ', MOST + more);
		memcpy(text, "{\"build_id\":\"ab\"", 16);
		text[MOST + more - 1] = '}';
		text[MOST + more] = '\0';
		expect(&config, more ? STATUS_FAILED : STATUS_DONE,
		       more ? "does not answer as a hearth does" : "0 functions for build id ab, 0 addresses", 200, text);
	}
	memset(text, 'a', 1000);
	memcpy(text, "{\"error\":\"", 10);
	strcpy(text + 1000, "\"}");
	expect(&config, STATUS_FAILED, " (status 422)", 422, text);
	reason = strstr(said, ": aaa");
	assert_non_null(reason);
	assert_int_equal(strspn(reason + 2, "a"), 199);
}

/* Each file is sent, whatever became of those before it. */
static void test_several(void **state)
{
	const struct http_answer answers[] = { { "POST /", 200, GOOD }, { 0 } };
	char *paths[] = { (char *)"/proc/self/exe", (char *)"/nowhere", (char *)"/proc/self/exe" };
	const struct config config = { 0 };

	(void)state;
	for (size_t from = 0; from < 3; from++) {
		http_answers_begin(&server, answers);
		assert_int_equal(symbols_push(&config, server.url, paths + from, 3 - from),
				 from < 2 ? STATUS_FAILED : STATUS_DONE);
		http_answers_end(&server);
		assert_int_equal(server.count, from ? 1 : 2);
	}
}

/* Nothing is sent of what cannot be read, or to what is no address. */
static void test_refused(void **state)
{
	struct config config = { 0 };
	char *paths[] = { (char *)"/proc/self/exe" };

	(void)state;
	assert_int_equal(push(&config, "/nowhere", 200, GOOD), STATUS_FAILED);
	assert_non_null(strstr(said, "cannot read /nowhere: No such file"));
	assert_int_equal(server.count, 0);
	assert_int_equal(push(&config, "/proc/self/maps", 200, GOOD), STATUS_FAILED);
	assert_int_equal(server.count, 0);
	assert_int_equal(symbols_push(&config, "ftp://127.0.0.1/", paths, 1), STATUS_USAGE);
	assert_int_equal(symbols_push(&config, "http://127.0.0.1:1", paths, 1), STATUS_FAILED); /* nobody is there */
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sent),	cmocka_unit_test(test_answers),	     cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_headers), cmocka_unit_test(test_long_answers), cmocka_unit_test(test_several),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
