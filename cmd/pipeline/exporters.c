/* SPDX-License-Identifier: Apache-2.0 */
/* Exporters: sinks, each with settings of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/nearest.h"
#include "cmd/pipeline/component.h"

static int set_sink(struct component *c, const char *type, const char *value)
{
	AUTO(buf_fini) struct buf spec = BUF_EMPTY;

	buf_printf(&spec, "%s%s%s", type, value ? "=" : "", value ? value : "");
	buf_putc(&spec, '\0');
	free(c->sink);
	c->sink = (char *)buf_take(&spec, NULL);
	return c->sink ? 0 : -ENOMEM;
}

/* One of the words of a key that has few; NULL: there is none. */
static int take_word(struct reader *r, const struct component *c, const char *path, const char *const *words,
		     const char **ret)
{
	const struct tree *at = component_at(c, path);
	const char *text = component_text(c, path);
	struct nearest nearest = nearest_to(text ? text : "");

	*ret = NULL;
	for (size_t i = 0; at && words[i]; i++) {
		nearest_offer(&nearest, words[i]);
		if (text && !strcmp(text, words[i]))
			*ret = words[i];
	}
	if (!at || *ret)
		return 0;
	return pipeline_refuse(r, at, "'%s' cannot be '%s'; %s'%s'", path, text ? text : "a list",
			       nearest.best ? "did you mean " : "it is such as ", nearest.best ? nearest.best : words[0]);
}

/* --- OTLP --- */

#define SENDER_KEYS                                                                                                         \
	{ "endpoint", NULL, NULL }, { "headers", NULL, NULL }, { "compression", NULL, NULL },                               \
		{ "compression_params", NULL, "each way of compression has one level, docs/sending.md tells which" },       \
		{ "timeout", "collector-timeout", NULL }, { "tls.insecure", NULL, NULL },                                   \
		{ "tls.ca_file", "collector-ca", NULL }, { "tls.cert_file", "collector-cert", NULL },                       \
		{ "tls.key_file", "collector-key", NULL }, { "tls.insecure_skip_verify", NULL, NULL },                      \
		{ "tls.server_name_override", NULL, NULL }, { "tls.min_version", NULL, "TLS 1.2 is the least" },            \
		{ "tls.reload_interval", NULL, "certificates are read at the start" }, { "auth", NULL, NULL },              \
		{ "proxy_url", "collector-proxy", NULL },                                                                   \
		{ "retry_on_failure", NULL,                                                                                 \
		  "what a collector may take later is sent again until it does or the queue is full" },                     \
		{ "sending_queue", NULL, "--max-queue-bytes bounds what waits in memory, --spool keeps it on disk" },       \
		{ "batcher", NULL, "a report interval is a batch" },                                                        \
		{ "read_buffer_size", NULL, "buffers grow as they must" },                                                  \
		{ "write_buffer_size", NULL, "buffers grow as they must" }, { "token_file", "collector-token-file", NULL }, \
		{ "spool", "spool", NULL }, { "max_queue_bytes", "max-queue-bytes", NULL },                                 \
	{                                                                                                                   \
		"max_export_bytes", "max-export-bytes", NULL                                                                \
	}

static const struct component_key grpc_keys[] = {
	SENDER_KEYS,
	{ "keepalive", NULL, "a connection that broke is made again" },
	{ "wait_for_ready", NULL, "a collector that is away is tried again" },
	{ "balancer_name", NULL, "one connection is used" },
	{ "authority", NULL, "the authority is the address" },
	{ NULL, NULL, NULL },
};

static const struct component_key http_keys[] = {
	SENDER_KEYS,
	{ "profiles_endpoint", NULL, NULL },
	{ "traces_endpoint", NULL, "hearth's pipelines are of profiles" },
	{ "metrics_endpoint", NULL, NULL },
	{ "logs_endpoint", NULL, "hearth's pipelines are of profiles" },
	{ "encoding", NULL, NULL },
	{ "max_idle_conns", NULL, "one connection is used" },
	{ "max_idle_conns_per_host", NULL, "one connection is used" },
	{ "idle_conn_timeout", NULL, "one connection is used" },
	{ "disable_keep_alives", NULL, "one connection is used" },
	{ NULL, NULL, NULL },
};

