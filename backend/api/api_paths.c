/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the paths of the query API, and how a question is answered. The query thread owns an API. */
#include "backend/api/api.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/api/api_call.h"
#include "backend/api/api_join.h"
#include "backend/compat/pyroscope.h"
#include "backend/query/functions.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

#define DEFAULT_MEMORY_BYTES (1ull << 30)

enum {
	DEFAULT_TIMEOUT_S = 30,
	MAX_FUNCTIONS = 1 << 16,
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
	HTTP_NOT_FOUND = 404,
	HTTP_CONFLICT = 409,
	HTTP_INTERNAL_ERROR = 500,
	HTTP_UNAVAILABLE = 503,
	HTTP_NO_ROOM = 507,
};

/* `debug` is ignored, as programs in Go do with profiles of CPU time. */
#define PPROF API_SELECTED " seconds process debug"

static const struct {
	const char *path;
	int (*answer)(struct api_call *call);
	const char *params; /* NULL: they come in the body */
} paths[] = {
	{ "/api/v1/flamegraph", api_flamegraph, API_SELECTED API_OF_GRAPH },
	{ "/api/v1/tree", api_tree, API_SELECTED API_OF_GRAPH },
	{ "/api/v1/sandwich", api_sandwich, API_SELECTED " function module lines max_nodes" },
	{ "/api/v1/top", api_top, API_SELECTED API_OF_TOP },
	{ "/api/v1/diff", api_diff,
	  API_SELECTED " query2 from2 to2 kind2 focus2 ignore2 idle2 format noise limit strip" API_OF_GRAPH },
	{ "/api/v1/timeline", api_timeline, API_SELECTED " by limit points step" },
	{ "/api/v1/heatmap", api_heatmap, API_SELECTED " columns rows" },
	{ "/api/v1/labels", api_labels, API_SELECTED },
	{ "/api/v1/values", api_values, API_SELECTED " label prefix limit" },
	{ "/api/v1/series", api_series, API_SELECTED " limit" },
	{ "/api/v1/executables", api_executables, API_SELECTED },
	{ "/api/v1/truth", api_truth, API_SELECTED },
	{ "/api/v1/status", api_status, "" },
	{ "/api/v1/inside", api_inside, API_SELECTED },
	{ "/api/v1/export", api_export, API_SELECTED " format" },
	{ "/api/v1/traces", api_traces, API_SELECTED " sort limit" },
	{ "/api/v1/logs", api_logs, "query from to severity text limit" },
	{ "/api/v1/exemplars", api_exemplars, "query from to limit" },
	{ "/debug/pprof/profile", api_pprof, PPROF },
	{ "/pprof/profile", api_pprof, PPROF },
	{ CONNECT_PATH "ProfileTypes", api_profile_types, NULL },
	{ CONNECT_PATH "LabelNames", api_label_names, NULL },
	{ CONNECT_PATH "LabelValues", api_label_values, NULL },
	{ CONNECT_PATH "Series", api_series_labels, NULL },
	{ CONNECT_PATH "SelectSeries", api_select_series, NULL },
	{ CONNECT_PATH "SelectMergeStacktraces", api_select_stacktraces, NULL },
};

static size_t find(const char *path)
{
	size_t i = 0;

	while (i < ARRAY_LEN(paths) && strcmp(paths[i].path, path) != 0)
		i++;
	return i;
}

const char *api_params(const char *path)
{
	size_t i = find(path);

	return i < ARRAY_LEN(paths) ? paths[i].params : api_trace_params(path);
}

static void register_metrics(struct api *api)
{
	const char *const name = "hearth_query_ended_total", *const help = "Questions to the store that were given up.";

	if (!api->config.metrics)
		return;
	api->too_long = metrics_counter(api->config.metrics, name, "reason=\"time\"", help);
	api->unwanted = metrics_counter(api->config.metrics, name, "reason=\"client\"", help);
	api->too_large = metrics_counter(api->config.metrics, name, "reason=\"memory\"", help);
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
	err = api->functions ? 0 : -ENOMEM;
	if (!err && !config->is_second)
		err = api_symbols_init(api);
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
	if (api->own_store)
		api->own_store->close(api->own_store);
	free(api);
}

int api_second(const struct api *first, struct api **ret)
{
	const uint64_t version = atomic_load(&first->config.store->names_version);
	const struct store_read_ops *ops = first->config.store->read;
	struct api_config config = first->config;
	int err = ops->reader ? ops->reader(first->config.store, &config.store) : -ENOTSUP;

	if (err)
		return err;
	config.is_second = true;
	err = api_new(&config, ret);
	if (err) {
		config.store->close(config.store);
		return err;
	}
	(*ret)->own_store = config.store;
	(*ret)->folder = first->folder ? strdup(first->folder) : NULL; /* without it files are made in memory */
	(*ret)->first_version = version;
	(*ret)->start_ns = first->start_ns;
	return 0;
}

