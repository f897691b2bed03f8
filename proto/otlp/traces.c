/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of traces. Constant data. */
#include "proto/otlp/signal_tables.h"
#include "proto/otlp/signals.h"

static const char *const kinds[] = { "SPAN_KIND_UNSPECIFIED",
				     "SPAN_KIND_INTERNAL",
				     "SPAN_KIND_SERVER",
				     "SPAN_KIND_CLIENT",
				     "SPAN_KIND_PRODUCER",
				     "SPAN_KIND_CONSUMER",
				     NULL };
static const char *const codes[] = { "STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR", NULL };

static const struct otlp_field event_fields[] = {
	FIELD(1, time_unix_nano, KIND_FIXED64, AT(struct span_event, time_unix_ns)),
	FIELD(2, name, KIND_STRING, AT(struct span_event, name)),
	FIELD(3, attributes, KIND_MESSAGES, LIST(struct span_event, attributes.items, attributes.count),
	      .sub = &otlp_key_value),
	FIELD(4, dropped_attributes_count, KIND_UINT32, AT(struct span_event, dropped_attributes_count)),
};
static const struct otlp_message event = { .name = "Event", .has_strings = true, FIELDS(event_fields, struct span_event) };

static const struct otlp_field link_fields[] = {
	FIELD(1, trace_id, KIND_BYTES, AT(struct span_link, trace_id), ID(16)),
	FIELD(2, span_id, KIND_BYTES, AT(struct span_link, span_id), ID(8)),
	FIELD(3, trace_state, KIND_STRING, AT(struct span_link, trace_state)),
	FIELD(4, attributes, KIND_MESSAGES, LIST(struct span_link, attributes.items, attributes.count),
	      .sub = &otlp_key_value),
	FIELD(5, dropped_attributes_count, KIND_UINT32, AT(struct span_link, dropped_attributes_count)),
	FIELD(6, flags, KIND_FIXED32, AT(struct span_link, flags)),
};
static const struct otlp_message span_link = { .name = "Link", .has_strings = true, FIELDS(link_fields, struct span_link) };

static const struct otlp_field status_fields[] = {
	FIELD(2, message, KIND_STRING, AT(struct span_status, message)),
	FIELD(3, code, KIND_UINT32, AT(struct span_status, code), .names = codes),
};
static const struct otlp_message status = { .name = "Status",
					    .has_strings = true,
					    FIELDS(status_fields, struct span_status) };

static const struct otlp_field span_fields[] = {
	FIELD(1, trace_id, KIND_BYTES, AT(struct span, trace_id), ID(16)),
	FIELD(2, span_id, KIND_BYTES, AT(struct span, span_id), ID(8)),
	FIELD(3, trace_state, KIND_STRING, AT(struct span, trace_state)),
	FIELD(4, parent_span_id, KIND_BYTES, AT(struct span, parent_span_id), ID(8)),
	FIELD(5, name, KIND_STRING, AT(struct span, name)),
	FIELD(6, kind, KIND_UINT32, AT(struct span, kind), .names = kinds),
	FIELD(7, start_time_unix_nano, KIND_FIXED64, AT(struct span, start_time_unix_ns)),
	FIELD(8, end_time_unix_nano, KIND_FIXED64, AT(struct span, end_time_unix_ns)),
	FIELD(9, attributes, KIND_MESSAGES, LIST(struct span, attributes.items, attributes.count), .sub = &otlp_key_value),
	FIELD(10, dropped_attributes_count, KIND_UINT32, AT(struct span, dropped_attributes_count)),
	FIELD(11, events, KIND_MESSAGES, LIST(struct span, events, event_count), .sub = &event),
	FIELD(12, dropped_events_count, KIND_UINT32, AT(struct span, dropped_events_count)),
	FIELD(13, links, KIND_MESSAGES, LIST(struct span, links, link_count), .sub = &span_link),
	FIELD(14, dropped_links_count, KIND_UINT32, AT(struct span, dropped_links_count)),
	FIELD(15, status, KIND_MESSAGE, LIST(struct span, status, has_status), .has = true, .sub = &status),
	FIELD(16, flags, KIND_FIXED32, AT(struct span, flags)),
};
static const struct otlp_message span = {
	.name = "Span", .has_strings = true, .done = otlp_count_item, FIELDS(span_fields, struct span)
};

static const struct otlp_field scope_spans_fields[] = {
	FIELD(1, scope, KIND_MESSAGE, LIST(struct scope_spans, scope, has_scope), .has = true, .sub = &otlp_scope),
	FIELD(2, spans, KIND_MESSAGES, LIST(struct scope_spans, spans, span_count), .sub = &span),
	FIELD(3, schema_url, KIND_STRING, AT(struct scope_spans, schema_url)),
};
static const struct otlp_message scope_spans = { .name = "ScopeSpans",
						 .has_strings = true,
						 FIELDS(scope_spans_fields, struct scope_spans) };

static const struct otlp_field resource_spans_fields[] = {
	FIELD(1, resource, KIND_MESSAGE, LIST(struct resource_spans, resource, has_resource), .has = true,
	      .sub = &otlp_resource),
	FIELD(2, scope_spans, KIND_MESSAGES, LIST(struct resource_spans, scopes, scope_count), .sub = &scope_spans),
	FIELD(3, schema_url, KIND_STRING, AT(struct resource_spans, schema_url)),
};
static const struct otlp_message resource_spans = { .name = "ResourceSpans",
						    .has_strings = true,
						    FIELDS(resource_spans_fields, struct resource_spans) };

static const struct otlp_field traces_fields[] = {
	FIELD(1, resource_spans, KIND_MESSAGES, LIST(struct span_request, resources, resource_count),
	      .sub = &resource_spans),
};
const struct otlp_message otlp_traces = { .name = "TracesData", FIELDS(traces_fields, struct span_request) };
