/* SPDX-License-Identifier: Apache-2.0 */
/* From options to one sink. The short forms are turned into the long one, so that each kind of sink is made in one place. */
#include "cmd/sinks_of.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/store.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "cmd/config.h"
#include "cmd/hide.h"
#include "cmd/print_of.h"
#include "cmd/store_of.h"
#include "sinks/sinks.h"

enum { FANOUT_QUEUE_ITEMS = 16 };

/* The sinks made so far; what is left in it when it goes out of scope is freed. */
struct sink_set {
	const struct config *config;
	struct metrics *metrics;
	struct store **store; /* the one that is made */
	struct buf *names, *error;
	struct sink **items;
	size_t count;
	bool has_slow;
};

static void sink_set_fini(struct sink_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		sink_free(set->items[i]);
	free(set->items);
}

/* --- the kinds --- */
static int make_print(const struct sink_set *set, const char *value, struct sink **ret)
{
	struct print_options options = print_options_of(set->config);

	(void)value;
	return sink_print_new(stdout, &options, ret);
}

static int make_null(const struct sink_set *set, const char *value, struct sink **ret)
{
	(void)set;
	(void)value;
	return sink_null_new(ret);
}

/* The counters are there whatever the sinks are; who names this one wants them and nothing else. */
static int make_prometheus(const struct sink_set *set, const char *value, struct sink **ret)
{
	(void)value;
	if (!set->config->grpc_address) { /* an option of serve alone */
		buf_puts(set->error, "--sink: prometheus is what 'hearth serve' counts for /metrics");
		return -EINVAL;
	}
	return sink_null_new(ret);
}

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len > end_len && !strcmp(name + len - end_len, end);
}

static int make_file(const struct sink_set *set, const char *value, struct sink **ret)
{
	(void)set;
	if (ends_in(value, ".jsonl") || ends_in(value, ".json"))
		return sink_lines_new(value, LINES_JSON, ret);
	if (ends_in(value, ".framed"))
		return sink_lines_new(value, LINES_FRAMED, ret);
	return sink_file_new(value, FILE_END_ORDERED, ret);
}

/* One store is enough: the page and the questions have one place to look. */
static int make_store(const struct sink_set *set, const char *value, struct sink **ret)
{
	int err;

	if (*set->store) {
		buf_puts(set->error, "--store: profiles are kept in one store only");
		return -EINVAL;
	}
	err = store_of(set->config, value, false, set->metrics, set->store, set->error);
	return err ? err : (*set->store)->ops->writer(*set->store, ret);
}

/* The same as --store clickhouse+URL, which may stand here, too. */
static int make_clickhouse(const struct sink_set *set, const char *value, struct sink **ret)
{
	AUTO(buf_fini) struct buf place = BUF_EMPTY;

	buf_printf(&place, "%s%s", store_is_clickhouse(value) ? "" : "clickhouse+", value);
	return make_store(set, buf_text(&place), ret);
}

static int explain_store(const struct sink_set *set, const char *value, int err)
{
	if (!set->error->len)
		buf_printf(set->error, "cannot keep profiles in %s: %s", value, strerror(-err));
	return err;
}

static int make_dir(const struct sink_set *set, const char *value, struct sink **ret)
{
	const struct dir_options options = {
		.container_id = set->config->dir_container,
		.sample_types = (const char *const *)set->config->dir_sample_types.items,
	};

	return sink_dir_new(value, &options, ret);
}

static enum otlp_protocol protocol_of(const char *name)
{
	if (!name)
		return OTLP_BY_URL;
	return !strcmp(name, "grpc") ? OTLP_GRPC : !strcmp(name, "http/json") ? OTLP_HTTP_JSON : OTLP_HTTP_PROTOBUF;
}

/* How many collectors there are, by either option. */
static size_t count_collectors(const struct config *config)
{
	size_t count = config->collectors.count;

	for (size_t i = 0; i < config->sinks.count; i++)
		count += !strncmp(config->sinks.items[i], "otlp=", 5);
	return count;
}

