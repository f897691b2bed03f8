/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one sink from options, by the table of types. The short forms are turned into the long one, so that each type of
 * sink is made in one place. */
#include "cmd/setup/sinks_of.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/nearest.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/hide.h"
#include "cmd/setup/pipelines_of.h"
#include "cmd/setup/print_of.h"
#include "cmd/setup/store_of.h"
#include "sinks/sink_type.h"

enum { FANOUT_QUEUE_ITEMS = 16 };

#define TYPE_DECLARED(name) extern const struct sink_type name;
#define TYPE_ADDRESS(name)  &name,

/* All types, in the order in which help tells of them. Each is in its sink's file; those that are a store in
 * cmd/setup/store_of.c. */
#define SINK_TYPES(TYPE)           \
	TYPE(sink_type_print)      \
	TYPE(sink_type_null)       \
	TYPE(sink_type_count)      \
	TYPE(sink_type_file)       \
	TYPE(sink_type_dir)        \
	TYPE(sink_type_store)      \
	TYPE(sink_type_clickhouse) \
	TYPE(sink_type_prometheus) \
	TYPE(sink_type_otlp)

SINK_TYPES(TYPE_DECLARED)
static const struct sink_type *const types[] = { SINK_TYPES(TYPE_ADDRESS) };

/* The sinks made so far; what is left in it when it goes out of scope is freed. */
struct sink_set {
	struct store_settings settings;
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

/* --- settings --- */

static enum otlp_protocol protocol_of(const char *name)
{
	if (!name)
		return OTLP_BY_URL;
	return !strcmp(name, "grpc") ? OTLP_GRPC : !strcmp(name, "http/json") ? OTLP_HTTP_JSON : OTLP_HTTP_PROTOBUF;
}

static enum otlp_packing packing_named(const char *name)
{
	return !strcmp(name, "zstd") ? OTLP_ZSTD : !strcmp(name, "none") ? OTLP_UNPACKED : OTLP_GZIP;
}

/* The number of collectors, by either option. */
static size_t count_collectors(const struct config *config)
{
	size_t count = config->collectors.count;

	for (size_t i = 0; i < config->sinks.count; i++)
		count += !strncmp(config->sinks.items[i], "otlp=", 5);
	return count;
}

static struct otlp_sink_config otlp_config_of(const struct config *config)
{
	return (struct otlp_sink_config){
		.protocol = protocol_of(config->collector_protocol),
		.insecure = config->collector_insecure,
		.headers = (const char *const *)config->collector_headers.items,
		.token_file = config->collector_token_file,
		.timeout_ns = config->collector_timeout_ns ? config->collector_timeout_ns : UINT64_MAX,
		.packing = packing_named(config->collector_compression),
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
}

static struct sink_settings settings_of(const struct config *config, struct metrics *metrics)
{
	return (struct sink_settings){
		.metrics = metrics,
		.out = stdout,
		.print = print_options_of(config),
		.dir = { .container_id = config->dir_container,
			 .sample_types = (const char *const *)config->dir_sample_types.items },
		.otlp = otlp_config_of(config),
		.receives = config->cmd && config->cmd->bit == ON_SERVE,
	};
}

/* --- types --- */

static void print_type(const struct sink_type *type, bool with_help, struct buf *out)
{
	buf_printf(out, "%s%s%s", type->name, type->value ? "=" : "", type->value ? type->value : "");
	if (with_help && type->help)
		buf_printf(out, " (%s)", type->help);
}

void sinks_print_help(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		buf_puts(out, i ? ", " : "");
		print_type(types[i], true, out);
	}
}

static const struct sink_type *type_of(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (strlen(types[i]->name) == len && !memcmp(types[i]->name, name, len))
			return types[i];
	return NULL;
}

bool sinks_has_type(const char *name, size_t len)
{
	return type_of(name, len);
}

static const struct sink_type *find_type(const char *name, size_t len, struct buf *error)
{
	AUTO_FREE char *word = strndup(name, len);
	struct nearest nearest = nearest_to(word ? word : "");
	const struct sink_type *type = type_of(name, len);

	if (type)
		return type;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		nearest_offer(&nearest, types[i]->name);
	buf_printf(error, "--sink: there is no sink '%.*s'; ", (int)len, name);
	if (nearest.best) {
		buf_printf(error, "did you mean %s?", nearest.best);
		return NULL;
	}
	buf_puts(error, "there are ");
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		buf_puts(error, !i ? "" : i + 1 < ARRAY_LEN(types) ? ", " : " and ");
		print_type(types[i], false, error);
	}
	return NULL;
}

static void name_one(const char *type, const char *shown, struct buf *names)
{
	buf_printf(names, "%s%s%s%s", names->len ? ", " : "", type, shown ? " " : "", shown ? shown : "");
}

