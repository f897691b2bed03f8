/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs, metrics and traces: what is common to them, and the tables of logs. Attributes that refer to a dictionary, which
 * only profiles have, count as absent, as the specification has it.
 */
#include "proto/otlp/signals.h"

#include <errno.h>

#include "proto/otlp/metrics.h"
#include "proto/otlp/signal_tables.h"

/* --- logs --- */
static const char *const severities[] = {
	"SEVERITY_NUMBER_UNSPECIFIED", "SEVERITY_NUMBER_TRACE",
	"SEVERITY_NUMBER_TRACE2",      "SEVERITY_NUMBER_TRACE3",
	"SEVERITY_NUMBER_TRACE4",      "SEVERITY_NUMBER_DEBUG",
	"SEVERITY_NUMBER_DEBUG2",      "SEVERITY_NUMBER_DEBUG3",
	"SEVERITY_NUMBER_DEBUG4",      "SEVERITY_NUMBER_INFO",
	"SEVERITY_NUMBER_INFO2",       "SEVERITY_NUMBER_INFO3",
	"SEVERITY_NUMBER_INFO4",       "SEVERITY_NUMBER_WARN",
	"SEVERITY_NUMBER_WARN2",       "SEVERITY_NUMBER_WARN3",
	"SEVERITY_NUMBER_WARN4",       "SEVERITY_NUMBER_ERROR",
	"SEVERITY_NUMBER_ERROR2",      "SEVERITY_NUMBER_ERROR3",
	"SEVERITY_NUMBER_ERROR4",      "SEVERITY_NUMBER_FATAL",
	"SEVERITY_NUMBER_FATAL2",      "SEVERITY_NUMBER_FATAL3",
	"SEVERITY_NUMBER_FATAL4",      NULL,
};

bool otlp_count_item(struct otlp_decoder *d, const void *base)
{
	(void)base;
	d->items++;
	return true;
}

static const struct otlp_field record_fields[] = {
	FIELD(1, time_unix_nano, KIND_FIXED64, AT(struct log_record, time_unix_ns)),
	FIELD(2, severity_number, KIND_UINT32, AT(struct log_record, severity_number), .names = severities),
	FIELD(3, severity_text, KIND_STRING, AT(struct log_record, severity_text)),
	FIELD(5, body, KIND_MESSAGE, AT(struct log_record, body), .sub = &otlp_any_value),
	FIELD(6, attributes, KIND_MESSAGES, LIST(struct log_record, attributes.items, attributes.count),
	      .sub = &otlp_key_value),
	FIELD(7, dropped_attributes_count, KIND_UINT32, AT(struct log_record, dropped_attributes_count)),
	FIELD(8, flags, KIND_FIXED32, AT(struct log_record, flags)),
	FIELD(9, trace_id, KIND_BYTES, AT(struct log_record, trace_id), ID(16)),
	FIELD(10, span_id, KIND_BYTES, AT(struct log_record, span_id), ID(8)),
	FIELD(11, observed_time_unix_nano, KIND_FIXED64, AT(struct log_record, observed_time_unix_ns)),
	FIELD(12, event_name, KIND_STRING, AT(struct log_record, event_name)),
};
static const struct otlp_message record = {
	.name = "LogRecord", .has_strings = true, .done = otlp_count_item, FIELDS(record_fields, struct log_record)
};

static const struct otlp_field scope_logs_fields[] = {
	FIELD(1, scope, KIND_MESSAGE, LIST(struct scope_logs, scope, has_scope), .has = true, .sub = &otlp_scope),
	FIELD(2, log_records, KIND_MESSAGES, LIST(struct scope_logs, records, record_count), .sub = &record),
	FIELD(3, schema_url, KIND_STRING, AT(struct scope_logs, schema_url)),
};
static const struct otlp_message scope_logs = { .name = "ScopeLogs",
						.has_strings = true,
						FIELDS(scope_logs_fields, struct scope_logs) };

static const struct otlp_field resource_logs_fields[] = {
	FIELD(1, resource, KIND_MESSAGE, LIST(struct resource_logs, resource, has_resource), .has = true,
	      .sub = &otlp_resource),
	FIELD(2, scope_logs, KIND_MESSAGES, LIST(struct resource_logs, scopes, scope_count), .sub = &scope_logs),
	FIELD(3, schema_url, KIND_STRING, AT(struct resource_logs, schema_url)),
};
static const struct otlp_message resource_logs = { .name = "ResourceLogs",
						   .has_strings = true,
						   FIELDS(resource_logs_fields, struct resource_logs) };

static const struct otlp_field logs_fields[] = {
	FIELD(1, resource_logs, KIND_MESSAGES, LIST(struct logs, resources, resource_count), .sub = &resource_logs),
};
static const struct otlp_message logs = { .name = "LogsData", FIELDS(logs_fields, struct logs) };

/* --- all of them --- */

/* Makes every reference into a dictionary absent. */
static void forget_references(const struct otlp_message *m, void *base)
{
	for (unsigned i = 0; i < m->field_count; i++) {
		const struct otlp_field *f = &m->fields[i];
		char *at = (char *)base + f->offset;
		struct any_value *v = base;

		if (f->variant && v->kind != f->variant)
			continue;
		if (f->kind == KIND_INDEX) {
			*(int32_t *)(void *)at = 0;
			if (f->variant)
				v->kind = VALUE_NONE;
		} else if (f->kind == KIND_MESSAGE) {
			forget_references(f->sub, at);
		} else if (f->kind == KIND_MESSAGES) {
			uint32_t count = *(const uint32_t *)((const char *)base + f->count);

			for (uint32_t k = 0; k < count; k++)
				forget_references(f->sub, *(char **)at + (size_t)k * f->sub->size);
		}
	}
}

static const struct otlp_layout layouts[] = {
	[OTLP_LOGS] = { .root = &logs, .size_bytes = sizeof(struct logs) },
	[OTLP_METRICS] = { .root = &otlp_metrics, .size_bytes = sizeof(struct metric_request) },
	[OTLP_TRACES] = { .root = &otlp_traces, .size_bytes = sizeof(struct span_request) },
};

int otlp_other_decode(enum otlp_signal signal, bool is_json, const uint8_t *data, size_t len, struct otlp_other *ret,
		      struct otlp_error *err)
{
	const struct otlp_layout *layout = &layouts[signal];
	struct otlp_decoder d = { .start = data, .len = len, .text = err, .forgets_references = true };
	const struct otlp_form *older;
	void *root;

	err->message[0] = '\0';
	if (len > UINT32_MAX) {
		otlp_decode_fail(&d, NULL, layout->root, NULL, "has %zu bytes, more than a message can have", len);
		return d.error;
	}
	root = is_json ? otlp_json_decode_root(&d, layout, &older) : otlp_decode_root(&d, layout);
	if (!root) {
		profiles_put(d.profiles);
		return d.error;
	}
	if (d.max_index[PROFILES_TAG(ProfilesDictionary, string_table)])
		forget_references(layout->root, root);
	*ret = (struct otlp_other){
		.signal = signal, .items = d.items, .memory = d.profiles, .root = root, .message = layout->root
	};
	return 0;
}

void otlp_other_fini(struct otlp_other *o)
{
	profiles_put(o->memory);
	*o = (struct otlp_other){ 0 };
}

int otlp_other_encode(const struct otlp_other *o, struct buf *out)
{
	return otlp_encode_message(o->message, o->root, out);
}

int otlp_other_json_encode(const struct otlp_other *o, struct buf *out)
{
	return otlp_json_encode_message(o->message, o->root, out);
}