static int make_otlp(const struct sink_set *set, const char *value, struct sink **ret)
{
	const struct config *config = set->config;
	struct otlp_sink_config otlp = {
		.url = value,
		.protocol = protocol_of(config->collector_protocol),
		.insecure = config->collector_insecure,
		.headers = (const char *const *)config->collector_headers.items,
		.token_file = config->collector_token_file,
		.timeout_ns = config->collector_timeout_ns ? config->collector_timeout_ns : UINT64_MAX,
		.no_gzip = !strcmp(config->collector_compression, "none"),
		.max_export_bytes = config->max_export_bytes,
		.max_queue_bytes = config->max_queue_bytes,
		.ca_file = config->collector_ca,
		.cert_file = config->collector_cert,
		.key_file = config->collector_key,
		.proxy = config->collector_proxy,
		.one_of_several = count_collectors(config) > 1,
		.spool_dir = config->spool,
		.spool_bytes = config->spool_bytes,
		.spool_age_ns = config->spool_age_ns,
	};

	return sink_otlp_new(&otlp, set->metrics, ret);
}

/* Which of the collector's files or folders cannot be used, by its option; false when all can. */
static bool explain_files(const struct config *config, int err, struct buf *error)
{
	const struct {
		const char *option, *file;
	} files[] = {
		{ "--collector-ca", config->collector_ca },
		{ "--collector-cert", config->collector_cert },
		{ "--collector-key", config->collector_key },
		{ "--collector-token-file", config->collector_token_file },
	};
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (files[i].file && access(files[i].file, R_OK)) {
			buf_printf(error, "%s: cannot read %s: %s", files[i].option, files[i].file, strerror(errno));
			return true;
		}
	}
	if (!config->spool ||
	    (!stat(config->spool, &st) && S_ISDIR(st.st_mode) && !access(config->spool, R_OK | W_OK | X_OK)))
		return false;
	buf_printf(error, "--spool: cannot keep files in %s: %s", config->spool, strerror(err));
	return true;
}

/* @config's address, headers or files are at fault; all but the last is wrong usage. */
static int explain_otlp(const struct sink_set *set, const char *value, int err)
{
	if (err == -EINVAL || err == -EPROTONOSUPPORT)
		buf_printf(set->error,
			   "--collector: '%s' is no collector's address; give one such as http://127.0.0.1:4318 or "
			   "grpc://127.0.0.1:4317",
			   value);
	else if (err == -EBADMSG)
		buf_puts(set->error, "--collector-header: not every header is 'NAME: VALUE'");
	else if (err == -ENODATA)
		buf_printf(set->error, "--collector-token-file: %s does not hold a token: one word on one line",
			   set->config->collector_token_file);
	else if (err == -EBUSY)
		buf_printf(set->error, "--spool: another process uses %s for %s", set->config->spool, value);
	else if (!explain_files(set->config, -err, set->error))
		buf_printf(set->error, "cannot send to %s: %s", value, strerror(-err));
	return err == -EPROTONOSUPPORT || err == -EBADMSG ? -EINVAL : err;
}

static int explain_file(const struct sink_set *set, const char *value, int err)
{
	buf_printf(set->error, "cannot write to %s: %s", value, file_sink_error(err));
	return err;
}

static int explain(const struct sink_set *set, const char *value, int err)
{
	(void)value;
	if (!set->error->len)
		buf_printf(set->error, "cannot open a sink: %s", strerror(-err));
	return err;
}

struct sink_kind {
	const char *name;
	const char *value; /* what stands behind '='; NULL: nothing may */
	bool is_slow;	   /* its consume() may wait for a disk or a reader */
	int (*make)(const struct sink_set *set, const char *value, struct sink **ret);
	int (*explain)(const struct sink_set *set, const char *value,
		       int err); /* says why make() failed; returns the error */
};

static const struct sink_kind kinds[] = {
	{ .name = "print", .is_slow = true, .make = make_print, .explain = explain },
	{ .name = "null", .make = make_null, .explain = explain },
	{ .name = "prometheus", .make = make_prometheus, .explain = explain },
	{ .name = "file", .value = "PATH", .is_slow = true, .make = make_file, .explain = explain_file },
	{ .name = "store", .value = "FOLDER", .make = make_store, .explain = explain_store },
	{ .name = "clickhouse", .value = "URL", .make = make_clickhouse, .explain = explain_store },
	{ .name = "dir", .value = "DIR", .is_slow = true, .make = make_dir, .explain = explain_file },
	{ .name = "otlp", .value = "URL", .make = make_otlp, .explain = explain_otlp },
};

