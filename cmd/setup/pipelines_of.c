/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporters and the heads of pipelines are shared sinks (sinks/stage/shared.c): a reference for each that feeds them, and
 * one of ours. The settings of components outlive their sinks, so they are freed last.
 */
#include "cmd/setup/pipelines_of.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/host/host_source.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/hide.h"
#include "cmd/options/overlay.h"
#include "cmd/pipeline/pipelines.h"
#include "cmd/setup/enrich_of.h"
#include "cmd/setup/host_of.h"
#include "cmd/setup/made_up.h"
#include "cmd/setup/sinks_of.h"
#include "cmd/setup/workloads_of.h"
#include "sinks/sinks.h"
#include "sinks/stage/stage.h"

enum { QUEUE_ITEMS = 16 };

/* A component with the settings that count for it, and, of an exporter, its sink. */
struct made {
	const struct component *component;
	struct config config;
	struct sink *sink; /* shared, a reference; or NULL */
	bool is_slow;
};

struct running {
	struct sink sink;
	struct sink_ops ops;
	const struct config *config;
	struct metrics *metrics;
	struct store **store_ret;
	struct buf *names, *error; /* until it is made */
	struct made *made;
	size_t made_count;
	struct sink **heads; /* of the pipelines, in their order: shared, a reference each */
	size_t head_count;
	struct sink *own;	  /* what the agent, or a receiver where there is no agent, feeds */
	struct sink *received;	  /* what a receiver beside an agent feeds: shared, a reference; NULL: there is none */
	struct made_up **sources; /* receivers with a thread */
	size_t source_count;
	struct host_source **hosts; /* receivers of metrics of the host */
	size_t host_count;
	struct profiles *host; /* as what it is told; NULL: not yet */
};

/* --- the sink --- */

static int running_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	return sink_consume(((struct running *)sink)->own, p, ack);
}

static int running_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	return sink_consume_other(((struct running *)sink)->own, signal, data, len, ack);
}

static int running_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct running *r = (struct running *)sink;
	int err;

	for (size_t i = 0; i < r->source_count; i++)
		made_up_stop(r->sources[i]);
	for (size_t i = 0; i < r->host_count; i++)
		host_source_stop(r->hosts[i]);
	err = sink_flush(r->own, deadline_ns);
	if (r->received && !err)
		err = sink_flush(r->received, deadline_ns);
	for (size_t i = 0; i < r->head_count; i++) { /* also those that only threads feed */
		int other = sink_flush(r->heads[i], deadline_ns);

		err = err ? err : other;
	}
	return err;
}

static void running_free(struct sink *sink)
{
	struct running *r = (struct running *)sink;

	for (size_t i = 0; i < r->source_count; i++)
		made_up_free(r->sources[i]);
	for (size_t i = 0; i < r->host_count; i++)
		host_source_free(r->hosts[i]);
	profiles_put(r->host);
	sink_free(r->own);
	sink_free(r->received);
	for (size_t i = 0; i < r->head_count; i++)
		sink_free(r->heads[i]);
	for (size_t i = 0; i < r->made_count; i++) {
		sink_free(r->made[i].sink);
		overlay_fini(r->made[i].component, &r->made[i].config);
	}
	free(r->hosts);
	free(r->sources);
	free(r->heads);
	free(r->made);
	free(r);
}

/* --- components --- */

static struct made *find_made(struct running *r, const struct component *c)
{
	for (size_t i = 0; i < r->made_count; i++)
		if (r->made[i].component == c)
			return &r->made[i];
	return NULL;
}

/* Gives @c its settings, once. 0 or -errno. */
static int settle(struct running *r, const struct component *c, struct made **ret)
{
	*ret = find_made(r, c);
	if (*ret)
		return 0;
	*ret = &r->made[r->made_count++];
	(*ret)->component = c;
	return overlay_init(c, r->config, &(*ret)->config, r->error);
}

static int make_exporter(struct running *r, const struct component *c, struct made **ret)
{
	struct sink *sink = NULL;
	int err = settle(r, c, ret);

	if (err || (*ret)->sink)
		return err;
	if (c->sink)
		err = sinks_make(&(*ret)->config, c->sink, r->metrics, &sink, r->store_ret, &(*ret)->is_slow, r->names,
				 r->error);
	else
		err = workloads_exporter(&(*ret)->config, r->metrics, &sink);
	if (!err && !c->sink)
		buf_printf(r->names, "%s%s", r->names->len ? ", " : "", c->name);
	return err ? err : stage_shared_new(sink, &(*ret)->sink);
}

/* Puts the stage that @c is in front of *@sink. */
static int make_stage(struct running *r, const struct component *c, struct sink **sink)
{
	struct sink *next = *sink;
	struct made *made;
	int err = settle(r, c, &made);

	if (err || c->stage == STAGE_NONE)
		return err;
	*sink = NULL;
	switch (c->stage) {
	case STAGE_KUBERNETES:
		return enrich_stage(&made->config, next, r->metrics, sink, r->error);
	case STAGE_EDIT:
		return stage_edit_new(&c->edits, next, r->metrics, sink);
	case STAGE_FILTER:
		return stage_filter_new(&c->filter, next, r->metrics, sink);
	case STAGE_LIMIT:
		return stage_limit_new(&c->limit, next, r->metrics, sink);
	case STAGE_DETECT:
		return stage_detect_new(&c->detect, (struct stage_kubernetes){ enrich_get, &made->config }, next, r->metrics,
					sink);
	case STAGE_NONE:
		break;
	}
	return -EINVAL;
}

