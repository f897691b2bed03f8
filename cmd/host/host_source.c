/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/host/host_source.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "base/vec.h"
#include "cmd/host/scrapers.h"
#include "proto/profiles_builder.h"
#include "proto/sink.h"

enum { LOG_S = 60 };

struct host_source {
	const struct host_config *config;
	struct profiles *resource;
	struct sink **heads; /* of its ways */
	size_t count, cap;
	struct host_reading *reading; /* on its way; NULL: none. The thread's */
	uint64_t boot_unix_ns;	      /* as it was read first: it moves when the clock is set; 0: not yet */
	struct {
		struct metric *points, *dropped, *missed, *unread[HOST_SCRAPERS], *bad_lines[HOST_SCRAPERS],
			*left_out[HOST_SCRAPERS];
	} counters;
	struct log_limit unread_limit, dropped_limit;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ends;
	bool is_running, is_ending;
};

/* --- the resource --- */

static void free_builder(struct builder **b)
{
	builder_free(*b);
}

int host_resource_new(const char *const *attributes, size_t count, struct profiles **ret)
{
	AUTO(free_builder) struct builder *b = builder_new();
	struct resource_profiles *r;
	struct key_value *items;
	int err = b ? builder_freeze(b, 0, 0, ret) : -ENOMEM;

	if (err)
		return err;
	r = profiles_alloc(*ret, sizeof(*r));
	items = profiles_alloc(*ret, (count + 1) * sizeof(*items));
	for (size_t i = 0; r && items && i < 2 * count && !err; i++) {
		const size_t len = strlen(attributes[i]);
		char *text = profiles_alloc(*ret, len + 1);
		const struct str copy = { text, (uint32_t)len };

		if (!text)
			err = -ENOMEM;
		else if (i % 2)
			items[i / 2].value = (struct any_value){ .kind = VALUE_STRING, .string = copy };
		else
			items[i / 2].key = copy;
		if (text)
			memcpy(text, attributes[i], len + 1);
	}
	if (!r || !items || err) {
		profiles_put(*ret);
		*ret = NULL;
		return -ENOMEM;
	}
	*r = (struct resource_profiles){ .has_resource = true,
					 .resource.attributes = { items, (uint32_t)count },
					 .schema_url = STR("") };
	(*ret)->resources = r;
	(*ret)->resource_count = 1;
	return 0;
}

/* --- the end of a way --- */

struct end {
	struct sink sink;
	struct host_source *source;
	struct sink *next;
};

static int end_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct end *e = (struct end *)sink;
	const struct host_reading *r = e->source->reading;
	AUTO(buf_fini) struct buf message = BUF_EMPTY;
	int err;

	(void)ack;
	if (!r || !p->resource_count)
		return 0;
	err = host_reading_encode(r, &p->resources[0].resource.attributes, &message);
	if (!err)
		err = sink_consume_other(e->next, OTLP_METRICS, message.data, message.len, NULL);
	if (!err)
		metric_add(e->source->counters.points, r->points);
	return err;
}

static int end_flush(struct sink *sink, uint64_t deadline_ns)
{
	return sink_flush(((struct end *)sink)->next, deadline_ns);
}

static void end_free(struct sink *sink)
{
	sink_free(((struct end *)sink)->next);
	free(sink);
}

static const struct sink_ops end_ops = {
	.name = "hostmetrics",
	.consume = end_consume,
	.flush = end_flush,
	.free = end_free,
};

int host_source_end(struct host_source *s, struct sink *next, struct sink **ret)
{
	struct end *e = calloc(1, sizeof(*e));

	if (!e) {
		sink_free(next);
		return -ENOMEM;
	}
	*e = (struct end){ .sink.ops = &end_ops, .source = s, .next = next };
	*ret = &e->sink;
	return 0;
}

/* --- a reading --- */

static void scrape(struct host_source *s, struct host_reading *r, enum host_scraper scraper)
{
	const char *file = "";
	int err = host_scrape(r, scraper, &file);

	metric_add(s->counters.bad_lines[scraper], r->bad_lines);
	metric_add(s->counters.left_out[scraper], r->left_out);
	r->bad_lines = r->left_out = 0;
	if (!err)
		return;
	metric_add(s->counters.unread[scraper], 1);
	log_limited(&s->unread_limit, LOG_S * NSEC_PER_SEC, LOG_WARN,
		    "hostmetrics: the scraper '%s' tells nothing: cannot read %s%s: %s", host_scraper_names[scraper],
		    s->config->root, file, strerror(-err));
}

static void hand_on(struct host_source *s, const struct host_reading *r)
{
	for (size_t i = 0; i < s->count; i++) {
		int err = sink_consume(s->heads[i], s->resource, NULL);

		if (!err)
			continue;
		metric_add(s->counters.dropped, r->points);
		log_limited(&s->dropped_limit, LOG_S * NSEC_PER_SEC, LOG_WARN,
			    "hostmetrics: %" PRIu64 " data points are dropped: %s", r->points,
			    err == -EOPNOTSUPP ? "the exporter knows no address for metrics" : strerror(-err));
	}
}

