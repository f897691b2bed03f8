/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/host/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "base/vec.h"
#include "proto/arena.h"

enum { CUMULATIVE = 2 }; /* OTLP's AggregationTemporality */

/* The version of the conventions that the names are of. */
#define SCHEMA "https://opentelemetry.io/schemas/1.9.0"

int host_reading_init(struct host_reading *r, const struct host_config *config)
{
	*r = (struct host_reading){ .config = config, .arena = arena_new() };
	return r->arena ? 0 : -ENOMEM;
}

static struct points *points_of(struct metric_data *data, enum host_metric metric)
{
	return host_metric_types[metric].is_gauge ? &data->gauge : &data->sum;
}

void host_reading_fini(struct host_reading *r)
{
	for (size_t i = 0; i < HOST_METRICS; i++)
		free(points_of(&r->data[i], (enum host_metric)i)->items);
	arena_free(r->arena);
	*r = (struct host_reading){ 0 };
}

static struct key_value *copy_labels(struct host_reading *r, const struct host_label *labels, uint32_t count)
{
	struct key_value *items = arena_alloc(r->arena, count * sizeof(*items));

	for (uint32_t i = 0; items && i < count; i++)
		items[i] = (struct key_value){ .key = str_z(labels[i].key),
					       .value = { .kind = VALUE_STRING, .string = labels[i].value } };
	return items;
}

/* A new point, without its value. NULL: it is not wanted, or there is no memory. */
static struct point *add_point(struct host_reading *r, enum host_metric metric, const struct host_label *labels,
			       uint32_t count)
{
	struct points *points = points_of(&r->data[metric], metric);
	struct key_value *items = NULL;
	struct point *p;

	if (r->config->is_off[metric])
		return NULL;
	if (count)
		items = copy_labels(r, labels, count);
	if ((count && !items) || vec_reach(&points->items, &r->caps[metric], points->count)) {
		r->failed = true;
		return NULL;
	}
	p = &points->items[points->count++];
	*p = (struct point){ .attributes = { items, count },
			     .start_time_unix_ns = r->start_unix_ns,
			     .time_unix_ns = r->now_unix_ns };
	r->points++;
	return p;
}

void host_reading_int(struct host_reading *r, enum host_metric metric, const struct host_label *labels, uint32_t count,
		      uint64_t value)
{
	struct point *p;

	if (value > INT64_MAX && !r->config->is_off[metric]) {
		r->bad_lines++;
		return;
	}
	p = add_point(r, metric, labels, count);
	if (!p)
		return;
	p->has_int = true;
	p->as_int = (int64_t)value;
}

void host_reading_real(struct host_reading *r, enum host_metric metric, const struct host_label *labels, uint32_t count,
		       double value)
{
	struct point *p = add_point(r, metric, labels, count);

	if (!p)
		return;
	p->has_double = true;
	p->as_double = value;
}

bool host_reading_keep(struct host_reading *r, struct str text, struct str *ret)
{
	char *copy;

	if (!text.len || !utf8_is_valid(text.data, text.len)) {
		r->bad_lines++;
		return false;
	}
	copy = arena_alloc(r->arena, text.len);
	if (!copy) {
		r->failed = true;
		return false;
	}
	memcpy(copy, text.data, text.len);
	*ret = (struct str){ copy, text.len };
	return true;
}

/* --- encoding --- */

static void describe(const struct host_metric_type *type, struct metric_data *data)
{
	data->name = str_z(type->name);
	data->unit = str_z(type->unit);
	data->description = str_z(type->help);
	data->has_gauge = type->is_gauge;
	data->has_sum = !type->is_gauge;
	data->sum.temporality = CUMULATIVE;
	data->sum.is_monotonic = type->is_monotonic;
}

int host_reading_encode(const struct host_reading *r, const struct key_values *attributes, struct buf *out)
{
	struct metric_data told[HOST_METRICS];
	struct scope_metrics scope = { .has_scope = true,
				       .scope = { .name = STR("hearth.hostmetrics"), .version = str_z(HEARTH_VERSION) },
				       .metrics = told,
				       .schema_url = STR("") };
	struct resource_metrics resource = { .has_resource = true,
					     .resource.attributes = *attributes,
					     .scopes = &scope,
					     .scope_count = 1,
					     .schema_url = STR(SCHEMA) };
	const struct metric_request request = { .resources = &resource, .resource_count = 1 };

	for (size_t i = 0; i < HOST_METRICS; i++) {
		const enum host_metric metric = (enum host_metric)i;
		struct metric_data *data = &told[scope.metric_count];

		*data = r->data[i];
		if (!points_of(data, metric)->count)
			continue;
		describe(&host_metric_types[i], data);
		scope.metric_count++;
	}
	return otlp_metrics_encode(&request, out);
}
