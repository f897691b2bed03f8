/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines of the host's metrics: what they mean, what has no effect in them, and what is refused, by line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/options/command.h"
#include "cmd/options/config_file.h"
#include "cmd/pipeline/pipelines.h"

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

static void test_meaning(void **state)
{
	struct config_file *file = take(
		"receivers:\n"
		"  hostmetrics:\n"
		"    collection_interval: 10s\n"
		"    root_path: /hostfs\n"
		"    scrapers:\n"
		"      cpu: { metrics: { system.cpu.utilization: { enabled: false }, system.cpu.time: { enabled: false } } "
		"}\n"
		"      disk: { include: { devices: [sda], match_type: strict }, exclude: { devices: ['^lo+p'], match_type: "
		"regexp } }\n"
		"      load: { cpu_average: true }\n"
		"      filesystem: { exclude_fs_types: { fs_types: [xfs], match_type: strict } }\n"
		"  hostmetrics/slow: { root_path: /hostfs, scrapers: { memory: } }\n"
		"  otlp:\n"
		"  synthetic:\n"
		"processors: { k8sattributes: , resource: { attributes: [{ key: a, value: b, action: upsert }] } }\n"
		"exporters: { debug: , nop: }\n"
		"service:\n"
		"  pipelines:\n"
		"    metrics: { receivers: [hostmetrics, otlp, hostmetrics/slow], processors: [k8sattributes, resource], "
		"exporters: [debug] }\n"
		"    metrics/other: { receivers: [otlp], exporters: [debug] }\n"
		"    profiles: { receivers: [synthetic], exporters: [debug, nop] }\n");
	const struct pipelines *p = config_file_pipelines(file);
	const struct pipeline *pl = pipelines_get(p, 0);
	AUTO(buf_fini) struct buf notes = BUF_EMPTY, shown = BUF_EMPTY;
	const struct host_config *host;

	(void)state;
	assert_int_equal(pipelines_count(p), 2);
	assert_true(pl->is_of_metrics);
	assert_int_equal(pl->receiver_count, 2);
	assert_false(pipelines_get(p, 1)->is_of_metrics);
	assert_true(pipelines_have_source(p, SOURCE_HOST) && !pipelines_have_source(p, SOURCE_OTLP));
	assert_string_equal(pipelines_host_root(p), "/hostfs");
	host = &pl->receivers[0]->host;
	assert_true(host->interval_ns == 10 * NSEC_PER_SEC && host->delay_ns == NSEC_PER_SEC);
	assert_true(host->has[HOST_CPU] && host->has[HOST_DISK] && host->has[HOST_LOAD] && host->has[HOST_FILESYSTEM]);
	assert_false(host->has[HOST_MEMORY] || host->has[HOST_NETWORK] || host->has[HOST_PAGING]);
	assert_true(host->is_off[HOST_CPU_TIME] && !host->is_off[HOST_MEMORY_USAGE] && host->is_per_cpu);
	assert_true(host_filter_passes(&host->filters[HOST_BY_DISK], "sda", 3));
	assert_false(host_filter_passes(&host->filters[HOST_BY_DISK], "sdb", 3));
	assert_false(host_filter_passes(&host->filters[HOST_BY_DISK], "loop1", 5));
	assert_false(host_filter_passes(&host->filters[HOST_BY_TYPE], "xfs", 3));
	assert_true(pl->receivers[1]->host.interval_ns == MINUTE_NS);
	pipelines_notes(p, add_note, &notes);
	assert_string_equal(
		buf_text(&notes),
		"c:17: 'otlp' is left out of 'metrics': metrics that come in go where a pipeline of profiles that "
		"names it goes\n"
		"c:17: 'k8sattributes' has no effect in 'metrics': the host's metrics are of no pod\n"
		"c:18: the pipeline 'metrics/other' is left out: hearth's pipelines are of profiles, and of metrics "
		"that 'hostmetrics' tells\n"
		"c:6: 'system.cpu.utilization' is not told anyway\n"
		"c:11: 'otlp' of receivers is not used\n");
	pipelines_show(p, &shown);
	assert_non_null(
		strstr(buf_text(&shown), "metrics: hostmetrics, hostmetrics/slow -> k8sattributes -> resource -> debug\n"));
	assert_non_null(strstr(buf_text(&shown), "# hostmetrics: cpu, disk, load, filesystem; each 10s, below /hostfs\n"
						 "# hostmetrics/slow: memory; each 1m, below /hostfs\n"));
	config_file_free(file);
}

#define FILE_OF(host, exporter, pipeline)                                             \
	"receivers: { hostmetrics: " host ", synthetic: }\nexporters: { " exporter    \
	" }\nprocessors: { attributes: { actions: [{ key: a, action: delete }] } }\n" \
	"service: { pipelines: { " pipeline " } }\n"
