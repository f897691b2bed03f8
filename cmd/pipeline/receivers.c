/* SPDX-License-Identifier: Apache-2.0 */
/* Receivers: the agent under the names of OpenTelemetry's profiler, OTLP, and those that make profiles up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/choice.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/pipeline/component.h"

/* --- the agent --- */

static const struct component_key profiling_keys[] = {
	{ "tracers", NULL, NULL },
	{ "samples_per_second", "freq", NULL },
	{ "reporter_interval", "report-interval", NULL },
	{ "report_interval", "report-interval", NULL },
	{ "reporter_jitter", "report-jitter", NULL },
	{ "report_jitter", "report-jitter", NULL },
	{ "verbose_mode", "verbose", NULL },
	{ "send_error_frames", "error-frames", NULL },
	{ "send_idle_frames", "idle", NULL },
	{ "bpf_verifier_log_level", "bpf-log-level", NULL },
	{ "map_scale_factor", "map-scale", NULL },
	{ "no_kernel_version_check", "no-version-check", NULL },
	{ "include_env_vars", "env-vars", NULL },
	{ "min_process_age", "min-process-age", NULL },
	{ "off_cpu_threshold", NULL, NULL },
	{ "probabilistic_threshold", NULL, NULL },
	{ "probabilistic_interval", NULL, NULL },
	{ "probe_links", NULL, NULL },
	{ "load_probe", NULL, "probes are loaded where one is asked for ('event', attach_kernel_symbols)" },
	{ "monitor_interval", NULL, "hearth's counters are told each second" },
	{ "clock_sync_interval", NULL, "the clocks are compared at each report" },
	/* hearth's own */
	{ "event", "event", NULL },
	{ "off_cpu", "off-cpu", NULL },
	{ "off_cpu_from", "off-cpu-from", NULL },
	{ "pid", "pid", NULL },
	{ "comm", "comm", NULL },
	{ "container", "container", NULL },
	{ "symbols", "symbols", NULL },
	{ NULL, NULL, NULL },
};

/* Runtimes that the receiver has no tracers for, so a list that names all of its own has nothing against them. */
static const char *const unsaid[] = { "lua", "luajit", "perf-map", "gdb-jit", "pcre" };

static bool is_word(const char *word, size_t len, const char *wanted)
{
	return strlen(wanted) == len && !memcmp(wanted, word, len);
}

static bool is_runtime(const char *word, size_t len)
{
	const struct runtime_word *words;
	size_t count;

	words = runtime_words(&count);
	for (size_t i = 0; i < count; i++)
		if (is_word(word, len, words[i].word))
			return true;
	return false;
}

/* One text with commas between the names, or a list of names. A language that hearth does not know stops nobody. *@by_name
 * is set where a runtime is named. */
static int take_tracers(struct reader *r, struct component *c, const struct tree *at, const char *text, bool *by_name)
{
	int err = 0;

	while (!err && *text) {
		size_t len = strcspn(text, ", ");
		bool is_name = is_runtime(text, len);
		AUTO_FREE char *word = strndup(text, len);

		if (!word)
			return -ENOMEM;
		*by_name |= is_name;
		if (is_name || is_word(text, len, "all") || is_word(text, len, "none"))
			err = component_add(&c->settings, at, "runtimes", word);
		else if (len)
			err = pipeline_note(
				r, at,
				"there is no runtime '%s' in hearth; its functions have the names of native code, or none",
				word);
		text += len;
		text += strspn(text, ", ");
	}
	return err;
}

static int take_off_cpu(struct reader *r, struct component *c)
{
	const struct tree *at = component_at(c, "off_cpu_threshold");
	char *end = NULL;
	double part = at && at->kind == TREE_TEXT ? strtod(at->text, &end) : 0;
	int err;

	if (!at)
		return 0;
	if (!end || *end || !(part >= 0 && part <= 1))
		return pipeline_refuse(r, at, "'off_cpu_threshold' is a number from 0 to 1");
	if (!(part > 0))
		return 0;
	err = component_add(&c->settings, at, "off-cpu", "true");
	return err ? err
		   : pipeline_note(
			     r, at,
			     "'off_cpu_threshold' turns off-CPU profiles on; which waits are told goes by their length "
			     "here, "
			     "which keeps the sum ('off_cpu_from')");
}

