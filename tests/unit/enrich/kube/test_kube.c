/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that follows pods, against a server over TLS that does what the real one does seldom (api_server.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "enrich/kube/kube.h"
#include "tests/unit/enrich/describing.h"

#define LONG_NS (20 * NSEC_PER_SEC)

static char dir[] = "/tmp/hearth-kube-XXXXXX";
static bool is_ready;

static const char make_certificates[] =
	"exec 2>/dev/null >&2; set -e\n"
	"openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca -addext "
	"keyUsage=keyCertSign\n"
	"openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=server\n"
	"printf 'subjectAltName=IP:127.0.0.1\\nauthorityKeyIdentifier=keyid\\n' >ext\n"
	"openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile ext\n"
	"openssl req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.crt -days 2 -subj /CN=other\n"
	"printf first >token\n";

static void write_file(const char *name, const char *text)
{
	char path[128];
	AUTO_FCLOSE FILE *f = NULL;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
}

static int setup(void **state)
{
	char command[2048];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command), "cd %s && (%s)", dir, make_certificates);
	is_ready = system(command) == 0;
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* --- the server and what follows it --- */

struct scene {
	pid_t pid;
	FILE *orders, *said;
	int port;
	struct buf asked; /* what the server was asked for, a line each */
	struct rules *rules;
	struct known *known;
	struct metrics *metrics;
	struct kube *kube;
};

static void start_server(struct scene *s)
{
	char cert[64], key[64], line[64];
	const char *arguments[] = { "python3", TEST_DATA "/unit/enrich/kube/api_server.py", cert, key, "first", NULL };
	int in[2], out[2];

	snprintf(cert, sizeof(cert), "%s/server.pem", dir);
	snprintf(key, sizeof(key), "%s/server.key", dir);
	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execvp(arguments[0], (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	s->orders = fdopen(in[1], "w");
	s->said = fdopen(out[0], "r");
	if (!fgets(line, sizeof(line), s->said) || sscanf(line, "port %d", &s->port) != 1)
		fail_msg("the server did not start");
}

/* Gives an order, and waits until it is obeyed. */
static void order(struct scene *s, const char *text)
{
	char line[4096];

	fprintf(s->orders, "%s\n", text);
	fflush(s->orders);
	alarm(30);
	while (fgets(line, sizeof(line), s->said) && strcmp(line, "done\n") != 0)
		buf_puts(&s->asked, line);
	alarm(0);
}

static void order_pod(struct scene *s, const char *uid, const char *id)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "put {\"metadata\":{\"uid\":\"%s\",\"name\":\"pod-%s\",\"namespace\":\"n\",\"ownerReferences\":[{\"kind\":"
		 "\"ReplicaSet\",\"name\":\"rs\",\"uid\":\"rs\",\"controller\":true}]},\"status\":{\"containerStatuses\":"
		 "[{\"name\":\"c\",\"image\":\"i:1\",\"containerID\":\"x://%s\"}]}}",
		 uid, uid, id);
	order(s, text);
}

static void open_scene(struct scene *s)
{
	struct buf error = BUF_EMPTY;

	*s = (struct scene){ 0 };
	write_file("token", "first");
	start_server(s);
	order(s, "object /api/v1/namespaces/kube-system {\"metadata\":{\"uid\":\"cluster\"}}");
	order(s, "object /apis/apps/v1/namespaces/n/replicasets/rs "
		 "{\"metadata\":{\"uid\":\"rs\",\"ownerReferences\":[{\"kind\":"
		 "\"Deployment\",\"name\":\"web\",\"uid\":\"d\",\"controller\":true}]}}");
	assert_int_equal(rules_new(&(struct rules_config){ 0 }, &s->rules, &error), 0);
	s->metrics = metrics_new();
	assert_int_equal(known_new(s->rules, s->metrics, &s->known), 0);
	buf_fini(&error);
}

