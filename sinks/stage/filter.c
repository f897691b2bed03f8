/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps resources back: the processor filter. */
#include <errno.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "proto/resource_edit.h"
#include "sinks/stage/stage_sink.h"

struct filter_stage {
	struct stage stage;
	const struct stage_filter *filter;
	struct metric *filtered;
};

static bool passes(const struct stage_filter *f, const struct profiles *p, const struct resource_profiles *r)
{
	return (!f->has_include || stage_matches(&f->include, p, r)) &&
	       (!f->has_exclude || !stage_matches(&f->exclude, p, r));
}

/* Takes the resources that do not pass out of @to, which is not shared yet; the samples that went with them. */
static uint64_t take_out(const struct stage_filter *f, struct profiles *to)
{
	uint64_t gone = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < to->resource_count; i++) {
		if (passes(f, to, &to->resources[i]))
			to->resources[kept++] = to->resources[i];
		else
			gone += resource_events(&to->resources[i]);
	}
	to->resource_count = kept;
	to->sample_events -= gone < to->sample_events ? gone : to->sample_events;
	return gone;
}

static bool all_pass(const struct stage_filter *f, const struct profiles *p)
{
	for (uint32_t i = 0; i < p->resource_count; i++)
		if (!passes(f, p, &p->resources[i]))
			return false;
	return true;
}

static int filter_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct filter_stage *s = (struct filter_stage *)sink;
	struct profiles *to;
	uint64_t gone;
	int err;

	if (all_pass(s->filter, p))
		return sink_consume(s->stage.next, p, ack);
	to = profiles_derive(p);
	if (!to)
		return -ENOMEM;
	gone = take_out(s->filter, to);
	err = to->resource_count ? sink_consume(s->stage.next, to, ack) : stage_settle(&s->stage, ack);
	if (!err)
		metric_add(s->filtered, gone);
	profiles_put(to);
	return err;
}

static void filter_free(struct sink *sink)
{
	struct filter_stage *s = (struct filter_stage *)sink;

	sink_free(s->stage.next);
	free(s);
}

int stage_filter_new(const struct stage_filter *filter, struct sink *next, struct metrics *metrics, struct sink **ret)
{
	struct filter_stage *s = calloc(1, sizeof(*s));

	if (!s) {
		sink_free(next);
		return -ENOMEM;
	}
	stage_init(&s->stage, next, filter_consume, filter_free);
	s->filter = filter;
	s->filtered = metrics_counter(metrics, "hearth_filtered_samples_total", NULL,
				      "Samples that a filter of a pipeline kept back, as it should.");
	*ret = &s->stage.sink;
	return 0;
}
