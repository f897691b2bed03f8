/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP's other signals: logs, metrics, traces. They are decoded whole, with the checks of the profiles' decoder, so that a
 * bad request is refused and a good one can be printed, counted, and passed on as protobuf whatever it came in.
 */
#ifndef HEARTH_PROTO_OTLP_SIGNALS_H
#define HEARTH_PROTO_OTLP_SIGNALS_H

#include "proto/otlp/otlp.h"
#include "proto/sink.h"

struct log_record {
	uint64_t time_unix_ns, observed_time_unix_ns;
	uint32_t severity_number;
	struct str severity_text;
	struct any_value body;
	struct key_values attributes;
	uint32_t dropped_attributes_count, flags;
	struct str trace_id, span_id, event_name;
};

struct scope_logs {
	bool has_scope;
	struct scope scope;
	struct log_record *records;
	uint32_t record_count;
	struct str schema_url;
};

struct resource_logs {
	bool has_resource;
	struct resource resource;
	struct scope_logs *scopes;
	uint32_t scope_count;
	struct str schema_url;
};

struct logs {
	struct resource_logs *resources;
	uint32_t resource_count;
};

struct span_event {
	uint64_t time_unix_ns;
	struct str name;
	struct key_values attributes;
	uint32_t dropped_attributes_count;
};

struct span_link {
	struct str trace_id, span_id, trace_state;
	struct key_values attributes;
	uint32_t dropped_attributes_count, flags;
};

struct span_status {
	struct str message;
	uint32_t code;
};

struct span {
	struct str trace_id, span_id, trace_state, parent_span_id, name;
	uint64_t start_time_unix_ns, end_time_unix_ns;
	struct key_values attributes;
	struct span_event *events;
	struct span_link *links;
	struct span_status status;
	bool has_status;
	uint32_t kind, flags, event_count, link_count;
	uint32_t dropped_attributes_count, dropped_events_count, dropped_links_count;
};

struct scope_spans {
	bool has_scope;
	struct scope scope;
	struct span *spans;
	uint32_t span_count;
	struct str schema_url;
};

struct resource_spans {
	bool has_resource;
	struct resource resource;
	struct scope_spans *scopes;
	uint32_t scope_count;
	struct str schema_url;
};

struct span_request {
	struct resource_spans *resources;
	uint32_t resource_count;
};

struct otlp_message;

struct otlp_other {
	enum otlp_signal signal;
	uint64_t items;		 /* log records, data points, spans */
	struct profiles *memory; /* that everything lies in; its dictionary is empty, for value_text() and the like */
	const void *root;	 /* of OTLP_LOGS: struct logs; of OTLP_TRACES: struct span_request;
				  * of OTLP_METRICS: struct metric_request (metrics.h) */
	const struct otlp_message *message; /* the root's table */
};

/* Decodes a request of @signal; nothing of @data is kept. 0 and otlp_other_fini() later; -EBADMSG with @err; -ENOMEM. */
int otlp_other_decode(enum otlp_signal signal, bool is_json, const uint8_t *data, size_t len, struct otlp_other *ret,
		      struct otlp_error *err);
void otlp_other_fini(struct otlp_other *o);

/* Appends it as protobuf, or as OTLP/JSON. 0 or -ENOMEM. */
int otlp_other_encode(const struct otlp_other *o, struct buf *out);
int otlp_other_json_encode(const struct otlp_other *o, struct buf *out);

#endif