static int take_headers(struct reader *r, struct component *c)
{
	const struct tree *headers = component_at(c, "headers");
	int err = 0;

	if (headers && headers->kind != TREE_MAP)
		return pipeline_refuse(r, headers, "'headers' is a map of names and values");
	for (size_t i = 0; headers && i < headers->count && !err; i++) {
		const struct tree *t = &headers->items[i];
		AUTO(buf_fini) struct buf text = BUF_EMPTY;

		if (t->kind != TREE_TEXT)
			return pipeline_refuse(r, t, "the value of a header is a text");
		buf_printf(&text, "%s: %s", t->key, t->text);
		err = text.failed ? -ENOMEM : component_add(&c->settings, t, "collector-header", buf_text(&text));
	}
	return err;
}

static int take_compression(struct reader *r, struct component *c)
{
	static const char *const words[] = { "gzip", "zstd",	"none", "",  "snappy", "x-snappy-framed",
					     "zlib", "deflate", "lz4",	NULL };
	const char *word;
	int err = take_word(r, c, "compression", words, &word);

	if (err || !word)
		return err;
	if (*word && strcmp(word, "gzip") != 0 && strcmp(word, "zstd") != 0 && strcmp(word, "none") != 0)
		return pipeline_note(
			r, component_at(c, "compression"),
			"'compression: %s' is not here: requests are packed by gzip; 'zstd' and 'none' are, too", word);
	return component_add(&c->settings, component_at(c, "compression"), "collector-compression", *word ? word : "none");
}

static int check_sender(struct reader *r, struct component *c, bool *insecure)
{
	bool blind;
	int err = component_bool(r, c, "tls.insecure", false, insecure);

	if (!err)
		err = component_bool(r, c, "tls.insecure_skip_verify", false, &blind);
	if (!err && blind)
		return pipeline_refuse(r, component_at(c, "tls.insecure_skip_verify"),
				       "a collector's certificate is always checked; 'ca_file' says whom to trust");
	if (!err && component_at(c, "tls.server_name_override"))
		return pipeline_refuse(r, component_at(c, "tls.server_name_override"),
				       "a certificate's name is always the address's");
	if (!err && component_at(c, "auth"))
		return pipeline_refuse(
			r, component_at(c, "auth"),
			"extensions that log in are not here; 'token_file' sends a bearer token, 'headers' anything else");
	if (!err)
		err = take_headers(r, c);
	return err ? err : take_compression(r, c);
}

static const char *behind_scheme(const char *text, const char *scheme)
{
	size_t len = strlen(scheme);

	return strncasecmp(text, scheme, len) || strncmp(text + len, "://", 3) ? NULL : text + len + 3;
}

static int take_grpc(struct reader *r, struct component *c)
{
	const char *endpoint = component_text(c, "endpoint"), *plain, *tls;
	AUTO(buf_fini) struct buf url = BUF_EMPTY;
	bool insecure;
	int err = check_sender(r, c, &insecure);

	if (err)
		return err;
	if (!endpoint || !*endpoint)
		return pipeline_refuse(r, c->node, "'%s' has an 'endpoint' such as collector:4317", c->name);
	plain = behind_scheme(endpoint, "http");
	tls = behind_scheme(endpoint, "https");
	if (!strncmp(endpoint, "unix:", 5) || behind_scheme(endpoint, "grpc") || behind_scheme(endpoint, "grpcs"))
		buf_puts(&url, endpoint);
	else if (plain)
		buf_printf(&url, "grpc://%s", plain);
	else
		buf_printf(&url, "%s://%s", tls || !insecure ? "grpcs" : "grpc", tls ? tls : endpoint);
	while (url.len && url.data[url.len - 1] == '/')
		url.len--;
	return url.failed ? -ENOMEM : set_sink(c, "otlp", buf_text(&url));
}

static const struct component_type otlp = {
	.class = CLASS_EXPORTER,
	.has_metrics = true,
	.names = { "otlp", "otlp_grpc" },
	.keys = grpc_keys,
	.take = take_grpc,
};

/* The endpoint is where OTLP's paths begin. */
static void put_profiles_path(const char *endpoint, struct buf *url)
{
	const char *host = strstr(endpoint, "://");
	size_t len = strlen(endpoint);
	const char *path = host ? strchr(host + 3, '/') : NULL;

	while (len && endpoint[len - 1] == '/')
		len--;
	buf_append(url, endpoint, len);
	if (path && path < endpoint + len)
		buf_puts(url, "/v1development/profiles");
}

