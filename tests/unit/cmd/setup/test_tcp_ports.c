/* SPDX-License-Identifier: Apache-2.0 */
/* The ports that addresses of every form name, and those of a whole command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/options/config_file.h"
#include "cmd/pipeline/pipelines.h"
#include "cmd/setup/tcp_ports.h"
#include "tests/unit/cmd/parsed.h"

enum { USUAL = 99 };

static void test_addresses(void **state)
{
	static const struct {
		const char *text;
		uint16_t port; /* 0: none */
		bool any;
	} cases[] = {
		{ "collector:1234", 1234, false },
		{ "collector", USUAL, false },
		{ "collector/path:7", USUAL, false },
		{ "http://a", 80, false },
		{ "HTTPS://a/b?c=1:2", 443, false },
		{ "http://a:8080/x", 8080, false },
		{ "https://user:pass@a:9443", 9443, false },
		{ "https://user:pass@a", 443, false },
		{ "grpc://a", 4317, false },
		{ "grpcs://a:1", 1, false },
		{ "socks5h://a", 1080, false },
		{ "http://[::1]:81", 81, false },
		{ "http://[fe80::1]", 80, false },
		{ "[::1]", USUAL, false },
		{ "a:", USUAL, false },
		{ "a:65535", 65535, false },
		{ "a:65536", 0, true },
		{ "a:0", 0, true },
		{ "a:12x", 0, true },
		{ "http://", 0, true },
		{ "", 0, true },
		{ "unix:/run/x:1", 0, false },
		{ "file:///var/debug", 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct tcp_ports ports = { .count = 0 };

		tcp_ports_add(&ports, cases[i].text, USUAL);
		if (ports.count != (cases[i].port != 0) || ports.any != cases[i].any)
			fail_msg("%s: %zu ports%s", cases[i].text, ports.count, ports.any ? ", any" : "");
		if (ports.count)
			assert_int_equal(ports.items[0], cases[i].port);
	}
}

/* Each port once, and any when there is no more room. */
static void test_room(void **state)
{
	struct tcp_ports ports = { .count = 0 };
	char text[16];

	(void)state;
	for (int twice = 0; twice < 2; twice++)
		for (int i = 1; i <= TCP_PORTS_MAX; i++) {
			snprintf(text, sizeof(text), "a:%d", i);
			tcp_ports_add(&ports, text, 0);
		}
	assert_int_equal(ports.count, TCP_PORTS_MAX);
	assert_false(ports.any);
	tcp_ports_add(&ports, "a:9999", 0);
	assert_true(ports.any);
	assert_int_equal(ports.count, TCP_PORTS_MAX);
}

static char kube_config[] = "/tmp/test_tcp_ports.XXXXXX";

/* The ports of @config in ascending order, "any" behind them. */
static void check_config(const struct config *config, const char *expected)
{
	struct tcp_ports ports = { .count = 0 };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	tcp_ports_add_config(&ports, config);
	tcp_ports_add_config(&ports, config); /* nothing new */
	for (uint32_t port = 0; port <= UINT16_MAX; port++)
		for (size_t i = 0; i < ports.count; i++)
			if (ports.items[i] == port)
				buf_printf(&text, "%u ", port);
	buf_puts(&text, ports.any ? "any" : "");
	assert_string_equal(buf_text(&text), expected);
}

/* Those of `hearth run WORDS...`. */
static void check(const char *const *words, const char *expected)
{
	struct config config = parse_words(&cmd_run, words);

	check_config(&config, expected);
	config_fini(&config);
}

#define CHECK(expected, ...) check((const char *const[]){ __VA_ARGS__, NULL }, expected)

static char *kube_config_given; /* by --kube-config; NULL: none */

/* Those of a file of pipelines with the @processor and the @exporter, each "NAME: VALUE". */
static void check_pipelines(const char *processor, const char *exporter, const char *expected)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY, error = BUF_EMPTY;
	struct config_file *file;
	struct config config;

	buf_printf(
		&text,
		"receivers: { profiling: }\nprocessors: { %s }\nexporters: { %s, nop: }\n"
		"service: { pipelines: { profiles: { receivers: [profiling], processors: [%.*s], exporters: [%.*s] } } }\n",
		processor, exporter, (int)strcspn(processor, ":"), processor, (int)strcspn(exporter, ":"), exporter);
	if (config_file_parse("c", buf_text(&text), text.len, &file, &error))
		fail_msg("%s", buf_text(&error));
	config = PARSED(&cmd_run, "--enrich", "none");
	config.pipelines = config_file_pipelines(file);
	assert_non_null(config.pipelines);
	config.kube_config = kube_config_given;
	check_config(&config, expected);
	config.kube_config = NULL;
	config_fini(&config);
	config_file_free(file);
}

static const char *const names[] = { "http_proxy",
				     "https_proxy",
				     "HTTPS_PROXY",
				     "all_proxy",
				     "ALL_PROXY",
				     "DEBUGINFOD_URLS",
				     "KUBERNETES_SERVICE_HOST",
				     "KUBERNETES_SERVICE_PORT",
				     "ECS_CONTAINER_METADATA_URI_V4" };