/* --- pipelines --- */

/* One sink for all @count of @sinks, which it owns from the call on. */
static int join(struct running *r, struct sink **sinks, size_t count, bool is_slow, struct sink **ret)
{
	if (count == 1 && !is_slow) {
		*ret = sinks[0];
		return 0;
	}
	return sink_fanout_new(sinks, count, QUEUE_ITEMS, r->metrics, ret);
}

static int make_exporters(struct running *r, const struct pipeline *pl, struct sink **ret)
{
	AUTO_FREE struct sink **sinks = calloc(pl->exporter_count, sizeof(*sinks));
	bool is_slow = false;
	size_t count = 0;
	int err = sinks ? 0 : -ENOMEM;

	for (; count < pl->exporter_count && !err; count++) {
		struct made *made;

		err = make_exporter(r, pl->exporters[count], &made);
		if (err)
			break;
		sinks[count] = stage_share(made->sink);
		is_slow |= made->is_slow;
	}
	if (!err)
		return join(r, sinks, count, is_slow, ret);
	while (count)
		sink_free(sinks[--count]);
	return err;
}

static int make_stages(struct running *r, const struct pipeline *pl, struct sink **sink)
{
	int err = 0;

	for (size_t i = pl->processor_count; i > 0 && !err; i--)
		if (!pl->is_of_metrics || pl->processors[i - 1]->stage != STAGE_KUBERNETES)
			err = make_stage(r, pl->processors[i - 1], sink);
	return err;
}

/* Stages of metrics are each receiver's own, in front of the exporters (make_way). */
static int make_pipeline(struct running *r, const struct pipeline *pl)
{
	struct sink *sink = NULL;
	int err = make_exporters(r, pl, &sink);

	if (!err && !pl->is_of_metrics)
		err = make_stages(r, pl, &sink);
	if (err) {
		sink_free(sink);
		return err;
	}
	err = stage_shared_new(sink, &r->heads[r->head_count]);
	r->head_count += !err;
	return err;
}

/* --- receivers --- */

/* Who feeds a pipeline: a receiver with a thread, or all of a kind. */
struct feeder {
	const struct component *receiver; /* NULL: all of @kind */
	enum source_kind kind;
};

static bool is_fed_by(const struct pipeline *pl, struct feeder feeder)
{
	for (size_t i = 0; i < pl->receiver_count; i++)
		if (feeder.receiver ? pl->receivers[i] == feeder.receiver : pl->receivers[i]->source == feeder.kind)
			return true;
	return false;
}

/* The sink that @feeder feeds. *@ret stays NULL where no pipeline has it. */
static int make_feed(struct running *r, struct feeder feeder, struct sink **ret)
{
	AUTO_FREE struct sink **sinks = calloc(r->head_count + 1, sizeof(*sinks));
	size_t count = 0;

	if (!sinks)
		return -ENOMEM;
	for (size_t i = 0; i < r->head_count; i++)
		if (is_fed_by(pipelines_get(r->config->pipelines, i), feeder))
			sinks[count++] = stage_share(r->heads[i]);
	return count ? join(r, sinks, count, false, ret) : 0;
}

static int start_source(struct running *r, const struct component *c)
{
	struct sink *feed = NULL;
	int err = make_feed(r, (struct feeder){ .receiver = c }, &feed);

	if (err)
		return err;
	err = made_up_new(c->interval_ns, c->samples, feed, r->metrics, &r->sources[r->source_count]);
	r->source_count += !err;
	return err;
}

/* --- metrics of the host --- */

/* The way of @s through pipeline number @i. */
static int make_way(struct running *r, struct host_source *s, size_t i)
{
	struct sink *sink = NULL;
	int err = host_source_end(s, stage_share(r->heads[i]), &sink);

	if (!err)
		err = make_stages(r, pipelines_get(r->config->pipelines, i), &sink);
	if (!err)
		return host_source_add(s, sink);
	sink_free(sink);
	return err;
}

static int start_host(struct running *r, const struct component *c)
{
	const struct pipelines *p = r->config->pipelines;
	struct host_source *s;
	int err = r->host ? 0 : host_of(&r->host);

	if (!err)
		err = host_source_new(&c->host, r->host, r->metrics, &s);
	if (err)
		return err;
	r->hosts[r->host_count++] = s;
	for (size_t i = 0; i < pipelines_count(p) && !err; i++)
		if (is_fed_by(pipelines_get(p, i), (struct feeder){ .receiver = c }))
			err = make_way(r, s, i);
	return err ? err : host_source_start(s);
}

/* --- all --- */