/* One address goes with an exporter, and the other signals' are made of it. */
static int check_metrics(struct reader *r, const struct component *c)
{
	const struct tree *own = component_at(c, "metrics_endpoint"), *profiles = component_at(c, "profiles_endpoint");

	if (own && !c->has_metrics)
		return pipeline_note(r, own, "'metrics_endpoint' of '%s' has no effect: no metrics go to it", c->name);
	if (c->has_metrics && (own || profiles))
		return pipeline_refuse(r, own ? own : profiles,
				       "metrics go to 'endpoint' with /v1/metrics behind it; for another address give an "
				       "exporter of its own");
	return 0;
}

static int take_http(struct reader *r, struct component *c)
{
	static const char *const encodings[] = { "proto", "json", NULL };
	const char *endpoint = component_text(c, "endpoint"), *whole = component_text(c, "profiles_endpoint"), *encoding;
	AUTO(buf_fini) struct buf url = BUF_EMPTY;
	bool insecure;
	int err = check_sender(r, c, &insecure);

	if (!err)
		err = take_word(r, c, "encoding", encodings, &encoding);
	if (!err)
		err = check_metrics(r, c);
	if (err)
		return err;
	if (!whole && (!endpoint || (!behind_scheme(endpoint, "http") && !behind_scheme(endpoint, "https"))))
		return pipeline_refuse(r, component_at(c, "endpoint") ? component_at(c, "endpoint") : c->node,
				       "'%s' has an 'endpoint' such as http://collector:4318", c->name);
	if (whole)
		buf_puts(&url, whole);
	else
		put_profiles_path(endpoint, &url);
	if (encoding && !strcmp(encoding, "json"))
		err = component_add(&c->settings, component_at(c, "encoding"), "collector-protocol", "http/json");
	if (!err && url.failed)
		err = -ENOMEM;
	return err ? err : set_sink(c, "otlp", buf_text(&url));
}

static const struct component_type otlphttp = {
	.class = CLASS_EXPORTER,
	.has_metrics = true,
	.names = { "otlphttp", "otlp_http" },
	.keys = http_keys,
	.take = take_http,
};

/* --- text --- */

static const struct component_key debug_keys[] = {
	{ "verbosity", NULL, NULL },
	{ "sampling_initial", NULL, "nothing is left out" },
	{ "sampling_thereafter", NULL, "nothing is left out" },
	{ "use_internal_logger", NULL, "counts go to standard error, everything else to standard output" },
	{ "output_paths", NULL, "counts go to standard error, everything else to standard output" },
	{ NULL, NULL, NULL },
};

static int take_debug(struct reader *r, struct component *c)
{
	static const char *const words[] = { "basic", "normal", "detailed", NULL };
	const char *word;
	int err = take_word(r, c, "verbosity", words, &word);

	if (err)
		return err;
	if (!word || strcmp(word, "detailed") != 0)
		return set_sink(c, "count", NULL);
	err = component_add(&c->settings, c->node, "print-form", "debug");
	return err ? err : set_sink(c, "print", NULL);
}

static const struct component_type debug = {
	.class = CLASS_EXPORTER,
	.has_metrics = true,
	.names = { "debug" },
	.keys = debug_keys,
	.take = take_debug,
};

static const struct component_key custom_keys[] = {
	{ "export_resource_attributes", NULL, NULL },
	{ "export_profile_attributes", NULL, NULL },
	{ "export_sample_attributes", NULL, NULL },
	{ "export_stack_frames", NULL, NULL },
	{ "export_stack_frame_types", "print-frame-type", NULL },
	{ "export_function_file", NULL, NULL },
	{ "ignore_profiles_without_container_id", NULL, NULL },
	{ "export_sample_types", "print-sample-type", NULL },
	{ NULL, NULL, NULL },
};

/* A boolean key as an option that says @yes or @no; NULL: it says nothing then. */
static int take_switch(struct reader *r, struct component *c, const char *path, bool usual, const char *option,
		       const char *yes, const char *no)
{
	const struct tree *at = component_at(c, path);
	bool is_on;
	int err = component_bool(r, c, path, usual, &is_on);
	const char *text = is_on ? yes : no;

	return err || !text ? err : component_add(&c->settings, at ? at : c->node, option, text);
}

