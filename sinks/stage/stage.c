/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of stages that are the same in all, and the tests of resources. */
#include "sinks/stage/stage.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/text/pattern.h"
#include "sinks/stage/stage_sink.h"
#include "sinks/value_text.h"

static int pass_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	return sink_consume_other(((struct stage *)sink)->next, signal, data, len, ack);
}

static int pass_flush(struct sink *sink, uint64_t deadline_ns)
{
	return sink_flush(((struct stage *)sink)->next, deadline_ns);
}

void stage_init(struct stage *s, struct sink *next, int (*consume)(struct sink *sink, struct profiles *p, struct ack *ack),
		void (*free_stage)(struct sink *sink))
{
	s->ops = (struct sink_ops){
		.name = next->ops->name,
		.durable = next->ops->durable,
		.consume = consume,
		.consume_other = pass_other,
		.flush = pass_flush,
		.free = free_stage,
	};
	s->sink.ops = &s->ops;
	s->next = next;
}

struct metric *stage_unchanged(struct metrics *metrics)
{
	return metrics_counter(metrics, "hearth_stage_unchanged_samples_total", NULL,
			       "Samples that went on without a stage's changes, for want of memory.");
}

int stage_settle(const struct stage *s, struct ack *ack)
{
	if (ack && s->next->ops->durable)
		ack->done(ack, 0);
	return 0;
}

/* --- which resources --- */

/* Stages of several pipelines, in several threads, use one component's patterns. */
static pthread_mutex_t pattern_lock = PTHREAD_MUTEX_INITIALIZER;

bool stage_pattern_matches(struct pattern *pattern, struct str text)
{
	bool yes;

	pthread_mutex_lock(&pattern_lock);
	yes = pattern_matches(pattern, text.data, text.len);
	pthread_mutex_unlock(&pattern_lock);
	return yes;
}

static bool matches(const struct stage_test *test, const struct profiles *p, const struct resource_profiles *r)
{
	const struct any_value *value = profiles_find_key(p, &r->resource.attributes, test->key);
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct str s;

	if (!value || !test->value)
		return value;
	if (!profiles_value_string(p, value, &s)) {
		value_text(p, value, &text);
		s = (struct str){ buf_text(&text), (uint32_t)text.len };
	}
	return test->pattern ? stage_pattern_matches(test->pattern, s) : str_is(s, test->value);
}

bool stage_matches(const struct stage_match *match, const struct profiles *p, const struct resource_profiles *r)
{
	for (size_t i = 0; i < match->count; i++)
		if (!matches(&match->tests[i], p, r))
			return false;
	return true;
}

static void match_fini(struct stage_match *match)
{
	for (size_t i = 0; i < match->count; i++)
		pattern_free(match->tests[i].pattern);
	free(match->tests);
	*match = (struct stage_match){ 0 };
}

void stage_edits_fini(struct stage_edits *edits)
{
	for (size_t i = 0; i < edits->count; i++)
		pattern_free(edits->items[i].pattern);
	free(edits->items);
	match_fini(&edits->include);
	match_fini(&edits->exclude);
	*edits = (struct stage_edits){ 0 };
}

void stage_filter_fini(struct stage_filter *filter)
{
	match_fini(&filter->include);
	match_fini(&filter->exclude);
}