/* A threshold of 100 or more is every host. */
static int take_probabilistic(struct reader *r, struct component *c)
{
	const struct tree *at = component_at(c, "probabilistic_threshold");
	const char *interval = component_text(c, "probabilistic_interval");
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	uint64_t percent;
	int err = component_u64(r, c, "probabilistic_threshold", 100, &percent);

	if (err || !at || percent >= 100)
		return err;
	buf_printf(&text, "%d/%s", (int)percent, interval ? interval : "1m");
	return text.failed ? -ENOMEM : component_add(&c->settings, at, "probabilistic", buf_text(&text));
}

static int take_list(struct reader *r, struct component *c, const char *path, const char *prefix, const char *option)
{
	AUTO_FREE const char **texts = NULL;
	size_t count;
	int err = component_texts(r, c, path, &texts, &count);

	for (size_t i = 0; i < count && !err; i++) {
		AUTO(buf_fini) struct buf value = BUF_EMPTY;

		buf_printf(&value, "%s%s", prefix, texts[i]);
		err = value.failed ? -ENOMEM : component_add(&c->settings, component_at(c, path), option, buf_text(&value));
	}
	return err;
}

static int take_profiling(struct reader *r, struct component *c)
{
	AUTO_FREE const char **tracers = NULL;
	bool by_name = false;
	size_t count;
	int err = component_texts(r, c, "tracers", &tracers, &count);

	c->source = SOURCE_AGENT;
	for (size_t i = 0; i < count && !err; i++)
		err = take_tracers(r, c, component_at(c, "tracers"), tracers[i], &by_name);
	if (!err && count && !tree_find(&c->settings, "runtimes"))
		err = component_add(&c->settings, component_at(c, "tracers"), "runtimes", "none");
	for (size_t i = 0; i < ARRAY_LEN(unsaid) && !err && by_name; i++)
		err = component_add(&c->settings, component_at(c, "tracers"), "runtimes", unsaid[i]);
	if (!err)
		err = take_off_cpu(r, c);
	if (!err)
		err = take_probabilistic(r, c);
	return err ? err : take_list(r, c, "probe_links", "", "event");
}

static const struct component_type profiling = {
	.class = CLASS_RECEIVER,
	.names = { "profiling" },
	.keys = profiling_keys,
	.take = take_profiling,
};

/* --- probes of the kernel, as the seed's extension of the profiler has them --- */

static const struct component_key extension_keys[] = {
	{ "attach_kernel_symbols", NULL, NULL },
	{ NULL, NULL, NULL },
};

static int take_extension(struct reader *r, struct component *c)
{
	c->source = SOURCE_AGENT;
	if (!component_at(c, "attach_kernel_symbols"))
		return component_add(&c->settings, c->node, "event", "kprobe:copy_process");
	return take_list(r, c, "attach_kernel_symbols", "kprobe:", "event");
}

static const struct component_type profiling_extension = {
	.class = CLASS_RECEIVER,
	.names = { "profilingextension" },
	.keys = extension_keys,
	.take = take_extension,
};

/* --- OTLP --- */