static int take_custom(struct reader *r, struct component *c)
{
	int err = component_add(&c->settings, c->node, "print-form", "typed");
	bool attributes;

	if (!err)
		err = take_switch(r, c, "export_resource_attributes", true, "print-no-resource-attributes", NULL, "true");
	if (!err)
		err = component_bool(r, c, "export_profile_attributes", true, &attributes); /* has no effect there, either */
	if (!err)
		err = take_switch(r, c, "export_sample_attributes", true, "print-no-sample-attributes", NULL, "true");
	if (!err)
		err = take_switch(r, c, "export_stack_frames", true, "print-no-frames", NULL, "true");
	if (!err)
		err = take_switch(r, c, "export_function_file", false, "print-source", "yes", "no");
	if (!err)
		err = take_switch(r, c, "ignore_profiles_without_container_id", true, "print-only-containers", "yes", "no");
	if (!err && !component_at(c, "export_sample_types"))
		err = pipeline_note(
			r, c->node,
			"'%s' without 'export_sample_types' prints resources and no profiles, as the distribution's does; "
			"give [samples, events, off_cpu]",
			c->name);
	return err ? err : set_sink(c, "print", NULL);
}

static const struct component_type custom = {
	.class = CLASS_EXPORTER,
	.names = { "customprofilesexporter" },
	.keys = custom_keys,
	.take = take_custom,
};

static const struct component_key print_keys[] = {
	{ "form", "print-form", NULL },
	{ "sample_types", "print-sample-type", NULL },
	{ "frame_types", "print-frame-type", NULL },
	{ "container", "print-container", NULL },
	{ "only_containers", "print-only-containers", NULL },
	{ "source", "print-source", NULL },
	{ "raw", "print-raw", NULL },
	{ NULL, NULL, NULL },
};

static int take_print(struct reader *r, struct component *c)
{
	(void)r;
	return set_sink(c, "print", NULL);
}

static const struct component_type print = {
	.class = CLASS_EXPORTER,
	.names = { "print" },
	.keys = print_keys,
	.take = take_print,
};

/* --- files --- */

static const struct component_key file_keys[] = {
	{ "path", NULL, NULL },
	{ "format", NULL, NULL },
	{ "compression", NULL, NULL },
	{ "rotation", NULL, "the file grows; hearth's 'store' forgets by age and size" },
	{ "append", NULL, "lines are always appended" },
	{ "flush_interval", NULL, "each request is written at once" },
	{ "create_directory", NULL, "folders are not made" },
	{ "group_by", NULL, NULL },
	{ NULL, NULL, NULL },
};

static bool ends_in(const char *text, const char *suffix)
{
	size_t len = strlen(text), suffix_len = strlen(suffix);

	return len > suffix_len && !strcmp(text + len - suffix_len, suffix);
}

static int take_file(struct reader *r, struct component *c)
{
	static const char *const formats[] = { "json", "proto", NULL };
	const char *path = component_text(c, "path"), *format, *compression = component_text(c, "compression");
	int err = take_word(r, c, "format", formats, &format);
	bool is_json = !format || !strcmp(format, "json");

	if (err)
		return err;
	if (!path || !*path)
		return pipeline_refuse(r, c->node, "'%s' has a 'path'", c->name);
	if (compression && *compression && strcmp(compression, "none") != 0)
		return pipeline_refuse(r, component_at(c, "compression"),
				       "lines are not compressed as they are written; leave 'compression' out");
	if (component_at(c, "group_by"))
		return pipeline_refuse(r, component_at(c, "group_by"),
				       "one file is written; 'dir' makes one for each container and type");
	if (is_json ? !ends_in(path, ".json") && !ends_in(path, ".jsonl") : !ends_in(path, ".framed"))
		return pipeline_refuse(r, component_at(c, "path"),
				       "hearth tells formats by names: 'path' ends in %s for 'format: %s'",
				       is_json ? ".json or .jsonl" : ".framed", is_json ? "json" : "proto");
	c->writes_files = true;
	return set_sink(c, "file", path);
}

