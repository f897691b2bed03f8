/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that answers of the query API have in common: parameters, units, times. */
#include "backend/api/api_call.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"

int api_within(const struct api_call *call, uint64_t bytes)
{
	return bytes > call->api->config.memory_bytes ? -ENOMEM : 0;
}

const char *api_label(const struct api_call *call, const char *key)
{
	const char *label = query_param(call->params, key), *full;

	if (!label || !*label)
		return NULL;
	full = selector_label(label);
	return full ? full : label;
}

void api_write_time(struct json *j, const char *key, uint64_t unix_ns)
{
	json_key(j, key);
	json_double(j, (double)unix_ns / (double)NSEC_PER_SEC);
}

void api_write_number(struct json *j, const char *key, int64_t value)
{
	json_key(j, key);
	json_i64(j, value);
}

void api_write_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text);
}

int api_read(struct api_call *call, struct query *q, const char *suffix)
{
	int err = query_read(q, &call->ctx, call->params, suffix, &call->error);

	return err ? err : query_cover(q, &call->ctx);
}

static void write_covered_time(struct json *j, const char *key, const char *suffix, uint64_t ns)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%s", key, suffix);
	api_write_time(j, name, ns);
}

void api_write_covered(struct api_call *call, const struct query *q, const char *suffix)
{
	write_covered_time(&call->json, "covered_seconds", suffix, q->covered.covered_ns);
	write_covered_time(&call->json, "covered_from", suffix, q->covered.from_ns);
	write_covered_time(&call->json, "covered_to", suffix, q->covered.to_ns);
}

void api_write_about(struct api_call *call, const struct query *q)
{
	struct json *j = &call->json;

	json_key(j, "kind");
	json_object_begin(j);
	api_write_text(j, "type", q->about.type);
	api_write_text(j, "unit", q->about.unit);
	json_object_end(j);
	json_key(j, "weight_ns");
	json_u64(j, query_weight_ns(q));
	api_write_time(j, "from", q->sel.from_ns);
	api_write_time(j, "to", q->sel.to_ns);
	if (call->joined)
		api_write_text(j, "joined", call->joined);
	api_write_word(call, q, "");
	if (q->is_covered)
		api_write_covered(call, q, "");
}

int api_write_list(struct api_call *call, const char *key,
		   int (*list)(struct api_call *call, const struct store_selection *sel))
{
	AUTO(query_fini) struct query q = { 0 };
	struct json *j = &call->json;
	int err = query_read(&q, &call->ctx, call->params, "", &call->error);

	if (err)
		return err;
	json_object_begin(j);
	json_key(j, key);
	json_array_begin(j);
	err = list(call, &q.sel);
	json_array_end(j);
	json_object_end(j);
	return err;
}
