/* SPDX-License-Identifier: Apache-2.0 */
/* A Collector's file: what it means in options, what is said of it, and what is refused, by line and with the nearest name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/tree.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/config_file.h"
#include "cmd/options/overlay.h"
#include "cmd/pipeline/pipelines.h"
#include "quickstart.h"

static int read_file(const char *text, struct config_file **file, struct buf *error)
{
	cmd_list(all_commands);
	*file = NULL;
	return config_file_parse("c", text, strlen(text), file, error);
}

static struct config_file *take(const char *text)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct config_file *file;

	if (read_file(text, &file, &error))
		fail_msg("%s", buf_text(&error));
	return file;
}

static void add_note(void *arg, const char *text)
{
	buf_printf(arg, "%s\n", text);
}

static void shows(const struct pipelines *p, const char *expected)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	pipelines_show(p, &out);
	assert_string_equal(buf_text(&out), expected);
}

static void notes(const struct pipelines *p, const char *expected)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	pipelines_notes(p, add_note, &out);
	assert_string_equal(buf_text(&out), expected);
}

static void test_quickstart(void **state)
{
	struct config_file *file = take(quickstart);
	const struct pipelines *p = config_file_pipelines(file);

	(void)state;
	shows(p, "profiles: profiling, customprofilesreceiver -> customprofilesexporter -> customprofilesexporter\n"
		 "\n"
		 "# in options, of the process\n"
		 "  freq: 20\n"
		 "  runtimes:\n"
		 "    - perl\n    - php\n    - python\n    - hotspot\n    - ruby\n    - v8\n    - dotnet\n    - go\n"
		 "    - lua\n    - luajit\n    - perf-map\n    - gdb-jit\n    - pcre\n"
		 "# customprofilesexporter: edits of attributes\n"
		 "# customprofilesexporter\n"
		 "  sink: print\n"
		 "  print-frame-type:\n"
		 "    - native\n    - kernel\n    - go\n    - jvm\n    - php\n    - cpython\n"
		 "  print-form: typed\n"
		 "  print-source: yes\n"
		 "  print-only-containers: yes\n");
	notes(p, "c:8: 'customprofilesexporter' is an exporter; taken for customprofilesprocessor\n"
		 "c:11: 'customprofilesexporter' without 'export_sample_types' prints resources and no profiles, as the "
		 "distribution's "
		 "does; give [samples, events, off_cpu]\n");
	assert_true(pipelines_have_source(p, SOURCE_AGENT));
	assert_true(pipelines_have_source(p, SOURCE_MADE_UP));
	assert_false(pipelines_have_source(p, SOURCE_OTLP));
	assert_int_equal(pipelines_get(p, 0)->receivers[1]->interval_ns, 200 * NSEC_PER_MSEC);
	config_file_free(file);
}

static void test_kubernetes(void **state)
{
	struct config_file *file;
	const struct pipelines *p;

	(void)state;
	setenv("TEST_NODE_NAME", "node-7", 1);
	file = take(kubernetes);
	p = config_file_pipelines(file);
	shows(p, "profiles: profiling -> k8sattributes -> otlp\n"
		 "\n"
		 "# in options, of the process\n"
		 "  freq: 20\n"
		 "  runtimes:\n"
		 "    - perl\n    - php\n    - lua\n    - luajit\n    - perf-map\n    - gdb-jit\n    - pcre\n"
		 "  pprof-address: \"0.0.0.0:1777\"\n"
		 "# k8sattributes: pods\n"
		 "  kube-attributes:\n"
		 "    - k8s.cluster.uid\n    - k8s.pod.name\n"
		 "  wait-for-metadata: 10s\n"
		 "  kube-node: node-7\n"
		 "  kube-label:\n"
		 "    - team=example.com/team\n"
		 "    - \"namespace:/app.*/\"\n"
		 "# otlp\n"
		 "  sink: otlp=grpc://pyroscope:4040\n"
		 "  collector-header: \"X-Scope-OrgID: a\"\n");
	notes(p, "");
	assert_true(pipelines_have_stage(p, STAGE_KUBERNETES));
	config_file_free(file);
}