static void follow_slowly(struct scene *s, const char *ca, unsigned backoff_ms)
{
	struct kube_config config = { .node = "node-1", .backoff_ms = backoff_ms };
	struct buf error = BUF_EMPTY;
	char port[16];

	snprintf(port, sizeof(port), "%d", s->port);
	setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1);
	setenv("KUBERNETES_SERVICE_PORT", port, 1);
	setenv("https_proxy", "http://127.0.0.1:9", 1); /* must not count */
	assert_int_equal(kube_access_of_pod(dir, &config.access, &error), 0);
	if (ca) {
		free(config.access.ca_file);
		assert_true(asprintf(&config.access.ca_file, "%s/%s", dir, ca) > 0);
	}
	assert_int_equal(kube_new(&config, s->known, s->rules, s->metrics, &s->kube, &error), 0);
	buf_fini(&error);
}

static void follow(struct scene *s, const char *ca)
{
	follow_slowly(s, ca, 20);
}

static void close_scene(struct scene *s)
{
	kube_free(s->kube);
	known_free(s->known);
	rules_free(s->rules);
	metrics_free(s->metrics);
	buf_fini(&s->asked);
	fclose(s->orders);
	kill(s->pid, SIGTERM);
	waitpid(s->pid, NULL, 0);
	fclose(s->said);
}

/* --- waiting for conditions --- */

static bool says(struct scene *s, const char *id, const char *text)
{
	return strstr(describing(s->known, (struct known_query){ .container_id = id }), text) != NULL;
}

