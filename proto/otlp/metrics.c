/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of metrics. Nobody looks into them but to count data points, to print, to pass on, for exemplars, and to write
 * what the host tells of itself. Constant data. */
#include "proto/otlp/metrics.h"
#include "proto/otlp/signal_tables.h"

#define POINT(member)	 AT(struct point, member)
#define POINT_ATTRIBUTES KIND_MESSAGES, LIST(struct point, attributes.items, attributes.count), .sub = &otlp_key_value
#define POINT_EXEMPLARS	 KIND_MESSAGES, LIST(struct point, exemplars, exemplar_count), .sub = &exemplar
#define OPTIONAL_DOUBLE(member, has_member) \
	KIND_FIXED64, LIST(struct point, member, has_member), .has = true, .json = JSON_DOUBLE

static const struct otlp_field exemplar_fields[] = {
	FIELD(2, time_unix_nano, KIND_FIXED64, AT(struct exemplar, time_unix_ns)),
	FIELD(3, as_double, KIND_FIXED64, LIST(struct exemplar, as_double, has_double), .has = true, .json = JSON_DOUBLE),
	FIELD(4, span_id, KIND_BYTES, AT(struct exemplar, span_id), ID(8)),
	FIELD(5, trace_id, KIND_BYTES, AT(struct exemplar, trace_id), ID(16)),
	FIELD(6, as_int, KIND_FIXED64, LIST(struct exemplar, as_int, has_int), .has = true, .json = JSON_SIGNED),
	FIELD(7, filtered_attributes, KIND_MESSAGES, LIST(struct exemplar, attributes.items, attributes.count),
	      .sub = &otlp_key_value),
};
static const struct otlp_message exemplar = { .name = "Exemplar",
					      .has_strings = true,
					      FIELDS(exemplar_fields, struct exemplar) };

static const struct otlp_field number_fields[] = {
	FIELD(2, start_time_unix_nano, KIND_FIXED64, POINT(start_time_unix_ns)),
	FIELD(3, time_unix_nano, KIND_FIXED64, POINT(time_unix_ns)),
	FIELD(4, as_double, OPTIONAL_DOUBLE(as_double, has_double)),
	FIELD(5, exemplars, POINT_EXEMPLARS),
	FIELD(6, as_int, KIND_FIXED64, LIST(struct point, as_int, has_int), .has = true, .json = JSON_SIGNED),
	FIELD(7, attributes, POINT_ATTRIBUTES),
	FIELD(8, flags, KIND_UINT32, POINT(flags)),
};
static const struct otlp_message number = { .name = "NumberDataPoint",
					    .done = otlp_count_item,
					    FIELDS(number_fields, struct point) };

static const struct otlp_field histogram_point_fields[] = {
	FIELD(2, start_time_unix_nano, KIND_FIXED64, POINT(start_time_unix_ns)),
	FIELD(3, time_unix_nano, KIND_FIXED64, POINT(time_unix_ns)),
	FIELD(4, count, KIND_FIXED64, POINT(count)),
	FIELD(5, sum, OPTIONAL_DOUBLE(sum, has_sum)),
	FIELD(6, bucket_counts, KIND_FIXED64S, LIST(struct point, bucket_counts, bucket_count)),
	FIELD(7, explicit_bounds, KIND_FIXED64S, LIST(struct point, bounds, bound_count), .json = JSON_DOUBLE),
	FIELD(8, exemplars, POINT_EXEMPLARS),
	FIELD(9, attributes, POINT_ATTRIBUTES),
	FIELD(10, flags, KIND_UINT32, POINT(flags)),
	FIELD(11, min, OPTIONAL_DOUBLE(min, has_min)),
	FIELD(12, max, OPTIONAL_DOUBLE(max, has_max)),
};
static const struct otlp_message histogram_point = { .name = "HistogramDataPoint",
						     .done = otlp_count_item,
						     FIELDS(histogram_point_fields, struct point) };

static const struct otlp_field buckets_fields[] = {
	FIELD(1, offset, KIND_SINT32, AT(struct buckets, offset)),
	FIELD(2, bucket_counts, KIND_INT64S, LIST(struct buckets, counts, count), .json = JSON_UNSIGNED),
};
static const struct otlp_message buckets = { .name = "Buckets", FIELDS(buckets_fields, struct buckets) };

static const struct otlp_field exponential_point_fields[] = {
	FIELD(1, attributes, POINT_ATTRIBUTES),
	FIELD(2, start_time_unix_nano, KIND_FIXED64, POINT(start_time_unix_ns)),
	FIELD(3, time_unix_nano, KIND_FIXED64, POINT(time_unix_ns)),
	FIELD(4, count, KIND_FIXED64, POINT(count)),
	FIELD(5, sum, OPTIONAL_DOUBLE(sum, has_sum)),
	FIELD(6, scale, KIND_SINT32, POINT(scale)),
	FIELD(7, zero_count, KIND_FIXED64, POINT(zero_count)),
	FIELD(8, positive, KIND_MESSAGE, LIST(struct point, positive, has_positive), .has = true, .sub = &buckets),
	FIELD(9, negative, KIND_MESSAGE, LIST(struct point, negative, has_negative), .has = true, .sub = &buckets),
	FIELD(10, flags, KIND_UINT32, POINT(flags)),
	FIELD(11, exemplars, POINT_EXEMPLARS),
	FIELD(12, min, OPTIONAL_DOUBLE(min, has_min)),
	FIELD(13, max, OPTIONAL_DOUBLE(max, has_max)),
	FIELD(14, zero_threshold, KIND_FIXED64, POINT(zero_threshold), .json = JSON_DOUBLE),
};
static const struct otlp_message exponential_point = { .name = "ExponentialHistogramDataPoint",
						       .done = otlp_count_item,
						       FIELDS(exponential_point_fields, struct point) };

