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

struct otlp_message;

struct otlp_other {
	enum otlp_signal signal;
	uint64_t items;		 /* log records, data points, spans */
	struct profiles *memory; /* that everything lies in; its dictionary is empty, for value_text() and the like */
	const void *root;	 /* of OTLP_LOGS: struct logs */
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