/* Adds the sink that @spec, NAME[=VALUE], describes; @value goes before what @spec says. */
static int add_sink(struct sink_set *set, const char *spec, const char *value)
{
	size_t name_len = strcspn(spec, "=");
	const struct sink_type *type = find_type(spec, name_len, set->error);
	const struct sink_settings *settings = &set->settings.base;
	AUTO_FREE char *shown = NULL;
	int err;

	if (!type)
		return -EINVAL;
	if (!value && spec[name_len])
		value = spec + name_len + 1;
	if (!type->value != !value || (value && !*value)) {
		buf_printf(set->error, type->value ? "--sink: %s needs a value: %s=%s" : "--sink: %s takes no value",
			   type->name, type->name, type->value);
		return -EINVAL;
	}
	shown = strdup(value ? value : "");
	if (!shown)
		return -ENOMEM;
	hide_password(shown);
	err = type->make(settings, value, &set->items[set->count], set->error);
	if (err && !set->error->len && type->explain)
		return type->explain(settings, shown, err, set->error);
	if (err && !set->error->len)
		buf_printf(set->error, "cannot open a sink: %s", strerror(-err));
	if (err)
		return err;
	set->count++;
	set->has_slow |= type->is_slow;
	name_one(type->name, value ? shown : NULL, set->names);
	return 0;
}

static int add_all(struct sink_set *set)
{
	const struct config *config = set->settings.config;
	int err = config->print ? add_sink(set, "print", NULL) : 0;

	if (!err && config->store)
		err = add_sink(set, store_is_clickhouse(config->store) ? "clickhouse" : "store", config->store);
	for (size_t i = 0; !err && i < config->collectors.count; i++)
		err = add_sink(set, "otlp", config->collectors.items[i]);
	for (size_t i = 0; !err && i < config->sinks.count; i++)
		err = add_sink(set, config->sinks.items[i], NULL);
	return err;
}

bool sinks_are_named(const struct config *config)
{
	return config->pipelines || config->print || config->store || config->collectors.count || config->sinks.count;
}

bool sinks_is_store(const char *spec)
{
	const struct sink_type *type = type_of(spec, strcspn(spec, "="));

	return type && type->is_store;
}

bool sinks_is_sender(const char *spec)
{
	const struct sink_type *type = type_of(spec, strcspn(spec, "="));

	return type && type->is_sender;
}

static void name_hidden(const char *type, const char *value, struct buf *names)
{
	AUTO_FREE char *shown = value ? strdup(value) : NULL;

	if (shown)
		hide_password(shown);
	name_one(type, shown, names);
}

void sinks_name(const struct config *config, struct buf *names)
{
	if (config->pipelines) {
		pipelines_name(config->pipelines, names);
		return;
	}
	if (config->print)
		name_one("print", NULL, names);
	if (config->store)
		name_hidden(store_is_clickhouse(config->store) ? "clickhouse" : "store", config->store, names);
	for (size_t i = 0; i < config->collectors.count; i++)
		name_hidden("otlp", config->collectors.items[i], names);
	for (size_t i = 0; i < config->sinks.count; i++) {
		const char *spec = config->sinks.items[i], *is = strchr(spec, '=');
		AUTO_FREE char *type = strndup(spec, strcspn(spec, "="));

		if (type)
			name_hidden(type, is ? is + 1 : NULL, names);
	}
}

bool sinks_are_a_store(const struct config *config)
{
	return config->store && !config->print && !config->collectors.count && !config->sinks.count;
}

static bool sink_writes_to_stdout(const char *spec)
{
	return !strcmp(spec, "print") || !strcmp(spec, "file=-");
}

bool sinks_use_stdout(const struct config *config)
{
	bool yes = config->print || (config->pipelines && pipelines_use(config->pipelines, sink_writes_to_stdout));

	for (size_t i = 0; i < config->sinks.count; i++)
		yes |= sink_writes_to_stdout(config->sinks.items[i]);
	return yes;
}

int sinks_make(const struct config *config, const char *spec, struct metrics *metrics, struct sink **ret,
	       struct store **store_ret, bool *is_slow, struct buf *names, struct buf *error)
{
	AUTO(sink_set_fini)
	struct sink_set set = {
		.settings = { .base = settings_of(config, metrics), .config = config, .store = store_ret },
		.names = names,
		.error = error,
	};
	int err;

	set.items = calloc(1, sizeof(*set.items));
	err = set.items ? add_sink(&set, spec, NULL) : -ENOMEM;
	if (err)
		return err;
	set.count = 0;
	*ret = set.items[0];
	*is_slow = set.has_slow;
	return 0;
}

int sinks_of(const struct config *config, struct metrics *metrics, struct sink **ret, struct store **store_ret,
	     struct buf *names, struct buf *error)
{
	AUTO(sink_set_fini)
	struct sink_set set = {
		.settings = { .base = settings_of(config, metrics), .config = config, .store = store_ret },
		.names = names,
		.error = error,
	};
	size_t count;
	int err;

	if (config->pipelines)
		return pipelines_of(config, metrics, ret, store_ret, names, error);
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
