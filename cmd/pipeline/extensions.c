/* SPDX-License-Identifier: Apache-2.0 */
/* Extensions and service.telemetry: settings of the process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/pipeline/component.h"

/* --- health_check --- */

static const struct component_key health_keys[] = {
	{ "endpoint", NULL, NULL },
	{ "path", NULL, NULL },
	{ "response_body", NULL, "/healthz says 'ok'" },
	{ "check_collector_pipeline", NULL, "/readyz says whether profiles are taken" },
	{ NULL, NULL, NULL },
};

static int take_health(struct reader *r, struct component *c)
{
	const struct tree *at = component_at(c, "endpoint"), *path = component_at(c, "path");
	int err = 0;

	if (!path || path->kind != TREE_TEXT || strcmp(path->text, "/healthz") != 0)
		err = pipeline_note(r, path ? path : c->node, "health is told at /healthz and /readyz of this address");
	if (err)
		return err;
	return at ? component_add_address(r, at, "metrics-address", &c->settings)
		  : component_add(&c->settings, c->node, "metrics-address", "127.0.0.1:13133");
}

static const struct component_type health = {
	.class = CLASS_EXTENSION,
	.names = { "health_check", "healthcheck", "healthcheckv2" },
	.keys = health_keys,
	.take = take_health,
};

/* --- pprof --- */

static const struct component_key pprof_keys[] = {
	{ "endpoint", NULL, NULL },
	{ "block_profile_fraction", NULL, "hearth's own profile is of CPU time" },
	{ "mutex_profile_fraction", NULL, "hearth's own profile is of CPU time" },
	{ "save_to_file", NULL, "ask for the profile at /debug/pprof/profile" },
	{ NULL, NULL, NULL },
};

static int take_pprof(struct reader *r, struct component *c)
{
	const struct tree *at = component_at(c, "endpoint");

	return at ? component_add_address(r, at, "pprof-address", &c->settings)
		  : component_add(&c->settings, c->node, "pprof-address", "127.0.0.1:1777");
}

static const struct component_type pprof = {
	.class = CLASS_EXTENSION,
	.names = { "pprof" },
	.keys = pprof_keys,
	.take = take_pprof,
};

/* --- those for whom hearth has nothing --- */

static const struct component_key zpages_keys[] = { { "endpoint", NULL, NULL },
						    { "expvar.enabled", NULL, NULL },
						    { NULL, NULL, NULL } };

static const struct component_type zpages = {
	.class = CLASS_EXTENSION,
	.names = { "zpages" },
	.keys = zpages_keys,
	.note = "has no effect: hearth's state is at /metrics and on the page",
};

const struct component_type *const extension_types[] = { &health, &pprof, &zpages, NULL };

/* --- telemetry --- */

static const struct component_key telemetry_keys[] = {
	{ "logs.level", NULL, NULL },
	{ "logs.encoding", NULL, NULL },
	{ "logs.development", NULL, "messages are for people" },
	{ "logs.output_paths", NULL, "messages go to standard error" },
	{ "logs.error_output_paths", NULL, "messages go to standard error" },
	{ "logs.sampling", NULL, "messages that repeat are counted" },
	{ "logs.initial_fields", NULL, "messages have no further fields" },
	{ "logs.processors", NULL, "messages go to standard error" },
	{ "metrics.level", NULL, NULL },
	{ "metrics.address", NULL, NULL },
	{ "metrics.readers", NULL, NULL },
	{ "metrics.views", NULL, "/metrics has all counters" },
	{ "traces", NULL, "hearth makes no traces of itself" },
	{ "resource", NULL, "hearth's own counters have no resource" },
	{ NULL, NULL, NULL },
};

static const char *text_at(const struct tree *node, const char *path)
{
	const struct tree *t = tree_at(node, path);

	return t && t->kind == TREE_TEXT ? t->text : NULL;
}

/* readers: [{pull: {exporter: {prometheus: {host, port}}}}] */
static int take_readers(struct reader *r, const struct tree *readers, struct tree *settings)
{
	int err = 0;

	for (size_t i = 0; i < readers->count && !err; i++) {
		const struct tree *item = &readers->items[i], *prometheus = tree_at(item, "pull.exporter.prometheus");
		const char *host = text_at(prometheus, "host"), *port = text_at(prometheus, "port");
		AUTO(buf_fini) struct buf text = BUF_EMPTY;

		if (!prometheus) {
			err = pipeline_note(
				r, item, "this reader has no effect: counters are told to Prometheus, which asks for them");
			continue;
		}
		if (tree_find(settings, "metrics-address"))
			return pipeline_note(r, item, "one address has /metrics; this one is not listened on");
		buf_printf(&text, "%s:%s", host ? host : "127.0.0.1", port ? port : "8888");
		err = text.failed ? -ENOMEM : component_add(settings, item, "metrics-address", buf_text(&text));
	}
	return err;
}

static int take_logs(struct reader *r, const struct tree *node, struct tree *settings)
{
	const char *level = text_at(node, "logs.level"), *encoding = text_at(node, "logs.encoding");
	int err = 0;

	if (level && !strcasecmp(level, "debug"))
		err = component_add(settings, tree_at(node, "logs.level"), "verbose", "true");
	else if (level && (!strcasecmp(level, "warn") || !strcasecmp(level, "error")))
		err = component_add(settings, tree_at(node, "logs.level"), "quiet", "true");
	else if (level && strcasecmp(level, "info") != 0)
		err = pipeline_refuse(r, tree_at(node, "logs.level"), "'level' is debug, info, warn or error");
	if (err || !encoding)
		return err;
	if (strcmp(encoding, "json") != 0 && strcmp(encoding, "console") != 0)
		return pipeline_refuse(r, tree_at(node, "logs.encoding"), "'encoding' is json or console");
	return component_add(settings, tree_at(node, "logs.encoding"), "log-format",
			     !strcmp(encoding, "json") ? "json" : "text");
}

/* There is one address for counters and health; another one is said, not listened on. */
static int take_address(struct reader *r, const struct tree *address, struct tree *settings)
{
	const struct tree *taken = tree_find(settings, "metrics-address");
	struct tree wanted = TREE_EMPTY;
	int err = component_add_address(r, address, "metrics-address", taken ? &wanted : settings);

	if (!err && taken && strcmp(tree_find(&wanted, "metrics-address")->text, taken->text) != 0)
		err = pipeline_note(r, address, "/metrics is at health_check's address; this one is not listened on");
	tree_fini(&wanted);
	return err;
}

int extensions_read_telemetry(struct reader *r, const struct tree *node, struct tree *settings)
{
	const struct tree *address = tree_at(node, "metrics.address"), *readers = tree_at(node, "metrics.readers");
	struct tree none = TREE_EMPTY;
	int err = component_read_keys(r, node, "telemetry", telemetry_keys, &none);

	tree_fini(&none);
	if (!err)
		err = take_logs(r, node, settings);
	if (!err && address)
		err = take_address(r, address, settings);
	return err || !readers ? err : take_readers(r, readers, settings);
}