static const struct component_key otlp_keys[] = {
	{ "protocols.grpc.endpoint", "grpc-address", NULL },
	{ "protocols.http.endpoint", "http-address", NULL },
	{ "protocols.grpc.max_recv_msg_size_mib", NULL, NULL },
	{ "protocols.http.max_request_body_size", "max-receive-bytes", NULL },
	{ "protocols.http.cors.allowed_origins", "cors-origin", NULL },
	{ "protocols.grpc.tls.cert_file", "tls-cert", NULL },
	{ "protocols.grpc.tls.key_file", "tls-key", NULL },
	{ "protocols.grpc.tls.client_ca_file", "tls-client-ca", NULL },
	{ "protocols.http.tls.cert_file", "tls-cert", NULL },
	{ "protocols.http.tls.key_file", "tls-key", NULL },
	{ "protocols.http.tls.client_ca_file", "tls-client-ca", NULL },
	{ "protocols.grpc.keepalive", NULL, "connections without requests are closed after 75 s" },
	{ "protocols.grpc.max_concurrent_streams", NULL, "max-connections and receive-memory bound what is under way" },
	{ "protocols.grpc.read_buffer_size", NULL, "buffers grow as they must" },
	{ "protocols.grpc.write_buffer_size", NULL, "buffers grow as they must" },
	{ "protocols.grpc.include_metadata", NULL, "no stage reads headers of requests" },
	{ "protocols.http.include_metadata", NULL, "no stage reads headers of requests" },
	{ "protocols.http.traces_url_path", NULL, "paths are OTLP's own" },
	{ "protocols.http.metrics_url_path", NULL, "paths are OTLP's own" },
	{ "protocols.http.logs_url_path", NULL, "paths are OTLP's own" },
	{ NULL, NULL, NULL },
};

/* Of protocols those are listened on that are named; none that is: all. The address of HTTP is the page's, too, which has
 * options of its own. */
static int turn_off_others(struct component *c)
{
	const struct tree *protocols = tree_find(c->node, "protocols");

	if (!protocols || !tree_find(protocols, "http") || tree_find(protocols, "grpc"))
		return 0;
	return component_add(&c->settings, protocols, "grpc-address", "off");
}

static int take_otlp(struct reader *r, struct component *c)
{
	const struct tree *at = component_at(c, "protocols.grpc.max_recv_msg_size_mib");
	AUTO(buf_fini) struct buf size = BUF_EMPTY;
	uint64_t mib;
	int err = component_u64(r, c, "protocols.grpc.max_recv_msg_size_mib", 0, &mib);

	c->source = SOURCE_OTLP;
	if (!err)
		err = turn_off_others(c);
	if (err || !at)
		return err;
	buf_printf(&size, "%dM", mib > 4096 ? 4096 : (int)mib);
	return size.failed ? -ENOMEM : component_add(&c->settings, at, "max-receive-bytes", buf_text(&size));
}

static const struct component_type otlp = {
	.class = CLASS_RECEIVER,
	.names = { "otlp" },
	.keys = otlp_keys,
	.take = take_otlp,
};

/* --- made up --- */

static const struct component_key custom_keys[] = {
	{ "report_interval", NULL, NULL },
	{ "foo", NULL, "nor had it any in the distribution it is from" },
	{ NULL, NULL, NULL },
};

static int take_interval(struct reader *r, struct component *c, const char *path)
{
	int err = component_duration(r, c, path, 5 * NSEC_PER_SEC, &c->interval_ns);

	c->source = SOURCE_MADE_UP;
	if (!err && (c->interval_ns < 10 * NSEC_PER_MSEC || c->interval_ns > 24 * HOUR_NS))
		return pipeline_refuse(r, component_at(c, path), "'%s' is a time from 10ms to 24h", path);
	return err;
}

static int take_custom(struct reader *r, struct component *c)
{
	return take_interval(r, c, "report_interval");
}

static const struct component_type custom = {
	.class = CLASS_RECEIVER,
	.names = { "customprofilesreceiver" },
	.keys = custom_keys,
	.take = take_custom,
};

static const struct component_key synthetic_keys[] = {
	{ "interval", NULL, NULL },
	{ "samples", NULL, NULL },
	{ NULL, NULL, NULL },
};

static int take_synthetic(struct reader *r, struct component *c)
{
	uint64_t samples;
	int err = component_u64(r, c, "samples", 100, &samples);

	if (!err && (!samples || samples > 1000000))
		return pipeline_refuse(r, component_at(c, "samples"), "'samples' is a number from 1 to 1000000");
	c->samples = (uint32_t)samples;
	return err ? err : take_interval(r, c, "interval");
}

static const struct component_type synthetic = {
	.class = CLASS_RECEIVER,
	.names = { "synthetic" },
	.keys = synthetic_keys,
	.take = take_synthetic,
};

const struct component_type *const receiver_types[] = { &profiling, &profiling_extension, &otlp, &custom,
							&synthetic, &host_metrics_type,	  NULL };
