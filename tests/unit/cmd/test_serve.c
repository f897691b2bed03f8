/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth serve` and `hearth view`, each in a process of its own that is told to end before it begins: what is listened on
 * and said of it, and what is refused, with which status. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"

#define ANY "127.0.0.1:0"

static char folder[64], capture[96], taken[32]; /* taken: an address that somebody has */
static int taker;
static char said[32 << 10];
static struct rlimit files; /* of that process, at its end */

/* Runs `hearth @cmd WORDS...` as if by a shell: its status. With @open_files that it may have at first; 0: as it is. */
static int run(const struct cmd *cmd, rlim_t open_files, const char *const *words)
{
	struct config config = parse_words(cmd, words);
	AUTO_FCLOSE FILE *log = tmpfile(), *limits = tmpfile();
	sigset_t set;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		sigemptyset(&set);
		sigaddset(&set, SIGTERM);
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(SIGTERM);
		getrlimit(RLIMIT_NOFILE, &files);
		files.rlim_cur = open_files ? open_files : files.rlim_cur;
		if (setrlimit(RLIMIT_NOFILE, &files) || dup2(fileno(log), STDERR_FILENO) < 0)
			_exit(99);
		log_set_level(LOG_INFO);
		status = cmd->run(&config);
		getrlimit(RLIMIT_NOFILE, &files);
		_exit(write(fileno(limits), &files, sizeof(files)) == sizeof(files) ? status : 98);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	config_fini(&config);
	rewind(log);
	said[fread(said, 1, sizeof(said) - 1, log)] = '\0';
	rewind(limits);
	(void)!fread(&files, sizeof(files), 1, limits);
	if (!WIFEXITED(status))
		fail_msg("ended by signal %d: %s", WTERMSIG(status), said);
	return WEXITSTATUS(status);
}

#define SERVE(...)                                                                                                     \
	run(&cmd_serve, 0,                                                                                             \
	    (const char *const[]){ "--http-address", ANY, "--grpc-address", "off", "--signals-size", "0", __VA_ARGS__, \
				   NULL })
#define VIEW(...) run(&cmd_view, 0, (const char *const[]){ "--http-address", ANY, __VA_ARGS__, NULL })

/* A port's digits in @said are 0 then. */
static void blank_ports(void)
{
	char *to = said;

	for (const char *p = said; *p;) {
		bool is_port = !strncmp(p, "127.0.0.1:", 10);

		if (!is_port) {
			*to++ = *p++;
			continue;
		}
		memmove(to, p, 10);
		to += 10;
		p += 10;
		*to++ = '0';
		p += strspn(p, "0123456789");
	}
	*to = '\0';
}

static void says(const char *text)
{
	if (!strstr(said, text))
		fail_msg("'%s' is not in: %s", text, said);
}

static void says_not(const char *text)
{
	if (strstr(said, text))
		fail_msg("'%s' is in: %s", text, said);
}

static int setup(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	FILE *f;

	(void)state;
	strcpy(folder, "/tmp/test_serve.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(capture, sizeof(capture), "%s/x.folded", folder);
	f = fopen(capture, "w");
	if (!f || fputs("main;a 5\nmain;b 3\n", f) < 0 || fclose(f))
		return -1;
	taker = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(taker, (struct sockaddr *)&at, len) || listen(taker, 1) || getsockname(taker, (struct sockaddr *)&at, &len))
		return -1;
	snprintf(taken, sizeof(taken), "127.0.0.1:%u", ntohs(at.sin_port));
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	close(taker);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void test_addresses(void **state)
{
	(void)state;
	assert_int_equal(SERVE("--sink", "null"), STATUS_DONE);
	blank_ports();
	says("listening on http://127.0.0.1:0 for OTLP/HTTP (POST /v1development/profiles), /metrics and /healthz; profiles "
	     "go to null\n");
	says_not("page at");
	says_not("alone");
	assert_int_equal(SERVE("--sink", "null", "--grpc-address", ANY), STATUS_DONE);
	blank_ports();
	says("/healthz, on grpc://127.0.0.1:0 for OTLP/gRPC; profiles go to null\n");
	assert_int_equal(SERVE("--sink", "null", "--metrics-address", ANY), STATUS_DONE);
	blank_ports();
	says("listening on http://127.0.0.1:0 for /metrics alone\n");
	assert_int_equal(SERVE("--sink", "null", "--rest-address", ANY), STATUS_DONE);
	blank_ports();
	says("listening on http://127.0.0.1:0 for /workloads alone\n");
}

static void test_page(void **state)
{
	(void)state;
	assert_int_equal(SERVE("--store", ":memory:"), STATUS_DONE);
	blank_ports();
	says("page at http://127.0.0.1:0/\n");
	assert_int_equal(SERVE("--store", ":memory:", "--page-address", ANY), STATUS_DONE);
	blank_ports();
	says("page at http://127.0.0.1:0/\n");
	says("listening on http://127.0.0.1:0 for OTLP/HTTP");
	assert_int_equal(SERVE("--store", ":memory:", "--page-address", "off"), STATUS_DONE);
	says_not("page at");
	assert_int_equal(SERVE("--sink", "null", "--page-address", ANY), STATUS_DONE);
	says("no page at " ANY ": profiles are not kept here, which --store does\n");
}

static void test_refused(void **state)
{
	static const struct {
		const char *words[4], *says;
		int status;
	} cases[] = {
		{ { "--sink", "nul" }, "--sink: there is no sink 'nul'; did you mean null?", STATUS_USAGE },
		{ { "--sink", "null=x" }, "--sink: null takes no value", STATUS_USAGE },
		{ { "--sink", "file" }, "--sink: file needs a value: file=PATH", STATUS_USAGE },
		{ { "--sink", "file=/nowhere/x" }, "cannot write to /nowhere/x: No such file", STATUS_FAILED },
		{ { "--sink", "store=:memory:", "--store", ":memory:" },
		  "--store: profiles are kept in one store only",
		  STATUS_USAGE },
		{ { "--sink", "null", "--tls-key", "x" }, "--tls-key needs --tls-cert", STATUS_FAILED },
		{ { "--sink", "null", "--token-file", "/nowhere/x" }, "--token-file: cannot use /nowhere/x", STATUS_FAILED },
		{ { "--sink", "null", "--http-address", "nonsense" }, "nonsense", STATUS_FAILED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int status = SERVE(cases[i].words[0], cases[i].words[1], cases[i].words[2], cases[i].words[3]);

		if (status != cases[i].status)
			fail_msg("%s: status %d", cases[i].says, status);
		says(cases[i].says);
		says_not("listening on");
	}
}

/* An address that is taken is refused, whatever was to be there. */
static void test_taken(void **state)
{
	static const char *const options[] = { "--http-address", "--grpc-address", "--metrics-address", "--rest-address",
					       "--page-address" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		assert_int_equal(SERVE("--store", ":memory:", options[i], taken), STATUS_FAILED);
		says("cannot listen on '127.0.0.1:");
		says("Address already in use");
		says_not("listening on");
	}
}

/* Both protocols may have all connections, and there is room beside them; what is enough stays. */
static void test_file_limit(void **state)
{
	static const struct {
		rlim_t before;
		const char *connections;
		rlim_t after;
	} cases[] = {
		{ 256, "100", 400 }, { 399, "100", 400 }, { 400, "100", 400 }, { 401, "100", 401 }, { 256, "28", 256 }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(run(&cmd_serve, cases[i].before,
				     (const char *const[]){ "--http-address", ANY, "--grpc-address", "off", "--sink", "null",
							    "--max-connections", cases[i].connections, NULL }),
				 STATUS_DONE);
		says_not("files may be open");
		assert_int_equal(files.rlim_cur, cases[i].after);
	}
}

/* Without a sink: printed, and kept in the default store where that can be. */
static void test_default(void **state)
{
	char place[96];

	(void)state;
	snprintf(place, sizeof(place), "%s/default", folder);
	setenv("STATE_DIRECTORY", place, 1);
	assert_int_equal(SERVE("--page-address", "off"), STATUS_DONE);
	says("; profiles go to print, ");
	says(place);
	says_not("not kept");
	setenv("STATE_DIRECTORY", "/dev/null/x", 1);
	assert_int_equal(SERVE("--page-address", "off"), STATUS_DONE);
	says("profiles are printed but not kept: ");
	says("; profiles go to print\n");
	unsetenv("STATE_DIRECTORY");
}

/* An address for a profile that is not there is said to be one. */
static void test_own_profile(void **state)
{
	(void)state;
	assert_int_equal(SERVE("--sink", "null"), STATUS_DONE);
	says_not("pprof");
	assert_int_equal(SERVE("--sink", "null", "--pprof-address", ANY), STATUS_DONE);
	blank_ports();
	says("listening on http://127.0.0.1:0 for hearth's own profile (/debug/pprof/) alone\n");
	says("--pprof-address has no profile to show: ");
}

/* A file that samples is another command's. */
static void test_sampling_file(void **state)
{
	char path[96];
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/pipelines.yaml", folder);
	f = fopen(path, "we");
	fputs("receivers: { profiling: }\nexporters: { nop: }\n"
	      "service: { pipelines: { profiles: { receivers: [profiling], exporters: [nop] } } }\n",
	      f);
	fclose(f);
	assert_int_equal(SERVE("--config", path), STATUS_USAGE);
	says("the file has a receiver that samples this machine, which 'hearth run --config FILE' does");
	says_not("listening on");
}

static void test_view(void **state)
{
	char store[96], option[32 + sizeof(store)];

	(void)state;
	assert_int_equal(VIEW(capture), STATUS_DONE);
	blank_ports();
	says("page at http://127.0.0.1:0/#from=first&to=last&live= until Ctrl-C\n");
	assert_int_equal(VIEW(capture, "/nowhere/x"), STATUS_FAILED);
	says("cannot read /nowhere/x: No such file");
	says_not("page at");
	assert_int_equal(VIEW(folder), STATUS_FAILED); /* no store is in it */
	says_not("page at");
	snprintf(store, sizeof(store), "%s/store", folder);
	snprintf(option, sizeof(option), "store=%s", store);
	assert_int_equal(SERVE("--sink", option), STATUS_DONE);
	assert_int_equal(VIEW(store), STATUS_DONE);
	blank_ports();
	says("page at http://127.0.0.1:0/#from=first&to=last&live= until Ctrl-C\n");
	assert_int_equal(VIEW(capture, "--http-address", "nonsense"), STATUS_FAILED);
	says("nonsense");
	assert_int_equal(VIEW(capture, "--http-address", "off"), STATUS_DONE); /* nobody is to see it */
	says_not("page at");
}

/* What can be found out before anything is sampled: wrong usage. */
static void test_sampling(void **state)
{
	static const struct {
		const struct cmd *cmd;
		const char *words[5], *says;
	} cases[] = {
		{ &cmd_run, { "--sink", "null", "--cpu", "x" }, "--cpu: 'x' is no list of CPUs" },
		{ &cmd_run, { "--sink", "null", "--enrich", "pod" }, "--enrich: there is no 'pod'; did you mean pods?" },
		{ &cmd_run, { "--sink", "null", "--probabilistic", "101" }, "--probabilistic: '101' is not a percentage" },
		{ &cmd_run, { "--cpu", "x" }, "--cpu: 'x' is no list of CPUs" },
		{ &cmd_top, { "--cpu", "x" }, "--cpu: 'x' is no list of CPUs" },
		{ &cmd_top, { "--uid", "no-such-user" }, "--uid: there is no user 'no-such-user'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int status = run(cases[i].cmd, 0, cases[i].words);

		if (status != STATUS_USAGE)
			fail_msg("%s: status %d, %s", cases[i].says, status, said);
		says(cases[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),     cmocka_unit_test(test_page),	 cmocka_unit_test(test_refused),
		cmocka_unit_test(test_taken),	      cmocka_unit_test(test_file_limit), cmocka_unit_test(test_view),
		cmocka_unit_test(test_sampling),      cmocka_unit_test(test_default),	 cmocka_unit_test(test_own_profile),
		cmocka_unit_test(test_sampling_file),
	};

	cmd_list(all_commands);
	setenv("HEARTH_CONFIG", "/dev/null", 1);
	return run_group_of_descriptors(tests, setup, teardown);
}