static const struct component_type file = {
	.class = CLASS_EXPORTER,
	.names = { "file" },
	.keys = file_keys,
	.take = take_file,
};

static const struct component_key dir_keys[] = {
	{ "path", NULL, NULL },
	{ "container", "dir-container", NULL },
	{ "sample_types", "dir-sample-type", NULL },
	{ NULL, NULL, NULL },
};

static int take_dir(struct reader *r, struct component *c)
{
	const char *path = component_text(c, "path");

	c->writes_files = c->writes_folder = true;
	return path && *path ? set_sink(c, "dir", path) : pipeline_refuse(r, c->node, "'%s' has a 'path'", c->name);
}

static const struct component_type dir = {
	.class = CLASS_EXPORTER,
	.names = { "dir" },
	.keys = dir_keys,
	.take = take_dir,
};

/* --- stores --- */

static const struct component_key store_keys[] = {
	{ "folder", NULL, NULL },	    { "keep_age", "keep-age", NULL },	  { "keep_size", "keep-size", NULL },
	{ "keep_free", "keep-free", NULL }, { "thin_after", "thin-after", NULL }, { NULL, NULL, NULL },
};

static int take_store(struct reader *r, struct component *c)
{
	const char *folder = component_text(c, "folder");

	return folder && *folder ? set_sink(c, "store", folder)
				 : pipeline_refuse(r, c->node, "'%s' has a 'folder'", c->name);
}

static const struct component_type store = {
	.class = CLASS_EXPORTER,
	.names = { "store" },
	.keys = store_keys,
	.take = take_store,
};

static const struct component_key clickhouse_keys[] = {
	{ "endpoint", NULL, NULL },	 { "password_file", "store-password-file", NULL },
	{ "ca_file", "store-ca", NULL }, { "keep_age", "keep-age", NULL },
	{ "spool", "spool", NULL },	 { NULL, NULL, NULL },
};

static int take_clickhouse(struct reader *r, struct component *c)
{
	const char *endpoint = component_text(c, "endpoint");

	if (endpoint && (behind_scheme(endpoint, "http") || behind_scheme(endpoint, "https")))
		return set_sink(c, "clickhouse", endpoint);
	return pipeline_refuse(r, c->node, "'%s' has an 'endpoint' such as http://hearth@clickhouse:8123/hearth", c->name);
}

static const struct component_type clickhouse = {
	.class = CLASS_EXPORTER,
	.names = { "clickhouse" },
	.keys = clickhouse_keys,
	.take = take_clickhouse,
};

/* --- nothing, and what a server of hearth's own tells --- */

static const struct component_key no_keys[] = { { NULL, NULL, NULL } };

static int take_nop(struct reader *r, struct component *c)
{
	(void)r;
	return set_sink(c, "null", NULL);
}

static const struct component_type nop = {
	.class = CLASS_EXPORTER,
	.has_metrics = true,
	.names = { "nop" },
	.keys = no_keys,
	.take = take_nop,
};

static const struct component_key rest_keys[] = {
	{ "address", NULL, NULL },
	{ "export_sample_types", NULL, NULL },
	{ NULL, NULL, NULL },
};

/* Both types count, as there, when nothing is said. */
static int take_rest(struct reader *r, struct component *c)
{
	const struct tree *at = component_at(c, "address"), *types = component_at(c, "export_sample_types");
	AUTO_FREE const char **texts = NULL;
	size_t count, known = 0;
	int err = component_texts(r, c, "export_sample_types", &texts, &count);

	for (size_t i = 0; i < count && !err; i++)
		known += !strcmp(texts[i], "samples") || !strcmp(texts[i], "events");
	if (!err && types && (count != 2 || known != 2))
		err = pipeline_note(r, types, "samples and events are told, and nothing else");
	if (err)
		return err;
	return at ? component_add_address(r, at, "rest-address", &c->settings)
		  : component_add(&c->settings, c->node, "rest-address", "0.0.0.0:7799");
}

static const struct component_type httprest = {
	.class = CLASS_EXPORTER,
	.names = { "httprest" },
	.keys = rest_keys,
	.take = take_rest,
	.is_server = true,
};

const struct component_type *const exporter_types[] = { &otlp,	&otlphttp, &debug, &nop,	&file,	   &custom,
							&print, &dir,	   &store, &clickhouse, &httprest, NULL };