static const struct sink_kind *find_kind(const char *name, size_t len, struct buf *error)
{
	AUTO_FREE char *word = strndup(name, len);
	struct nearest nearest = nearest_to(word ? word : "");

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strlen(kinds[i].name) == len && !memcmp(kinds[i].name, name, len))
			return &kinds[i];
		nearest_offer(&nearest, kinds[i].name);
	}
	buf_printf(error, "--sink: there is no sink '%.*s'; ", (int)len, name);
	if (nearest.best)
		buf_printf(error, "did you mean %s?", nearest.best);
	else
		buf_puts(error,
			 "there are print, null, file=PATH, dir=DIR, store=FOLDER, clickhouse=URL, prometheus and otlp=URL");
	return NULL;
}

/* Adds the sink that @spec, NAME[=VALUE], describes; @value goes before what @spec says. */
static int add_sink(struct sink_set *set, const char *spec, const char *value)
{
	size_t name_len = strcspn(spec, "=");
	const struct sink_kind *kind = find_kind(spec, name_len, set->error);
	AUTO_FREE char *shown = NULL;
	int err;

	if (!kind)
		return -EINVAL;
	if (!value && spec[name_len])
		value = spec + name_len + 1;
	if (!kind->value != !value || (value && !*value)) {
		buf_printf(set->error, kind->value ? "--sink: %s needs a value: %s=%s" : "--sink: %s takes no value",
			   kind->name, kind->name, kind->value);
		return -EINVAL;
	}
	shown = strdup(value ? value : "");
	if (!shown)
		return -ENOMEM;
	hide_password(shown);
	err = kind->make(set, value, &set->items[set->count]);
	if (err)
		return kind->explain(set, shown, err);
	set->count++;
	set->has_slow |= kind->is_slow;
	buf_printf(set->names, "%s%s%s%s", set->names->len ? ", " : "", kind->name, value ? " " : "", shown);
	return 0;
}

static int add_all(struct sink_set *set)
{
	const struct config *config = set->config;
	int err = config->print ? add_sink(set, "print", NULL) : 0;

	if (!err && config->store)
		err = add_sink(set, store_is_clickhouse(config->store) ? "clickhouse" : "store", config->store);
	for (size_t i = 0; !err && i < config->collectors.count; i++)
		err = add_sink(set, "otlp", config->collectors.items[i]);
	for (size_t i = 0; !err && i < config->sinks.count; i++)
		err = add_sink(set, config->sinks.items[i], NULL);
	return err;
}

const char *file_sink_error(int err)
{
	if (err == -EBADMSG)
		return "what is in it are no requests";
	return err == -EBUSY ? "another process is writing it" : strerror(-err);
}

bool sinks_are_named(const struct config *config)
{
	return config->print || config->store || config->collectors.count || config->sinks.count;
}

bool sinks_use_stdout(const struct config *config)
{
	bool yes = config->print;

	for (size_t i = 0; i < config->sinks.count; i++)
		yes |= !strcmp(config->sinks.items[i], "print") || !strcmp(config->sinks.items[i], "file=-");
	return yes;
}

int sinks_of(const struct config *config, struct metrics *metrics, struct sink **ret, struct store **store_ret,
	     struct buf *names, struct buf *error)
{
	AUTO(sink_set_fini)
	struct sink_set set = { .config = config, .metrics = metrics, .store = store_ret, .names = names, .error = error };
	size_t count;
	int err;

	set.items = calloc(2 + config->collectors.count + config->sinks.count, sizeof(*set.items));
	if (!set.items) {
		buf_printf(error, "cannot open the sinks: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	err = add_all(&set);
	if (err)
		return err;
	count = set.count;
	set.count = 0; /* given away below, also when that fails */
	if (count == 1 && !set.has_slow) {
		*ret = set.items[0];
		return 0;
	}
	err = sink_fanout_new(set.items, count, FANOUT_QUEUE_ITEMS, metrics, ret);
	if (err)
		buf_printf(error, "cannot start the sinks: %s", strerror(-err));
	return err;
}