void host_source_read(struct host_source *s)
{
	struct host_reading r;
	int err = host_reading_init(&r, s->config);

	if (!s->boot_unix_ns)
		s->boot_unix_ns = host_read_boot(s->config);
	r.start_unix_ns = s->boot_unix_ns;
	r.now_unix_ns = clock_unix_ns();
	for (size_t i = 0; i < HOST_SCRAPERS && !err; i++) {
		if (s->config->has[i])
			scrape(s, &r, (enum host_scraper)i);
		err = r.failed ? -ENOMEM : 0;
	}
	if (err) {
		metric_add(s->counters.dropped, r.points + 1);
		log_limited(&s->dropped_limit, LOG_S * NSEC_PER_SEC, LOG_WARN, "hostmetrics: a reading is dropped: %s",
			    strerror(-err));
	} else if (r.points) {
		s->reading = &r;
		hand_on(s, &r);
		s->reading = NULL;
	}
	host_reading_fini(&r);
}

/* --- the thread --- */

/* The next time after now that is a whole number of intervals behind @last_ns; those between are missed. */
static uint64_t next_time(struct host_source *s, uint64_t last_ns)
{
	const uint64_t now = clock_mono_ns(), interval = s->config->interval_ns;
	const uint64_t missed = now > last_ns + interval ? (now - last_ns) / interval - 1 : 0;

	metric_add(s->counters.missed, missed);
	return last_ns + (missed + 1) * interval;
}

static void *source_main(void *arg)
{
	struct host_source *s = arg;
	uint64_t next_ns = clock_mono_ns() + s->config->delay_ns;

	pthread_mutex_lock(&s->lock);
	while (!s->is_ending) {
		if (!thread_cond_wait(&s->ends, &s->lock, next_ns) || s->is_ending)
			continue;
		pthread_mutex_unlock(&s->lock);
		host_source_read(s);
		next_ns = next_time(s, next_ns);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* --- beginning and end --- */

static struct metric *by_scraper(struct metrics *metrics, const char *name, size_t scraper, const char *help)
{
	AUTO(buf_fini) struct buf label = BUF_EMPTY;

	metrics_label(&label, "scraper", host_scraper_names[scraper], strlen(host_scraper_names[scraper]));
	return metrics_counter(metrics, name, buf_text(&label), help);
}

static void register_counters(struct host_source *s, struct metrics *m)
{
	s->counters.points = metrics_counter(m, "hearth_host_metrics_points_total", NULL,
					     "Data points of the host's metrics that exporters took, by each pipeline.");
	s->counters.dropped = metrics_counter(
		m, "hearth_host_metrics_dropped_points_total", NULL,
		"Data points of the host's metrics that a pipeline did not take: a stage refused them, an "
		"exporter has no address for them, or there was no memory.");
	s->counters.missed = metrics_counter(m, "hearth_host_metrics_missed_total", NULL,
					     "Readings of the host that were left out, as the one before took too long.");
	for (size_t i = 0; i < HOST_SCRAPERS; i++) {
		if (!s->config->has[i])
			continue;
		s->counters.unread[i] = by_scraper(
			m, "hearth_host_metrics_unread_total", i,
			"Readings in which a file of a scraper could not be read, or made no sense.");
		s->counters.bad_lines[i] = by_scraper(m, "hearth_host_metrics_bad_lines_total", i,
						      "Lines of a scraper's files that made no sense and tell nothing.");
		s->counters.left_out[i] = by_scraper(
			m, "hearth_host_metrics_left_out_total", i,
			"Devices that tell nothing: beyond the bound, or a file system that cannot be asked.");
	}
}

int host_source_new(const struct host_config *config, struct profiles *resource, struct metrics *metrics,
		    struct host_source **ret)
{
	struct host_source *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->config = config;
	s->resource = profiles_get(resource);
	register_counters(s, metrics);
	pthread_mutex_init(&s->lock, NULL);
	err = thread_cond_init(&s->ends);
	if (err)
		host_source_free(s);
	else
		*ret = s;
	return err;
}

int host_source_add(struct host_source *s, struct sink *head)
{
	if (vec_reach(&s->heads, &s->cap, s->count)) {
		sink_free(head);
		return -ENOMEM;
	}
	s->heads[s->count++] = head;
	return 0;
}

int host_source_start(struct host_source *s)
{
	int err = thread_start(&s->thread, "hostmetrics", source_main, s);

	s->is_running = !err;
	return err;
}

void host_source_stop(struct host_source *s)
{
	if (!s->is_running)
		return;
	pthread_mutex_lock(&s->lock);
	s->is_ending = true;
	pthread_cond_signal(&s->ends);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->is_running = false;
}

void host_source_free(struct host_source *s)
{
	if (!s)
		return;
	host_source_stop(s);
	for (size_t i = 0; i < s->count; i++)
		sink_free(s->heads[i]);
	free(s->heads);
	profiles_put(s->resource);
	pthread_cond_destroy(&s->ends);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