static int forget_environment(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unsetenv(names[i]);
	return 0;
}

static void test_options(void **state)
{
	(void)state;
	CHECK("53 ", NULL);
	CHECK("53 ", "--store", "/var/lib/hearth", "--sink", "file=http://a:1", "--collector", "unix:/run/otel.sock");
	CHECK("53 443 4318 ", "--collector", "http://a:4318", "--collector", "https://b");
	CHECK("53 80 443 4317 ", "--collector", "a");
	CHECK("53 7777 ", "--collector", "a:7777", "--sink", "otlp=b:7777");
	CHECK("53 8123 ", "--store", "clickhouse+http://u@a:8123/d");
	CHECK("53 8443 ", "--sink", "clickhouse=https://a:8443/d");
	CHECK("53 8443 ", "--sink", "clickhouse=clickhouse+https://a:8443/d");
	CHECK("53 3128 4318 ", "--collector", "http://a:4318", "--collector-proxy", "http://p:3128");
	CHECK("53 any", "--collector", "http://a:x");
}

static void test_environment(void **state)
{
	(void)state;
	assert_int_equal(setenv("DEBUGINFOD_URLS", "https://a.example/ http://b:8002  file:///srv", 1), 0);
	CHECK("53 80 443 8002 ", NULL);
	assert_int_equal(unsetenv("DEBUGINFOD_URLS"), 0);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(setenv(names[i], "p:3128", 1), 0);
		CHECK("53 1080 3128 ", NULL);
		assert_int_equal(setenv(names[i], "", 1), 0);
		CHECK("53 ", NULL);
	}
}

/* What exporters send to, and what processors ask. */
static void test_pipelines(void **state)
{
	static const char batch[] = "batch: ", detect[] = "resourcedetection: { detectors: [ecs] }";

	(void)state;
	check_pipelines(batch, "debug: ", "53 ");
	check_pipelines(batch, "otlphttp: { endpoint: 'http://c:5555' }", "53 5555 ");
	check_pipelines(batch, "otlphttp: { endpoint: 'http://c:5555', proxy_url: 'http://p:3128' }", "53 3128 5555 ");
	check_pipelines(batch, "otlphttp: { endpoint: 'https://c', proxy_url: 'p' }", "53 443 1080 ");
	check_pipelines(detect, "debug: ", "53 80 "); /* what a cloud tells its machines */
	assert_int_equal(setenv("ECS_CONTAINER_METADATA_URI_V4", "", 1), 0);
	check_pipelines(detect, "debug: ", "53 80 ");
	assert_int_equal(setenv("ECS_CONTAINER_METADATA_URI_V4", "http://169.254.170.2:81/v4", 1), 0);
	check_pipelines(detect, "debug: ", "53 80 81 ");
	check_pipelines(batch, "debug: ", "53 ");
}

static void test_kubernetes(void **state)
{
	AUTO(buf_fini) struct buf processor = BUF_EMPTY;
	static const char text[] =
		"clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443'}}]\n"
		"contexts: [{name: x, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
		"current-context: x\n";
	int fd = mkstemp(kube_config);

	(void)state;
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	CHECK("53 6443 ", "--enrich", "pods", "--kube-config", kube_config);
	CHECK("53 ", "--enrich", "containers", "--kube-config", kube_config);
	CHECK("53 10250 ", "--enrich", "pods", "--kubelet", "https://127.0.0.1:10250/");
	assert_int_equal(setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1), 0);
	CHECK("53 ", "--enrich", "pods", "--kube-account", "/nowhere"); /* it does not start */
	buf_printf(&processor, "k8sattributes: { auth_type: kubeConfig, kube_config_path: %s }", kube_config);
	check_pipelines(buf_text(&processor), "debug: ", "53 6443 ");
	buf_reset(&processor);
	buf_printf(&processor, "resourcedetection: { detectors: [kubeadm], kubeadm: { kube_config_path: %s } }",
		   kube_config);
	check_pipelines(buf_text(&processor), "debug: ", "53 80 6443 ");
	kube_config_given = kube_config; /* either stage asks who is given for all of the process; others do not */
	check_pipelines("k8sattributes: ", "debug: ", "53 6443 ");
	check_pipelines("resourcedetection: { detectors: [env] }", "debug: ", "53 80 6443 ");
	check_pipelines("batch: ", "debug: ", "53 ");
	kube_config_given = NULL;
	unlink(kube_config);
	CHECK("53 ", "--enrich", "pods", "--kube-config", kube_config);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_room),
		cmocka_unit_test_setup(test_options, forget_environment),
		cmocka_unit_test_setup(test_environment, forget_environment),
		cmocka_unit_test_setup(test_pipelines, forget_environment),
		cmocka_unit_test_setup(test_kubernetes, forget_environment),
	};

	cmd_list(all_commands);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