/* The settings of the process count where no flag says otherwise; those of an exporter for it alone. */
static void test_settings(void **state)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct config_file *file = take(kubernetes);
	const struct component *otlp = pipelines_get(config_file_pipelines(file), 0)->exporters[0];
	char *header = strdup("A: b");
	struct config config = { .cmd = &cmd_run, .collector_headers = { .items = &header, .count = 1 } }, own;

	(void)state;
	assert_int_equal(config_file_check_keys(file, &error), 0);
	assert_int_equal(overlay_init(otlp, &config, &own, &error), 0);
	assert_int_equal(own.collector_headers.count, 1);
	assert_string_equal(own.collector_headers.items[0], "X-Scope-OrgID: a");
	assert_string_equal(config.collector_headers.items[0], "A: b");
	overlay_fini(otlp, &own);
	free(header);
	config_file_free(file);
}

#define AROUND(receivers, processors, exporters, pipeline)                                 \
	"receivers: {" receivers "}\nprocessors: {" processors "}\nexporters: {" exporters \
	"}\nservice:\n  pipelines: {" pipeline "}\n"
#define ONE(name, keys)                       \
	AROUND("synthetic: ", name ": " keys, \
	       "nop: ", "profiles: { receivers: [synthetic], processors: [" name "], exporters: [nop] }")
#define OUT(exporter, name) \
	AROUND("synthetic: ", "", exporter, "profiles: { receivers: [synthetic], exporters: [" name "] }")

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "receivers: {}\n", "c:1: there is no 'service' with 'pipelines'" },
		{ "service: {}\n",
		  "c:1: there is no pipeline of profiles: service.pipelines.profiles has 'receivers' and 'exporters'" },
		{ "service: {}\nprocesors: {}\n",
		  "c:2: 'a file with pipelines' has no key 'procesors'; did you mean 'processors'?" },
		{ AROUND("profilin: ", "", "", ""),
		  "c:1: 'profilin' is none of hearth's receivers; did you mean 'profiling'?" },
		{ AROUND("prometheus: ", "", "", ""),
		  "c:1: 'prometheus' is none of hearth's receivers; there are profiling, profilingextension, otlp, "
		  "customprofilesreceiver, synthetic, hostmetrics" },
		{ AROUND("profiling: { SamplesPerSeconds: 2 }", "",
			 "nop: ", "profiles: { receivers: [profiling], exporters: [nop] }"),
		  "c:1: 'profiling' has no key 'SamplesPerSeconds'; did you mean 'samples_per_second'?" },
		{ AROUND("profiling: ", "", "nop: ", "profiles: { receivers: [profiling], exporters: [nopp] }"),
		  "c:5: 'nopp' is not among the exporters above; did you mean 'nop'?" },
		{ AROUND("profiling: ", "", "nop: ", "profiles: { receivers: [profiling] }"),
		  "c:5: the pipeline 'profiles' has no exporters" },
		{ AROUND("profiling: , profiling/2: ", "",
			 "nop: ", "profiles: { receivers: [profiling, profiling/2], exporters: [nop] }"),
		  "c:1: 'profiling' and 'profiling/2': there is one such receiver in a process" },
		{ AROUND("profiling: , otlp: ", "", "file: { path: a.json }",
			 "profiles: { receivers: [profiling, otlp], exporters: [file] }"),
		  "c:3: 'file' beside receivers that sample and that hear a network: what hears writes no files; let a "
		  "'hearth serve' of its own receive" },
		{ AROUND("profiling: ", "", "httprest: , httprest/2: ",
			 "profiles: { receivers: [profiling], exporters: [httprest, httprest/2] }"),
		  "c:3: 'httprest' and 'httprest/2': there is one such exporter in a process" },
		{ OUT("httprest: { address: here }", "httprest"), "c:3: an address is HOST:PORT" },
		{ OUT("otlp: { tls: { insecure: true } }", "otlp"), "c:3: 'otlp' has an 'endpoint' such as collector:4317" },
		{ OUT("otlp: { endpoint: 'a:1', tls: { insecure_skip_verify: true } }", "otlp"),
		  "c:3: a collector's certificate is always checked; 'ca_file' says whom to trust" },
		{ OUT("otlphttp: { endpoint: 'a:1' }", "otlphttp"),
		  "c:3: 'otlphttp' has an 'endpoint' such as http://collector:4318" },
		{ OUT("otlp: { endpoint: 'a:1', compression: zst }", "otlp"),
		  "c:3: 'compression' cannot be 'zst'; did you mean 'zstd'" },
		{ OUT("file: { path: x.bin }", "file"),
		  "c:3: hearth tells formats by names: 'path' ends in .json or .jsonl for 'format: json'" },
		{ OUT("debug: { verbosity: detaild }", "debug"),
		  "c:3: 'verbosity' cannot be 'detaild'; did you mean 'detailed'" },
		{ ONE("resource", "{ attributes: [{ key: a, action: insrt, value: b }] }"),
		  "c:2: there is no action 'insrt'; did you mean 'insert'?" },
		{ ONE("resource", "{ attributes: [{ key: a, action: hash }] }"),
		  "c:2: the action 'hash' is not done by hearth; there are insert, update, upsert, delete and convert" },
		{ ONE("filter", "{ profiles: { profile: ['true'] } }"),
		  "c:2: 'profiles.profile' is for conditions in OTTL, which hearth does not read; give 'profiles.include' "
		  "or "
		  "'profiles.exclude' with a 'match_type' and 'resource_attributes'" },
		{ ONE("filter", "{ profiles: { include: { match_type: regexp, resources: [{ key: a, value: '(' }] } } }"),
		  "c:2: '(': missing closing parenthesis" },
		{ ONE("memory_limiter", "{ limit_mib: 100 }"), "c:2: 'memory_limiter' has a 'check_interval' such as 1s" },
		{ ONE("resourcedetection", "{ detectors: [ec3] }"),
		  "c:2: hearth has no detector 'ec3'; did you mean 'ec2'?" },
		{ ONE("resourcedetection", "{ detectors: [kubeadm], kubeadm: { auth_type: kubeConfig } }"),
		  "c:2: 'auth_type: kubeConfig' takes a 'kube_config_path'" },
		{ ONE("k8sattributes", "{ passthrough: true }"), "c:2: 'passthrough' sends a pod's address on to a gateway "
								 "that asks Kubernetes: not here, where each node does" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY;
		struct config_file *file;

		assert_int_equal(read_file(cases[i].text, &file, &error), -EBADMSG);
		if (strncmp(buf_text(&error), cases[i].error, strlen(cases[i].error)) != 0)
			fail_msg("%s\nsays: %s\nnot:  %s", cases[i].text, buf_text(&error), cases[i].error);
		assert_null(file);
	}
}