bool api_may_have_second(const struct api *api)
{
	return api->config.store->read->reader;
}

bool api_is_stale(const struct api *second, const struct api *first)
{
	return atomic_load(&first->config.store->names_version) != second->first_version;
}

static void tell_memory(const struct api *api)
{
	if (!api->config.is_second)
		memory_tell(api->config.metrics, "query functions", functions_memory_bytes(api->functions));
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
	case -ECANCELED:
		metric_add(call->api->unwanted, 1);
		*text_ret = "nobody waits for this any more";
		return HTTP_UNAVAILABLE;
	case -ELOOP:
		*text_ret = "query: it takes too many steps to tell whether a value matches a regular expression: write a "
			    "simpler one";
		return HTTP_BAD_REQUEST;
	case -ENOMEM:
		metric_add(call->api->too_large, 1);
		*text_ret = "no memory for this now: ask for a shorter range or fewer series";
		return HTTP_UNAVAILABLE;
	case -ENOSPC:
	case -EDQUOT:
		*text_ret = "no room on the store's disk for this: ask for a shorter range or fewer series";
		return HTTP_NO_ROOM;
	case -EBADMSG:
		*text_ret = "the store is damaged there: see the log, and 'hearth store verify'";
		return HTTP_INTERNAL_ERROR;
	case -EHOSTUNREACH:
	case -EACCES:
	case -EBUSY:
		*text_ret = store->read->why ? store->read->why(store) : strerror(-err);
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

void api_answer_fini(struct api_answer *answer)
{
	buf_fini(&answer->body);
	if (answer->is_on_disk)
		close(answer->disk);
	answer->is_on_disk = false;
}

int api_answer(struct api *api, const char *path, const struct query_params *params, const struct api_budget *budget,
	       struct api_answer *answer)
{
	uint64_t timeout_ns = budget && budget->timeout_ns ? budget->timeout_ns : api->config.timeout_ns;
	struct api_call call = {
		.api = api, .params = params, .answer = answer, .hides_addresses = budget && budget->hides_addresses
	};
	size_t i = find(path);
	int err;

	api_symbols_update(api);
	functions_trim(api->functions, MAX_FUNCTIONS);
	call.ctx = (struct query_context){
		.store = api->config.store,
		.functions = api->functions,
		.now_ns = clock_unix_ns(),
		.deadline_ns = clock_mono_ns() + timeout_ns,
		.is_unwanted = budget ? budget->is_unwanted : NULL,
		.name_spans = api->config.signals ? api_name_spans : NULL,
		.name_arg = &call,
	};
	answer->status = HTTP_OK;
	answer->content_type = "application/json";
	json_init(&call.json, &answer->body, 0);
	err = i < ARRAY_LEN(paths) ? paths[i].answer(&call) : api_trace_params(path) ? api_trace_path(&call, path) : -ENOENT;
	if (!err && answer->body.failed)
		err = -ENOMEM;
	if (err == -ETIMEDOUT && budget && budget->is_trial)
		buf_fini(&answer->body);
	else if (err)
		answer_error(&call, path, err);
	buf_fini(&call.error);
	if (api->config.store->read->rest)
		api->config.store->read->rest(api->config.store, false);
	functions_trim(api->functions, MAX_FUNCTIONS);
	tell_memory(api);
	return err;
}

void api_clear(struct api *api, struct api_answer *answer)
{
	struct store *store = api->config.store;
	struct store_status before = { 0 };
	struct json j;
	int err = store->read->status(store, &before);

	err = err ? err : store->maintain->task ? store->maintain->task(store, STORE_CLEAR) : -ENOTSUP;
	if (err == -EROFS || err == -ENOTSUP) {
		api_write_error(answer, HTTP_CONFLICT, "this store is only read here: clear it where it is written");
	} else if (err == -EACCES) {
		api_write_error(answer, HTTP_CONFLICT, store->read->why ? store->read->why(store) : strerror(-err));
	} else if (err) {
		log_error("the store cannot be cleared: %s", strerror(-err));
		api_write_error(answer, HTTP_UNAVAILABLE,
				err == -EHOSTUNREACH && store->read->why ? store->read->why(store) : strerror(-err));
	} else {
		if (api->config.signals && signals_clear(api->config.signals))
			log_error("the spans and logs that came in could not be cleared");
		log_info("the store was cleared over HTTP: %" PRIu64 " samples are gone", before.events);
		answer->status = HTTP_OK;
		answer->content_type = "application/json";
		json_init(&j, &answer->body, 0);
		json_object_begin(&j);
		api_write_number(&j, "cleared", (int64_t)before.events);
		json_object_end(&j);
	}
	functions_trim(api->functions, 0);
}

void api_rest(struct api *api)
{
	struct store *store = api->config.store;

	if (store->read->rest)
		store->read->rest(store, true);
	functions_trim(api->functions, 0);
	tell_memory(api);
}
