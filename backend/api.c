/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the API's paths, and what every answer has in common: errors, units, times. */
#include "backend/api.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api_call.h"
#include "backend/functions.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory.h"

#define DEFAULT_MEMORY_BYTES (1ull << 30)

enum {
	DEFAULT_TIMEOUT_S = 30,
	MAX_FUNCTIONS = 1 << 16,
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
	HTTP_NOT_FOUND = 404,
	HTTP_INTERNAL_ERROR = 500,
	HTTP_UNAVAILABLE = 503,
};

static const struct {
	const char *path;
	int (*answer)(struct api_call *call);
} paths[] = {
	{ "/api/v1/flamegraph", api_flamegraph },
	{ "/api/v1/tree", api_tree },
	{ "/api/v1/sandwich", api_sandwich },
	{ "/api/v1/top", api_top },
	{ "/api/v1/diff", api_diff },
	{ "/api/v1/timeline", api_timeline },
	{ "/api/v1/heatmap", api_heatmap },
	{ "/api/v1/labels", api_labels },
	{ "/api/v1/values", api_values },
	{ "/api/v1/series", api_series },
	{ "/api/v1/executables", api_executables },
	{ "/api/v1/truth", api_truth },
	{ "/api/v1/status", api_status },
	{ "/api/v1/export", api_export },
	{ "/debug/pprof/profile", api_pprof },
	{ "/pprof/profile", api_pprof },
	{ CONNECT_PATH "ProfileTypes", api_profile_types },
	{ CONNECT_PATH "LabelNames", api_label_names },
	{ CONNECT_PATH "LabelValues", api_label_values },
	{ CONNECT_PATH "Series", api_series_labels },
	{ CONNECT_PATH "SelectSeries", api_select_series },
	{ CONNECT_PATH "SelectMergeStacktraces", api_select_stacktraces },
};

static size_t find(const char *path)
{
	size_t i = 0;

	while (i < ARRAY_LEN(paths) && strcmp(paths[i].path, path) != 0)
		i++;
	return i;
}

bool api_has_path(const char *path)
{
	return find(path) < ARRAY_LEN(paths);
}

static void register_metrics(struct api *api)
{
	const char *const name = "hearth_query_ended_total", *const help = "Questions to the store that were given up.";

	if (!api->config.metrics)
		return;
	api->too_long = metrics_counter(api->config.metrics, name, "reason=\"time\"", help);
	api->too_large = metrics_counter(api->config.metrics, name, "reason=\"memory\"", help);
}

int api_within(const struct api_call *call, uint64_t bytes)
{
	return bytes > call->api->config.memory_bytes ? -ENOMEM : 0;
}

int api_new(const struct api_config *config, struct api **ret)
{
	struct api *api = calloc(1, sizeof(*api));
	int err;

	if (!api)
		return -ENOMEM;
	api->config = *config;
	if (!api->config.timeout_ns)
		api->config.timeout_ns = DEFAULT_TIMEOUT_S * NSEC_PER_SEC;
	if (!api->config.memory_bytes)
		api->config.memory_bytes = DEFAULT_MEMORY_BYTES;
	register_metrics(api);
	api->start_ns = clock_unix_ns();
	api->functions = functions_new(config->store);
	err = api->functions ? api_symbols_init(api) : -ENOMEM;
	if (err) {
		api_free(api);
		return err;
	}
	*ret = api;
	return 0;
}

void api_free(struct api *api)
{
	if (!api)
		return;
	api_symbols_fini(api);
	functions_free(api->functions);
	free(api);
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

/* The status and the words for @err. */
static unsigned explain(const struct api_call *call, int err, const char **text_ret)
{
	struct store *store = call->ctx.store;

	switch (err) {
	case -EINVAL:
	case -ENOENT:
		*text_ret = buf_text((struct buf *)&call->error);
		if (!**text_ret)
			*text_ret = strerror(-err);
		return err == -EINVAL ? HTTP_BAD_REQUEST : HTTP_NOT_FOUND;
	case -ETIMEDOUT:
		metric_add(call->api->too_long, 1);
		*text_ret = "this takes too long: ask for a shorter range or fewer series";
		return HTTP_UNAVAILABLE;
	case -ENOMEM:
		metric_add(call->api->too_large, 1);
		*text_ret = "no memory for this now: ask for a shorter range or fewer series";
		return HTTP_UNAVAILABLE;
	case -EBADMSG:
		*text_ret = "the store is damaged there: see the log, and 'hearth store verify'";
		return HTTP_INTERNAL_ERROR;
	case -EHOSTUNREACH:
	case -EACCES:
	case -EBUSY:
		*text_ret = store->ops->why ? store->ops->why(store) : strerror(-err);
		return HTTP_UNAVAILABLE;
	default:
		*text_ret = strerror(-err);
		return HTTP_INTERNAL_ERROR;
	}
}

void api_write_error(struct api_answer *answer, unsigned status, const char *text)
{
	struct json j;

	answer->status = status;
	answer->content_type = "application/json";
	answer->file_name[0] = 0;
	buf_reset(&answer->body);
	json_init(&j, &answer->body, 0);
	json_object_begin(&j);
	api_write_text(&j, "error", text);
	json_object_end(&j);
}

static void answer_error(struct api_call *call, const char *path, int err)
{
	struct api_answer *answer = call->answer;
	const char *text;
	unsigned status = explain(call, err, &text);

	if (strncmp(path, CONNECT_PATH, strlen(CONNECT_PATH)) != 0) {
		api_write_error(answer, status, text);
		return;
	}
	answer->status = status;
	answer->content_type = "application/json"; /* of errors, whatever was asked in */
	buf_reset(&answer->body);
	api_write_connect_error(&answer->body, status, text);
}

void api_answer(struct api *api, const char *path, const struct query_params *params, struct api_answer *answer)
{
	struct api_call call = { .api = api, .params = params, .answer = answer };
	size_t i = find(path);
	int err;

	api_symbols_update(api);
	functions_trim(api->functions, MAX_FUNCTIONS);
	call.ctx = (struct query_context){
		.store = api->config.store,
		.functions = api->functions,
		.now_ns = clock_unix_ns(),
		.deadline_ns = clock_mono_ns() + api->config.timeout_ns,
	};
	answer->status = HTTP_OK;
	answer->content_type = "application/json";
	json_init(&call.json, &answer->body, 0);
	err = i < ARRAY_LEN(paths) ? paths[i].answer(&call) : -ENOENT;
	if (!err && answer->body.failed)
		err = -ENOMEM;
	if (err)
		answer_error(&call, path, err);
	buf_fini(&call.error);
	if (api->config.store->ops->rest)
		api->config.store->ops->rest(api->config.store, false);
	functions_trim(api->functions, MAX_FUNCTIONS);
	memory_tell(api->config.metrics, "query functions", functions_memory_bytes(api->functions));
}

void api_rest(struct api *api)
{
	struct store *store = api->config.store;

	if (store->ops->rest)
		store->ops->rest(store, true);
	functions_trim(api->functions, 0);
	memory_tell(api->config.metrics, "query functions", functions_memory_bytes(api->functions));
}