#define HOST(keys)     FILE_OF(keys, "nop: ", "metrics: { receivers: [hostmetrics], exporters: [nop] }")
#define SCRAPERS(text) HOST("{ scrapers: { " text " } }")
#define CPU	       "{ scrapers: { cpu: } }"

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ HOST(""), "c:1: 'hostmetrics' has a map of 'scrapers', such as { cpu: , memory: }" },
		{ HOST("{ scrapers: [cpu] }"), "c:1: 'hostmetrics' has a map of 'scrapers', such as { cpu: , memory: }" },
		{ HOST("{ collection_interval: 1ms, scrapers: { cpu: } }"),
		  "c:1: 'collection_interval' is a time from 100ms to 24h" },
		{ HOST("{ initial_delay: 25h, scrapers: { cpu: } }"), "c:1: 'initial_delay' is a time up to 24h" },
		{ HOST("{ root_path: hostfs, scrapers: { cpu: } }"),
		  "c:1: 'root_path' is the folder where the host's root is mounted" },
		{ HOST("{ interval: 1s }"), "c:1: 'hostmetrics' has no key 'interval'" },
		{ SCRAPERS("processes: "),
		  "c:1: hearth has no scraper 'processes'; there are cpu, memory, disk, network, load, filesystem, paging" },
		{ SCRAPERS("cpu: { include: }"), "c:1: the scraper 'cpu' has no key 'include'" },
		{ SCRAPERS("load: { cpu_average: 2 }"), "c:1: 'cpu_average' is true or false" },
		{ SCRAPERS("cpu: { metrics: { system.cpu.utilization: { enabled: true } } }"),
		  "c:1: 'system.cpu.utilization' is not among the metrics that hearth's 'cpu' tells: system.cpu.time" },
		{ SCRAPERS("cpu: { metrics: { system.memory.usage: { enabled: true } } }"),
		  "c:1: 'system.memory.usage' is not among" },
		{ SCRAPERS("cpu: { metrics: { system.cpu.time: { enable: false } } }"),
		  "c:1: 'system.cpu.time' has no key 'enable'; did you mean 'enabled'?" },
		{ SCRAPERS("disk: { include: { devices: [a] } }"),
		  "c:1: 'include' is a map with a 'match_type', which is strict or regexp" },
		{ SCRAPERS("network: { include: { devices: [a], match_type: strict } }"),
		  "c:1: 'include' has no key 'devices'" },
		{ SCRAPERS("network: { exclude: { interfaces: [], match_type: strict } }"),
		  "c:1: 'exclude' has a list of 'interfaces'" },
		{ SCRAPERS("network: { exclude: { interfaces: ['('], match_type: regexp } }"),
		  "c:1: '(': missing closing parenthesis" },
		{ FILE_OF(CPU, "nop: ", "profiles: { receivers: [hostmetrics], exporters: [nop] }"),
		  "c:4: 'hostmetrics' tells metrics, which are no profiles: give it a pipeline 'metrics'" },
		{ FILE_OF(CPU, "nop: ", "metrics: { receivers: [hostmetrics, synthetic], exporters: [nop] }"),
		  "c:4: 'synthetic' tells no metrics of the host" },
		{ FILE_OF(CPU, "file: { path: a.json }", "metrics: { receivers: [hostmetrics], exporters: [file] }"),
		  "c:4: 'file' takes no metrics; otlp, otlphttp, debug and nop do" },
		{ FILE_OF(CPU, "nop: ", "metrics: { receivers: [hostmetrics], processors: [attributes], exporters: [nop] }"),
		  "c:4: 'attributes' changes no metrics here; resource and resourcedetection do" },
		{ FILE_OF(CPU, "otlphttp: { endpoint: 'http://a:1', metrics_endpoint: 'http://b:1' }",
			  "metrics: { receivers: [hostmetrics], exporters: [otlphttp] }"),
		  "c:2: metrics go to 'endpoint' with /v1/metrics behind it; for another address give an exporter of its "
		  "own" },
		{ "receivers: { hostmetrics: { root_path: /a, scrapers: { cpu: } }, hostmetrics/b: { scrapers: { cpu: } } "
		  "}\n"
		  "exporters: { nop: }\n"
		  "service: { pipelines: { metrics: { receivers: [hostmetrics, hostmetrics/b], exporters: [nop] } } }\n",
		  "c:1: 'hostmetrics' and 'hostmetrics/b' have another 'root_path' each; there is one host" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY;
		struct config_file *file;

		if (read_file(cases[i].text, &file, &error) != -EBADMSG)
			fail_msg("%s is taken", cases[i].text);
		if (strncmp(buf_text(&error), cases[i].error, strlen(cases[i].error)) != 0)
			fail_msg("%s\nsays: %s\nnot:  %s", cases[i].text, buf_text(&error), cases[i].error);
		assert_null(file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meaning),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