#define UNTIL_IN(seconds, condition)                                                                                  \
	do {                                                                                                          \
		uint64_t deadline_ns_ = clock_mono_ns() + (seconds)*NSEC_PER_SEC;                                     \
		while (!(condition)) {                                                                                \
			if (clock_mono_ns() > deadline_ns_)                                                           \
				fail_msg("%s:%d: still not after %d s: %s", __FILE__, __LINE__, seconds, #condition); \
			usleep(5000);                                                                                 \
		}                                                                                                     \
	} while (0)
#define UNTIL(condition) UNTIL_IN(20, condition)

static uint64_t errors(struct scene *s, const char *reason)
{
	char labels[64];

	snprintf(labels, sizeof(labels), "reason=\"%s\"", reason);
	return describing_count(s->metrics, "hearth_kube_errors_total", labels);
}

static uint64_t watch_ends(struct scene *s)
{
	return describing_count(s->metrics, "hearth_kube_watch_ends_total", "");
}

/* --- the tests --- */

/* List, events, owners; a bookmark, from where the next watch begins; what it asks for. */
static void test_list_and_watch(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	order_pod(&s, "a", "id-a");
	order_pod(&s, "b", "id-b");
	order_pod(&s, "c", "id-c");
	order(&s, "page 2");
	follow(&s, NULL);
	assert_int_equal(kube_wait(s.kube, clock_mono_ns() + LONG_NS, NULL), 0);
	assert_true(says(&s, "id-a", "k8s.deployment.name=web\n") && says(&s, "id-c", "k8s.cluster.uid=cluster\n"));
	assert_int_equal(known_pod_count(s.known), 3);
	order_pod(&s, "d", "id-d");
	UNTIL(says(&s, "id-d", "k8s.deployment.name=web\n"));
	order_pod(&s, "d", "id-d2"); /* its container was started again */
	UNTIL(says(&s, "id-d2", "k8s.pod.name=pod-d\n"));
	order(&s, "delete a");
	UNTIL(known_pod_count(s.known) == 3);
	assert_true(says(&s, "id-a", "k8s.pod.name=pod-a\n"));
	order(&s, "bookmark 7777");
	order(&s, "raw"); /* an empty line is nothing */
	order_pod(&s, "e", "id-e");
	UNTIL(says(&s, "id-e", "pod-e"));
	assert_int_equal(errors(&s, "object"), 0);
	order(&s, "page 1000");
	assert_non_null(strstr(buf_text(&s.asked),
			       "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1&limit=500&resourceVersion=0 200\n"));
	assert_non_null(strstr(buf_text(&s.asked), "&limit=500&continue="));
	assert_non_null(strstr(buf_text(&s.asked), "&watch=1&allowWatchBookmarks=true&resourceVersion="));
	close_scene(&s);
}

/* A bookmark is where the next watch begins. */
static void test_bookmark(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	follow(&s, NULL);
	assert_int_equal(kube_wait(s.kube, clock_mono_ns() + LONG_NS, NULL), 0);
	UNTIL((order(&s, "page 1000"), strstr(buf_text(&s.asked), "watch=1&")));
	order(&s, "bookmark 7777");
	order(&s, "end");
	UNTIL((order(&s, "page 1000"), strstr(buf_text(&s.asked), "resourceVersion=7777&")));
	assert_int_equal(describing_count(s.metrics, "hearth_kube_requests_total", "verb=\"list\""), 1);
	close_scene(&s);
}

/* The server's history has gone: an event says so, then the answer to a watch; each time a list brings what was missed. */
static void test_expired(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	order_pod(&s, "a", "id-a");
	follow(&s, NULL);
	assert_int_equal(kube_wait(s.kube, clock_mono_ns() + LONG_NS, NULL), 0);
	UNTIL((order(&s, "page 1000"), strstr(buf_text(&s.asked), "watch=1&")));
	order(&s, "expire");
	UNTIL((order(&s, "page 1000"), strstr(buf_text(&s.asked), "&limit=500 200\n"))); /* not out of the cache */
	assert_null(strstr(buf_text(&s.asked), " 410\n"));				 /* nobody asked in vain */
	assert_int_equal(errors(&s, "410"), 1);
	order_pod(&s, "b", "id-b");
	UNTIL(says(&s, "id-b", "pod-b"));
	buf_reset(&s.asked);
	order(&s, "forget");
	order(&s, "end");
	UNTIL((order(&s, "page 1000"), strstr(buf_text(&s.asked), " 410\n")));
	UNTIL((order(&s, "page 1000"), strstr(strstr(buf_text(&s.asked), " 410\n"), "&limit=500 200\n"))); /* nor then */
	order_pod(&s, "c", "id-c");
	UNTIL(says(&s, "id-c", "pod-c"));
	close_scene(&s);
}

static uint64_t lists(struct scene *s)
{
	return describing_count(s->metrics, "hearth_kube_requests_total", "verb=\"list\"");
}

/* The history going is no failure: there is a list at once, each time that it goes, where a failure would cost 15 s. */
static void test_expired_at_once(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	follow_slowly(&s, NULL, 60000);
	UNTIL(lists(&s) == 1 && kube_wait(s.kube, 0, NULL) == 0);
	for (uint64_t i = 1; i <= 3; i++) {
		char pod[8], id[8];

		UNTIL_IN(12, (order(&s, "page 1000"), strstr(buf_text(&s.asked), "watch=1&")));
		snprintf(pod, sizeof(pod), "p%d", (int)i);
		snprintf(id, sizeof(id), "id-%d", (int)i);
		order_pod(&s, pod, id); /* a watch that brings something is open, and no failure */
		UNTIL_IN(12, describing(s.known, (struct known_query){ .container_id = id })[0]);
		buf_reset(&s.asked);
		order(&s, "expire");
		UNTIL_IN(12, lists(&s) == 1 + i);
	}
	assert_int_equal(errors(&s, "410"), 3);
	close_scene(&s);
}

static uint64_t is_synced(struct scene *s)
{
	return metric_get(metrics_gauge(s->metrics, "hearth_kube_synced", NULL, ""));
}

/* A watch was refused: pods are not followed, until the next watch brings something. */
static void test_back(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	follow(&s, NULL);
	UNTIL((order(&s, "page 1000"), strstr(buf_text(&s.asked), "watch=1&")) && is_synced(&s));
	order(&s, "busy 1");
	order(&s, "end");
	UNTIL((order(&s, "page 1000"), strstr(buf_text(&s.asked), " 429\n")) && !is_synced(&s));
	UNTIL((order_pod(&s, "a", "id-a"), says(&s, "id-a", "pod-a")));
	UNTIL((order_pod(&s, "a", "id-a"), is_synced(&s)));
	assert_int_equal(lists(&s), 1);
	close_scene(&s);
}

/* A token that was replaced in the file counts; until then the server says 401 again and again. */
static void test_token_rotation(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	follow(&s, NULL);
	assert_int_equal(kube_wait(s.kube, clock_mono_ns() + LONG_NS, NULL), 0);
	order(&s, "token second");
	order(&s, "end");
	UNTIL(errors(&s, "401") >= 1);
	order_pod(&s, "a", "id-a");
	assert_false(says(&s, "id-a", "pod-a"));
	write_file("token", "second\n");
	UNTIL(says(&s, "id-a", "pod-a"));
	close_scene(&s);
}

/* Owners must not be read: it is lived with, and pods are followed all the same. Pods must not be read: kube_wait() says it.
 */
static void test_forbidden(void **state)
{
	AUTO(buf_fini) struct buf why = BUF_EMPTY;
	struct scene s;

	(void)state;
	open_scene(&s);
	order(&s, "forbid replicasets");
	order_pod(&s, "a", "id-a");
	order_pod(&s, "b", "id-b");
	follow(&s, NULL);
	assert_int_equal(kube_wait(s.kube, clock_mono_ns() + LONG_NS, NULL), 0);
	assert_true(says(&s, "id-a", "service.name=rs\n"));
	assert_int_equal(errors(&s, "403"), 1); /* once, for both */
	order(&s, "forbid /pods");
	close_scene(&s);

	open_scene(&s);
	order(&s, "forbid /pods");
	follow(&s, NULL);
	UNTIL(errors(&s, "403") == 1);
	assert_int_equal(kube_wait(s.kube, clock_mono_ns() + NSEC_PER_SEC / 5, &why), -ETIMEDOUT);
	assert_non_null(strstr(buf_text(&why), "status 403: /pods is forbidden: User"));
	close_scene(&s);
}

/* Streams that break off, answers that are none, objects that are too long or no pods: what is sound counts. */
static void test_hostile(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	order(&s, "strange <html>not an API</html>");
	follow(&s, NULL);
	UNTIL(errors(&s, "answer") >= 1);
	order(&s, "strange {\"metadata\":{},\"items\":[]}"); /* from where to watch? */
	UNTIL(errors(&s, "answer") >= 2);
	order(&s, "strange -");
	order(&s, "busy 1");
	assert_int_equal(kube_wait(s.kube, clock_mono_ns() + LONG_NS, NULL), 0);
	assert_int_equal(errors(&s, "busy"), 1);
	UNTIL((order_pod(&s, "a", "id-a"), says(&s, "id-a", "pod-a")));
	order(&s, "raw {\"type\":\"ADDED\",\"object\":{\"metadata\":{\"uid\":7}}}");
	order(&s, "raw {\"type\":\"LATER\",\"object\":{}} {}");
	order(&s, "huge 5000000");
	order_pod(&s, "b", "id-b");
	UNTIL(says(&s, "id-b", "pod-b"));
	assert_int_equal(errors(&s, "object"), 2);
	assert_int_equal(errors(&s, "too large"), 1);
	assert_int_equal(watch_ends(&s), 0);
	order(&s, "cut");
	UNTIL(watch_ends(&s) >= 1);
	UNTIL((order_pod(&s, "c", "id-c"), says(&s, "id-c", "pod-c")));
	order(&s, "raw no JSON at all");
	UNTIL(errors(&s, "answer") >= 3);
	UNTIL((order_pod(&s, "d", "id-d"), says(&s, "id-d", "pod-d")));
	close_scene(&s);
}

/* An object without an end takes no memory, and then the connection goes. */
static void test_endless(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	follow(&s, NULL);
	assert_int_equal(kube_wait(s.kube, clock_mono_ns() + LONG_NS, NULL), 0);
	UNTIL((order_pod(&s, "a", "id-a"), says(&s, "id-a", "pod-a")));
	order(&s, "endless 70000000");
	UNTIL(errors(&s, "too large") >= 1);
	UNTIL((order_pod(&s, "b", "id-b"), says(&s, "id-b", "pod-b")));
	close_scene(&s);
}

static void test_untrusted(void **state)
{
	AUTO(buf_fini) struct buf why = BUF_EMPTY;
	struct scene s;

	(void)state;
	open_scene(&s);
	follow(&s, "other.crt");
	UNTIL(errors(&s, "certificate") >= 1);
	assert_int_equal(kube_wait(s.kube, clock_mono_ns(), &why), -ETIMEDOUT);
	assert_non_null(strstr(buf_text(&why), "check whose certificates are trusted"));
	close_scene(&s);
}

/* The kubelet's list has no version, and there is no watch. */
static void test_kubelet(void **state)
{
	struct kube_config config = { .node = "node-1", .backoff_ms = 20 };
	struct buf error = BUF_EMPTY;
	char url[64], ca[64];
	struct scene s;

	(void)state;
	open_scene(&s);
	snprintf(url, sizeof(url), "https://127.0.0.1:%d/", s.port);
	snprintf(ca, sizeof(ca), "%s/ca.crt", dir);
	order(&s,
	      "object /pods "
	      "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[{\"metadata\":{\"uid\":\"a\",\"name\":\"pod-a\","
	      "\"namespace\":\"n\"},\"status\":{\"containerStatuses\":[{\"name\":\"c\",\"containerID\":\"x://id-a\"}]}}]}");
	assert_int_equal(kube_access_of_kubelet("ftp://x", NULL, NULL, &config.access, &error), -EINVAL);
	buf_reset(&error);
	assert_int_equal(kube_access_of_kubelet(url, "/nothing/here", dir, &config.access, &error), 0);
	assert_int_equal(kube_new(&config, s.known, s.rules, s.metrics, &s.kube, &error), -ENOENT);
	assert_non_null(strstr(buf_text(&error), "/nothing/here"));
	buf_reset(&error);
	assert_int_equal(kube_access_of_kubelet(url, ca, dir, &config.access, &error), 0);
	assert_int_equal(kube_new(&config, s.known, s.rules, s.metrics, &s.kube, &error), 0);
	assert_int_equal(kube_wait(s.kube, clock_mono_ns() + LONG_NS, NULL), 0);
	assert_true(says(&s, "id-a", "k8s.pod.name=pod-a\n"));
	buf_fini(&error);
	close_scene(&s);
}

static void test_no_pod(void **state)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct kube_access access;

	(void)state;
	unsetenv("KUBERNETES_SERVICE_HOST");
	assert_int_equal(kube_access_of_pod(dir, &access, &error), -ENOENT);
	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
	assert_int_equal(kube_access_of_pod(dir, &access, &error), 0);
	assert_string_equal(access.url, "https://[fd00::1]:6443");
	kube_access_fini(&access);
	assert_int_equal(kube_access_of_pod("/nowhere", &access, &error), -ENOENT);
	assert_non_null(strstr(buf_text(&error), "/nowhere has no token"));
}

