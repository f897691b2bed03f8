/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as they are decoded (struct otlp_other's root of OTLP_METRICS is a struct metric_request), and encoded. */
#ifndef HEARTH_PROTO_OTLP_METRICS_H
#define HEARTH_PROTO_OTLP_METRICS_H

#include "proto/profiles.h"

struct exemplar {
	struct key_values attributes;
	uint64_t time_unix_ns;
	double as_double;
	int64_t as_int;
	bool has_double, has_int;
	struct str span_id, trace_id;
};

/* All kinds of data points share one struct; each kind's table has the fields of its own. */
struct point {
	struct key_values attributes;
	uint64_t start_time_unix_ns, time_unix_ns, count, zero_count;
	double as_double, sum, min, max, zero_threshold;
	int64_t as_int;
	bool has_double, has_int, has_sum, has_min, has_max, has_positive, has_negative;
	uint32_t flags;
	int32_t scale;
	uint64_t *bucket_counts;
	double *bounds;
	struct exemplar *exemplars;
	uint32_t bucket_count, bound_count, exemplar_count;
	struct buckets {
		int32_t offset;
		uint64_t *counts;
		uint32_t count;
	} positive, negative;
	struct quantile {
		double quantile, value;
	} * quantiles;
	uint32_t quantile_count;
};

struct points {
	struct point *items;
	uint32_t count;
	uint32_t temporality;
	bool is_monotonic;
};

struct metric_data {
	struct str name, description, unit;
	struct points gauge, sum, histogram, exponential_histogram, summary;
	bool has_gauge, has_sum, has_histogram, has_exponential_histogram, has_summary;
	struct key_values metadata;
};

struct scope_metrics {
	bool has_scope;
	struct scope scope;
	struct metric_data *metrics;
	uint32_t metric_count;
	struct str schema_url;
};

struct resource_metrics {
	bool has_resource;
	struct resource resource;
	struct scope_metrics *scopes;
	uint32_t scope_count;
	struct str schema_url;
};

struct metric_request {
	struct resource_metrics *resources;
	uint32_t resource_count;
};

/* Appends @request as protobuf; keys and values stand in it themselves, not in a dictionary. 0 or -ENOMEM. */
int otlp_metrics_encode(const struct metric_request *request, struct buf *out);

#endif