/* Each way of compression that there is, with both exporters' names; "" is the Collector's other word for none. */
static void test_compression(void **state)
{
	static const struct {
		const char *text, *shows, *notes;
	} cases[] = {
		{ OUT("otlp: { endpoint: 'a:1', compression: zstd }", "otlp"), "  collector-compression: zstd\n", "" },
		{ OUT("otlphttp: { endpoint: 'http://a:1', compression: zstd }", "otlphttp"),
		  "  collector-compression: zstd\n", "" },
		{ OUT("otlphttp: { endpoint: 'http://a:1', compression: zstd, compression_params: { level: 11 } }",
		      "otlphttp"),
		  "  collector-compression: zstd\n",
		  "c:3: 'compression_params' of 'otlphttp' has no effect: each way of compression has one level, "
		  "docs/sending.md tells which\n" },
		{ OUT("otlp: { endpoint: 'a:1', compression: gzip }", "otlp"), "  collector-compression: gzip\n", "" },
		{ OUT("otlp: { endpoint: 'a:1', compression: none }", "otlp"), "  collector-compression: none\n", "" },
		{ OUT("otlp: { endpoint: 'a:1', compression: snappy }", "otlp"), "",
		  "c:3: 'compression: snappy' is not here: requests are packed by gzip; 'zstd' and 'none' are, too\n" },
		{ OUT("otlphttp: { endpoint: 'http://a:1', compression: x-snappy-framed }", "otlphttp"), "",
		  "c:3: 'compression: x-snappy-framed' is not here: requests are packed by gzip; 'zstd' and 'none' are, "
		  "too\n" },
		{ OUT("otlphttp: { endpoint: 'http://a:1', compression: lz4 }", "otlphttp"), "",
		  "c:3: 'compression: lz4' is not here: requests are packed by gzip; 'zstd' and 'none' are, too\n" },
		{ OUT("otlp: { endpoint: 'a:1', compression: '' }", "otlp"), "  collector-compression: none\n", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY;
		struct config_file *file = take(cases[i].text);

		pipelines_show(config_file_pipelines(file), &out);
		if (!strstr(buf_text(&out), cases[i].shows))
			fail_msg("%s\nshows: %s", cases[i].text, buf_text(&out));
		notes(config_file_pipelines(file), cases[i].notes);
		config_file_free(file);
	}
}

static void take_place(void *arg, char **text)
{
	free(*text);
	*text = strdup(arg);
}

static void count(void *arg, char **text)
{
	*(size_t *)arg += *text != NULL;
}

/* What listens, what asks, what writes, and names that give way to those that were handed over. */
static void test_networks(void **state)
{
	struct config_file *file = take(
		"receivers: { profiling: , otlp: { protocols: { http: { endpoint: '127.0.0.1:14318' } } } }\n"
		"processors: { resourcedetection: { detectors: [env, system] } }\n"
		"exporters:\n"
		"  httprest:\n"
		"  store: { folder: /a }\n"
		"  otlp: { endpoint: 'https://a:1', tls: { ca_file: /ca } }\n"
		"  otlp/unused: { endpoint: 'https://a:1', tls: { ca_file: /other } }\n"
		"service:\n"
		"  pipelines:\n"
		"    profiles: { receivers: [profiling, otlp], processors: [resourcedetection], exporters: [httprest, "
		"store, otlp] }\n");
	const struct pipelines *p = config_file_pipelines(file);
	AUTO(buf_fini) struct buf before = BUF_EMPTY;
	size_t texts = 0, sinks = 0;

	(void)state;
	assert_true(pipelines_have_source(p, SOURCE_AGENT));
	assert_true(pipelines_have_source(p, SOURCE_OTLP));
	assert_true(pipelines_have_server(p));
	assert_false(pipelines_write_files(p));
	assert_false(pipelines_ask_network(p));
	pipelines_show(p, &before);
	pipelines_each_text(p, "collector-ca", count, &texts);
	assert_int_equal(texts, 1);
	pipelines_each_text(p, "collector-ca", take_place, (char[]){ "/proc/self/fd/100" });
	pipelines_each_sink(p, count, &sinks);
	assert_int_equal(sinks, 2);
	shows(p, buf_text(&before)); /* as the file has it */
	assert_non_null(strstr(buf_text(&before), "  grpc-address: off\n"));
	assert_non_null(strstr(buf_text(&before), "  rest-address: \"0.0.0.0:7799\"\n"));
	config_file_free(file);
}

/* What is passed over is said. */
static void test_notes(void **state)
{
	struct config_file *file = take(
		"receivers:\n"
		"  profiling: { Tracers: [python, cobol], load_probe: true, off_cpu_threshold: 0.5 }\n"
		"  synthetic:\n"
		"processors:\n"
		"  batch: { timeout: 1s }\n"
		"  memory_limiter: { check_interval: 1s, limit_mib: 400 }\n"
		"exporters:\n"
		"  debug:\n"
		"  nop:\n"
		"service:\n"
		"  pipelines:\n"
		"    traces: { receivers: [], exporters: [] }\n"
		"    profiles: { receivers: [profiling], processors: [memory_limiter, batch], exporters: [debug] }\n"
		"  telemetry: { metrics: { address: ':8888' }, logs: { level: debug, encoding: json } }\n");
	const struct pipelines *p = config_file_pipelines(file);

	(void)state;
	notes(p, "c:12: the pipeline 'traces' is left out: hearth's pipelines are of profiles\n"
		 "c:2: 'load_probe' of 'profiling' has no effect: probes are loaded where one is asked for ('event', "
		 "attach_kernel_symbols)\n"
		 "c:2: there is no runtime 'cobol' in hearth; its functions have the names of native code, or none\n"
		 "c:2: 'off_cpu_threshold' turns off-CPU profiles on; which waits are told goes by their length here, which "
		 "keeps the "
		 "sum ('off_cpu_from')\n"
		 "c:3: 'synthetic' of receivers is not used\n"
		 "c:5: 'batch' has no effect: what is sampled comes as a batch each report interval\n"
		 "c:5: 'timeout' of 'batch' has no effect: a report interval is a batch\n"
		 "c:9: 'nop' of exporters is not used\n");
	shows(p, "profiles: profiling -> memory_limiter -> batch -> debug\n"
		 "\n"
		 "# in options, of the process\n"
		 "  runtimes:\n    - python\n    - lua\n    - luajit\n    - perf-map\n    - gdb-jit\n    - pcre\n"
		 "  off-cpu: true\n"
		 "  verbose: true\n"
		 "  log-format: json\n"
		 "  metrics-address: \"0.0.0.0:8888\"\n"
		 "# memory_limiter: a limit of memory\n"
		 "# batch: nothing\n"
		 "# debug\n"
		 "  sink: count\n");
	config_file_free(file);
}

/* Health and counters are told at one address: another one for counters is no secret. */
static void test_two_addresses(void **state)
{
	static const struct {
		const char *address, *notes;
	} cases[] = {
		{ "127.0.0.1:13133", "" },
		{ "127.0.0.1:8888", "c:5: /metrics is at health_check's address; this one is not listened on\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf text = BUF_EMPTY;
		struct config_file *file;

		buf_printf(&text,
			   "receivers: { profiling: }\nexporters: { debug: }\n"
			   "extensions: { health_check: { endpoint: '127.0.0.1:13133', path: /healthz } }\n"
			   "service:\n  telemetry: { metrics: { address: '%s' } }\n  extensions: [health_check]\n"
			   "  pipelines: { profiles: { receivers: [profiling], exporters: [debug] } }\n",
			   cases[i].address);
		file = take(buf_text(&text));
		notes(config_file_pipelines(file), cases[i].notes);
		config_file_free(file);
	}
}

/* pprof: hearth's own profile, at the Collector's address where none is said; what it is not is said. */
static void test_pprof(void **state)
{
	static const struct {
		const char *extension, *address, *notes;
	} cases[] = {
		{ "", "\"127.0.0.1:1777\"", "" },
		{ "{ endpoint: ':1777' }", "\"0.0.0.0:1777\"", "" },
		{ "{ endpoint: 'localhost:99', save_to_file: a, block_profile_fraction: 1 }", "\"localhost:99\"",
		  "c:3: 'save_to_file' of 'pprof' has no effect: ask for the profile at /debug/pprof/profile\n"
		  "c:3: 'block_profile_fraction' of 'pprof' has no effect: hearth's own profile is of CPU time\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf text = BUF_EMPTY, shown = BUF_EMPTY;
		struct config_file *file;

		buf_printf(&text,
			   "receivers: { profiling: }\nexporters: { debug: }\nextensions: { pprof: %s }\n"
			   "service:\n  extensions: [pprof]\n"
			   "  pipelines: { profiles: { receivers: [profiling], exporters: [debug] } }\n",
			   cases[i].extension);
		buf_printf(&shown,
			   "profiles: profiling -> debug\n\n# in options, of the process\n  pprof-address: %s\n# debug\n"
			   "  sink: count\n",
			   cases[i].address);
		file = take(buf_text(&text));
		shows(config_file_pipelines(file), buf_text(&shown));
		notes(config_file_pipelines(file), cases[i].notes);
		config_file_free(file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quickstart),  cmocka_unit_test(test_kubernetes),	  cmocka_unit_test(test_settings),
		cmocka_unit_test(test_compression), cmocka_unit_test(test_refusals),	  cmocka_unit_test(test_networks),
		cmocka_unit_test(test_notes),	    cmocka_unit_test(test_two_addresses), cmocka_unit_test(test_pprof),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