#define UNLESS_BARE(test)                              \
	static void test##_if_ready(void **state)      \
	{                                              \
		if (!is_ready) {                       \
			print_message("no openssl\n"); \
			skip();                        \
		}                                      \
		test(state);                           \
	}
UNLESS_BARE(test_list_and_watch)
UNLESS_BARE(test_bookmark)
UNLESS_BARE(test_expired)
UNLESS_BARE(test_expired_at_once)
UNLESS_BARE(test_back)
UNLESS_BARE(test_token_rotation)
UNLESS_BARE(test_forbidden)
UNLESS_BARE(test_hostile)
UNLESS_BARE(test_endless)
UNLESS_BARE(test_untrusted)
UNLESS_BARE(test_kubelet)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list_and_watch_if_ready), cmocka_unit_test(test_bookmark_if_ready),
		cmocka_unit_test(test_expired_if_ready),	cmocka_unit_test(test_expired_at_once_if_ready),
		cmocka_unit_test(test_back_if_ready),		cmocka_unit_test(test_token_rotation_if_ready),
		cmocka_unit_test(test_forbidden_if_ready),	cmocka_unit_test(test_hostile_if_ready),
		cmocka_unit_test(test_endless_if_ready),	cmocka_unit_test(test_untrusted_if_ready),
		cmocka_unit_test(test_kubelet_if_ready),	cmocka_unit_test(test_no_pod),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, setup, teardown);
}