static const struct otlp_field quantile_fields[] = {
	FIELD(1, quantile, KIND_FIXED64, AT(struct quantile, quantile), .json = JSON_DOUBLE),
	FIELD(2, value, KIND_FIXED64, AT(struct quantile, value), .json = JSON_DOUBLE),
};
static const struct otlp_message quantile = { .name = "ValueAtQuantile", FIELDS(quantile_fields, struct quantile) };

static const struct otlp_field summary_point_fields[] = {
	FIELD(2, start_time_unix_nano, KIND_FIXED64, POINT(start_time_unix_ns)),
	FIELD(3, time_unix_nano, KIND_FIXED64, POINT(time_unix_ns)),
	FIELD(4, count, KIND_FIXED64, POINT(count)),
	FIELD(5, sum, KIND_FIXED64, POINT(sum), .json = JSON_DOUBLE),
	FIELD(6, quantile_values, KIND_MESSAGES, LIST(struct point, quantiles, quantile_count), .sub = &quantile),
	FIELD(7, attributes, POINT_ATTRIBUTES),
	FIELD(8, flags, KIND_UINT32, POINT(flags)),
};
static const struct otlp_message summary_point = { .name = "SummaryDataPoint",
						   .done = otlp_count_item,
						   FIELDS(summary_point_fields, struct point) };

/* --- the kinds of metrics --- */
#define TEMPORALITY \
	FIELD(2, aggregation_temporality, KIND_UINT32, AT(struct points, temporality), .names = otlp_temporalities)
#define DATA_POINTS(point_message) \
	FIELD(1, data_points, KIND_MESSAGES, LIST(struct points, items, count), .sub = &(point_message))

static const struct otlp_field gauge_fields[] = { DATA_POINTS(number) };
static const struct otlp_message gauge = { .name = "Gauge", FIELDS(gauge_fields, struct points) };

static const struct otlp_field sum_fields[] = {
	DATA_POINTS(number),
	TEMPORALITY,
	FIELD(3, is_monotonic, KIND_BOOL, AT(struct points, is_monotonic)),
};
static const struct otlp_message sum = { .name = "Sum", FIELDS(sum_fields, struct points) };

static const struct otlp_field histogram_fields[] = { DATA_POINTS(histogram_point), TEMPORALITY };
static const struct otlp_message histogram = { .name = "Histogram", FIELDS(histogram_fields, struct points) };

static const struct otlp_field exponential_fields[] = { DATA_POINTS(exponential_point), TEMPORALITY };
static const struct otlp_message exponential = { .name = "ExponentialHistogram", FIELDS(exponential_fields, struct points) };

static const struct otlp_field summary_fields[] = { DATA_POINTS(summary_point) };
static const struct otlp_message summary = { .name = "Summary", FIELDS(summary_fields, struct points) };

#define ONE_OF(member) KIND_MESSAGE, LIST(struct metric_data, member, has_##member), .has = true

static const struct otlp_field metric_fields[] = {
	FIELD(1, name, KIND_STRING, AT(struct metric_data, name)),
	FIELD(2, description, KIND_STRING, AT(struct metric_data, description)),
	FIELD(3, unit, KIND_STRING, AT(struct metric_data, unit)),
	FIELD(5, gauge, ONE_OF(gauge), .sub = &gauge),
	FIELD(7, sum, ONE_OF(sum), .sub = &sum),
	FIELD(9, histogram, ONE_OF(histogram), .sub = &histogram),
	FIELD(10, exponential_histogram, ONE_OF(exponential_histogram), .sub = &exponential),
	FIELD(11, summary, ONE_OF(summary), .sub = &summary),
	FIELD(12, metadata, KIND_MESSAGES, LIST(struct metric_data, metadata.items, metadata.count), .sub = &otlp_key_value),
};
static const struct otlp_message metric = { .name = "Metric",
					    .has_strings = true,
					    FIELDS(metric_fields, struct metric_data) };

static const struct otlp_field scope_metrics_fields[] = {
	FIELD(1, scope, KIND_MESSAGE, LIST(struct scope_metrics, scope, has_scope), .has = true, .sub = &otlp_scope),
	FIELD(2, metrics, KIND_MESSAGES, LIST(struct scope_metrics, metrics, metric_count), .sub = &metric),
	FIELD(3, schema_url, KIND_STRING, AT(struct scope_metrics, schema_url)),
};
static const struct otlp_message scope_metrics = { .name = "ScopeMetrics",
						   .has_strings = true,
						   FIELDS(scope_metrics_fields, struct scope_metrics) };

static const struct otlp_field resource_metrics_fields[] = {
	FIELD(1, resource, KIND_MESSAGE, LIST(struct resource_metrics, resource, has_resource), .has = true,
	      .sub = &otlp_resource),
	FIELD(2, scope_metrics, KIND_MESSAGES, LIST(struct resource_metrics, scopes, scope_count), .sub = &scope_metrics),
	FIELD(3, schema_url, KIND_STRING, AT(struct resource_metrics, schema_url)),
};
static const struct otlp_message resource_metrics = { .name = "ResourceMetrics",
						      .has_strings = true,
						      FIELDS(resource_metrics_fields, struct resource_metrics) };

static const struct otlp_field metrics_fields[] = {
	FIELD(1, resource_metrics, KIND_MESSAGES, LIST(struct metric_request, resources, resource_count),
	      .sub = &resource_metrics),
};
const struct otlp_message otlp_metrics = { .name = "MetricsData", FIELDS(metrics_fields, struct metric_request) };

int otlp_metrics_encode(const struct metric_request *request, struct buf *out)
{
	return otlp_encode_message(&otlp_metrics, request, out);
}
