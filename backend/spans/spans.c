/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of spans, and a table from traces to them: each slot begins a list, linked by places in the ring, the newest first.
 * A place that is taken anew is taken off its list.
 */
#include "backend/spans/spans.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/text/utf8.h"
#include "proto/otlp/signals.h"

struct place {
	struct kept_span span;
	uint32_t next; /* 1 + the place of the next in the list; 0: none */
};

enum { LEAST_PLACES = 64 };

struct spans {
	pthread_mutex_t lock;
	struct place *ring;
	uint32_t *heads; /* 1 + place; 0: none */
	uint32_t count, at, slots;
	struct metric *kept, *replaced;
};

int spans_new(size_t bytes, struct metrics *metrics, struct spans **ret)
{
	struct spans *s = calloc(1, sizeof(*s));
	size_t places = bytes / (sizeof(struct place) + 2 * sizeof(uint32_t));

	if (!s)
		return -ENOMEM;
	s->count = places < LEAST_PLACES ? LEAST_PLACES : places > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uint32_t)places;
	for (s->slots = LEAST_PLACES; s->slots < s->count; s->slots *= 2)
		;
	s->ring = calloc(s->count, sizeof(*s->ring));
	s->heads = calloc(s->slots, sizeof(*s->heads));
	if (!s->ring || !s->heads || pthread_mutex_init(&s->lock, NULL)) {
		free(s->ring);
		free(s->heads);
		free(s);
		return -ENOMEM;
	}
	s->kept = metrics_counter(metrics, "hearth_spans_kept_total", NULL,
				  "Spans that came in and were kept for views of traces.");
	s->replaced = metrics_counter(metrics, "hearth_spans_replaced_total", NULL,
				      "Kept spans that made place for newer ones.");
	*ret = s;
	return 0;
}

void spans_free(struct spans *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	free(s->ring);
	free(s->heads);
	free(s);
}

/* Ids of traces are random, as a rule. */
static uint32_t *head_of(struct spans *s, const uint8_t trace[static 16])
{
	uint64_t words[2];

	memcpy(words, trace, sizeof(words));
	return &s->heads[((words[0] ^ words[1]) * 0x9e3779b97f4a7c15ull >> 32) & (s->slots - 1)];
}

/* Takes the place @at off its list. */
static void unlink_place(struct spans *s, uint32_t at)
{
	uint32_t *link = head_of(s, s->ring[at].span.trace);

	while (*link && *link != at + 1)
		link = &s->ring[*link - 1].next;
	if (*link)
		*link = s->ring[at].next;
}

static void copy_text(char *to, size_t room, struct str text)
{
	size_t len = text.len < room ? text.len : utf8_cut(text.data, text.len, room - 1);

	memcpy(to, text.data, len);
	to[len] = '\0';
}

static void keep_one(struct spans *s, const struct span *span, struct str service)
{
	struct place *place = &s->ring[s->at];
	uint32_t *head;

	if (span->trace_id.len != sizeof(place->span.trace) || span->span_id.len != sizeof(place->span.span))
		return;
	if (place->span.end_ns || place->span.start_ns) {
		unlink_place(s, s->at);
		metric_add(s->replaced, 1);
	}
	place->span = (struct kept_span){ .start_ns = span->start_time_unix_ns,
					  .end_ns = span->end_time_unix_ns ? span->end_time_unix_ns : 1,
					  .kind = (uint8_t)span->kind,
					  .status = (uint8_t)(span->has_status ? span->status.code : 0) };
	memcpy(place->span.trace, span->trace_id.data, sizeof(place->span.trace));
	memcpy(place->span.span, span->span_id.data, sizeof(place->span.span));
	if (span->parent_span_id.len == sizeof(place->span.parent))
		memcpy(place->span.parent, span->parent_span_id.data, sizeof(place->span.parent));
	copy_text(place->span.name, sizeof(place->span.name), span->name);
	copy_text(place->span.service, sizeof(place->span.service), service);
	head = head_of(s, place->span.trace);
	place->next = *head;
	*head = s->at + 1;
	s->at = (s->at + 1) % s->count;
	metric_add(s->kept, 1);
}

static struct str service_of(const struct otlp_other *traces, const struct resource *resource)
{
	return profiles_value_text(traces->memory, profiles_find_key(traces->memory, &resource->attributes, "service.name"));
}

void spans_keep(struct spans *s, const struct otlp_other *traces)
{
	const struct span_request *request = traces->root;

	pthread_mutex_lock(&s->lock);
	for (uint32_t r = 0; r < request->resource_count; r++) {
		const struct resource_spans *resource = &request->resources[r];
		struct str service = service_of(traces, &resource->resource);

		for (uint32_t i = 0; i < resource->scope_count; i++)
			for (uint32_t k = 0; k < resource->scopes[i].span_count; k++)
				keep_one(s, &resource->scopes[i].spans[k], service);
	}
	pthread_mutex_unlock(&s->lock);
}

int spans_of_trace(struct spans *s, const uint8_t trace[static 16], int (*fn)(void *arg, const struct kept_span *span),
		   void *arg)
{
	int err = 0;

	pthread_mutex_lock(&s->lock);
	for (uint32_t at = *head_of(s, trace); at && !err; at = s->ring[at - 1].next)
		if (!memcmp(s->ring[at - 1].span.trace, trace, sizeof(s->ring[at - 1].span.trace)))
			err = fn(arg, &s->ring[at - 1].span);
	pthread_mutex_unlock(&s->lock);
	return err;
}