/* Whether a pipeline before number @end has @c. */
static bool is_started(const struct pipelines *p, size_t end, const struct component *c)
{
	for (size_t i = 0; i < end; i++)
		if (is_fed_by(pipelines_get(p, i), (struct feeder){ .receiver = c }))
			return true;
	return false;
}

static int start_sources(struct running *r)
{
	const struct pipelines *p = r->config->pipelines;
	int err = 0;

	for (size_t i = 0; i < pipelines_count(p) && !err; i++) {
		const struct pipeline *pl = pipelines_get(p, i);

		for (size_t k = 0; k < pl->receiver_count && !err; k++) {
			if (is_started(p, i, pl->receivers[k]))
				continue;
			if (pl->receivers[k]->source == SOURCE_MADE_UP)
				err = start_source(r, pl->receivers[k]);
			else if (pl->receivers[k]->source == SOURCE_HOST)
				err = start_host(r, pl->receivers[k]);
		}
	}
	return err;
}

static int make_own(struct running *r)
{
	bool is_agents = pipelines_have_source(r->config->pipelines, SOURCE_AGENT);
	struct sink *received = NULL;
	int err = is_agents ? make_feed(r, (struct feeder){ .kind = SOURCE_AGENT }, &r->own) : 0;

	if (!err)
		err = make_feed(r, (struct feeder){ .kind = SOURCE_OTLP }, is_agents ? &received : &r->own);
	if (!err && received)
		err = stage_shared_new(received, &r->received);
	return err || r->own ? err : sink_null_new(&r->own);
}

static int make_all(struct running *r)
{
	const struct pipelines *p = r->config->pipelines;
	size_t components = 0, receivers = 0;
	int err = 0;

	for (size_t i = 0; i < pipelines_count(p); i++) {
		components += pipelines_get(p, i)->processor_count + pipelines_get(p, i)->exporter_count;
		receivers += pipelines_get(p, i)->receiver_count;
	}
	r->made = calloc(components + 1, sizeof(*r->made));
	r->heads = calloc(pipelines_count(p) + 1, sizeof(struct sink *));
	r->sources = calloc(receivers + 1, sizeof(struct made_up *));
	r->hosts = calloc(receivers + 1, sizeof(struct host_source *));
	if (!r->made || !r->heads || !r->sources || !r->hosts)
		return -ENOMEM;
	for (size_t i = 0; i < pipelines_count(p) && !err; i++)
		err = make_pipeline(r, pipelines_get(p, i));
	if (!err)
		err = make_own(r);
	return err ? err : start_sources(r);
}

int pipelines_of(const struct config *config, struct metrics *metrics, struct sink **ret, struct store **store_ret,
		 struct buf *names, struct buf *error)
{
	struct running *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	*r = (struct running){
		.config = config, .metrics = metrics, .store_ret = store_ret, .names = names, .error = error
	};
	err = make_all(r);
	if (err) {
		if (!error->len)
			buf_printf(error, "cannot start the pipelines: %s", strerror(-err));
		running_free(&r->sink);
		return err;
	}
	r->ops = (struct sink_ops){
		.name = r->own->ops->name,
		.durable = r->own->ops->durable,
		.consume = running_consume,
		.consume_other = running_other,
		.flush = running_flush,
		.free = running_free,
	};
	r->sink.ops = &r->ops;
	*ret = &r->sink;
	return 0;
}

struct sink *pipelines_received(struct sink *sink)
{
	const struct running *r = sink && sink->ops->free == running_free ? (struct running *)sink : NULL;

	return r && r->received ? stage_share(r->received) : NULL;
}

/* --- without making them --- */

void pipelines_name(const struct pipelines *p, struct buf *names)
{
	for (size_t i = 0; i < pipelines_count(p); i++)
		for (size_t k = 0; k < pipelines_get(p, i)->exporter_count; k++)
			buf_printf(names, "%s%s", names->len ? ", " : "", pipelines_get(p, i)->exporters[k]->name);
}

bool pipelines_use(const struct pipelines *p, bool (*is)(const char *spec))
{
	for (size_t i = 0; i < pipelines_count(p); i++)
		for (size_t k = 0; k < pipelines_get(p, i)->exporter_count; k++)
			if (pipelines_get(p, i)->exporters[k]->sink && is(pipelines_get(p, i)->exporters[k]->sink))
				return true;
	return false;
}

static void say_note(void *arg, const char *text)
{
	(void)arg;
	log_warn("%s", text);
}

static void say_lines(struct buf *text)
{
	char *rest = (char *)(uintptr_t)buf_text(text), *line;

	while ((line = strsep(&rest, "\n")))
		if (*line)
			log_info("%s", line);
}

void pipelines_say(const struct config *config)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	pipelines_notes(config->pipelines, say_note, NULL);
	if (config->print || config->store || config->collectors.count || config->sinks.count)
		log_warn("the file names pipelines: --print, --store, --collector, --sink and OTEL_EXPORTER_OTLP_... do not "
			 "count");
	pipelines_draw(config->pipelines, &text);
	say_lines(&text);
}
