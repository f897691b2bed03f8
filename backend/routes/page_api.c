/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query API over HTTP: a request becomes a question to the query thread and waits, suspended, for its answer. Whoever
 * has the question frees it: the request, or, when its client goes away while the thread has it, the answer's arrival.
 * Loop's thread only.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/routes/handlers.h"
#include "backend/api/query_thread.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/text/parse.h"

enum {
	MAX_PARAMS = 32, /* more than any path takes, with those that are added here */
	HEADERS = 9,
	DEFAULT_WINDOW_S = 30, /* of a live pprof profile, as Go's */
	MAX_WINDOW_S = 3600,
	SETTLE_NS = 500 * NSEC_PER_MSEC, /* from the end of a window until its samples are in the store */
};

struct api_request {
	struct query_job job;
	struct request *request; /* NULL: its client has gone */
	bool is_answered;
	char *path;			      /* owned, as is the text of the parameters */
	struct query_param items[MAX_PARAMS]; /* owned */
	size_t count;
	bool lacks_params;  /* there was no memory for one */
	char window[2][24]; /* from and to of a live profile */
	char etag[32], disposition[192];
	struct reply_header headers[HEADERS];
};

static void api_request_free(struct api_request *a)
{
	for (size_t i = 0; i < a->count; i++)
		free((char *)a->items[i].key);
	free(a->path);
	if (a->job.symbols_fd >= 0)
		close(a->job.symbols_fd);
	api_answer_fini(&a->job.answer);
	free(a);
}

void page_api_cancel(struct request *r)
{
	struct api_request *a = r->api;

	r->api = NULL;
	if (!a)
		return;
	if (a->is_answered || query_thread_cancel(r->server->queries, &a->job))
		api_request_free(a);
	else
		a->request = NULL;
}

/* One block for both: key NUL value NUL. */
static enum MHD_Result take_param(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct api_request *a = arg;
	size_t key_len = strlen(key) + 1, value_len = value ? strlen(value) + 1 : 1;
	char *copy;

	(void)kind;
	if (!*key) /* nothing, as in "?&from=now" */
		return MHD_YES;
	copy = a->count < MAX_PARAMS ? malloc(key_len + value_len) : NULL;
	if (!copy) {
		a->lacks_params = true;
		return MHD_NO;
	}
	memcpy(copy, key, key_len);
	memcpy(copy + key_len, value ? value : "", value_len);
	a->items[a->count++] = (struct query_param){ copy, copy + key_len };
	return MHD_YES;
}

static void set_headers(struct api_request *a)
{
	const struct api_answer *answer = &a->job.answer;
	size_t n = 0;

	snprintf(a->etag, sizeof(a->etag), "\"%016llx%s\"", (unsigned long long)a->job.hash, a->job.is_packed ? "-gz" : "");
	a->headers[n++] = (struct reply_header){ MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache" };
	a->headers[n++] = (struct reply_header){ MHD_HTTP_HEADER_VARY, "Accept-Encoding" };
	a->headers[n++] = (struct reply_header){ "X-Content-Type-Options", "nosniff" };
	a->headers[n++] = (struct reply_header){ "Content-Security-Policy", "default-src 'none'; sandbox" };
	a->headers[n++] = (struct reply_header){ "Cross-Origin-Resource-Policy", "same-origin" };
	if (!answer->is_on_disk) /* another file would have other ids of profiles */
		a->headers[n++] = (struct reply_header){ MHD_HTTP_HEADER_ETAG, a->etag };
	if (a->job.is_packed)
		a->headers[n++] = (struct reply_header){ MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip" };
	if (answer->file_name[0]) {
		snprintf(a->disposition, sizeof(a->disposition), "attachment; filename=\"%s\"", answer->file_name);
		a->headers[n++] = (struct reply_header){ "Content-Disposition", a->disposition };
	}
}

static void on_answer(struct query_job *job)
{
	struct api_request *a = (struct api_request *)job;
	struct request *r = a->request;

	a->is_answered = true;
	if (!r) {
		api_request_free(a);
		return;
	}
	set_headers(a);
	r->reply.headers = a->headers;
	if (job->answer.is_on_disk) {
		job->answer.is_on_disk = false;
		reply_file(r, job->answer.status, job->answer.content_type, job->answer.disk);
	} else if (job->answer.status == MHD_HTTP_OK && request_has_copy(r, a->etag)) {
		reply_body(r, MHD_HTTP_NOT_MODIFIED, job->answer.content_type);
	} else {
		r->reply.body = job->answer.body;
		job->answer.body = BUF_EMPTY;
		reply_body(r, job->answer.status, job->answer.content_type);
	}
	request_resume(r);
}

static void refuse_memory(struct request *r)
{
	reply_text(r, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory for this now: try again\n");
}

static bool add_param(struct api_request *a, const char *key, const char *value)
{
	return take_param(a, MHD_GET_ARGUMENT_KIND, key, value) == MHD_YES;
}

bool page_api_seconds(struct request *r, const char *text, uint64_t *ret)
{
	*ret = DEFAULT_WINDOW_S;
	if (!text || (!parse_u64(text, ret) && *ret && *ret <= MAX_WINDOW_S))
		return true;
	reply_text(r, MHD_HTTP_BAD_REQUEST, "seconds: a whole number from 1 to 3600\n");
	return false;
}

/*
 * Begins a profile of the time to come: the store is asked when the window is over and its samples have been stored. False:
 * it is refused, which is answered.
 */
static bool begin_window(struct request *r, struct api_request *a)
{
	const struct query_params params = { a->items, a->count };
	const char *text = query_param(&params, "seconds");
	uint64_t seconds, from_ns = clock_unix_ns(), to_ns;

	if (!page_api_seconds(r, text, &seconds))
		return false;
	to_ns = from_ns + seconds * NSEC_PER_SEC;
	snprintf(a->window[0], sizeof(a->window[0]), "%llu.%09llu", (unsigned long long)(from_ns / NSEC_PER_SEC),
		 (unsigned long long)(from_ns % NSEC_PER_SEC));
	snprintf(a->window[1], sizeof(a->window[1]), "%llu.%09llu", (unsigned long long)(to_ns / NSEC_PER_SEC),
		 (unsigned long long)(to_ns % NSEC_PER_SEC));
	if (!add_param(a, "from", a->window[0]) || !add_param(a, "to", a->window[1])) {
		refuse_memory(r);
		return false;
	}
	a->job.not_before_ns = clock_mono_ns() + seconds * NSEC_PER_SEC + SETTLE_NS;
	if (r->server->window_ends)
		r->server->window_ends(r->server->window_arg, clock_mono_ns() + seconds * NSEC_PER_SEC);
	return true;
}

/* process=NAME of pprof's paths: a selector by name. Who hearth's processes are is looked up when the window is over
 * (api_pprof). False: answered. */
static bool choose_process(struct request *r, struct api_request *a)
{
	const struct query_params params = { a->items, a->count };
	const char *name = query_param(&params, "process");
	AUTO(buf_fini) struct buf query = BUF_EMPTY;

	if (!name || !strstr(a->path, "pprof/"))
		return true;
	if (!strcmp(name, API_OURSELVES) && !query_param(&params, "query"))
		return true;
	buf_printf(&query, "{process.executable.name=`%s`}", name);
	if (!query_param(&params, "query") && !strchr(name, '`') && add_param(a, "query", buf_text(&query)))
		return true;
	reply_text(r, MHD_HTTP_BAD_REQUEST, "process: a name, and no query beside it\n");
	return false;
}

/* Our profile has its names in it, so there are no symbols to look up; and arguments of hearth may be secrets. */
bool page_api_pprof_extra(struct request *r)
{
	const char *name = strrchr(r->path, '/') + 1;

	if (!strcmp(name, "symbol"))
		reply_text(r, MHD_HTTP_OK, "num_symbols: 0\n");
	else if (!strcmp(name, "cmdline"))
		reply_text(r, MHD_HTTP_OK, "hearth\n");
	else
		return false;
	return true;
}

static bool is_live_profile(const struct api_request *a)
{
	const struct query_params params = { a->items, a->count };

	return strstr(a->path, "pprof/") && !query_param(&params, "from");
}

static struct api_request *api_request_new(struct request *r)
{
	struct api_request *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->request = r;
	a->job.symbols_fd = -1;
	a->path = strdup(r->path);
	MHD_get_connection_values(r->connection->mhd, MHD_GET_ARGUMENT_KIND, take_param, a);
	if (a->path && !a->lacks_params)
		return a;
	api_request_free(a);
	return NULL;
}

/* Hands the question over; false: it is refused. */
static bool ask(struct request *r, struct api_request *a)
{
	a->job.path = a->path;
	a->job.params = (struct query_params){ a->items, a->count };
	a->job.done = on_answer;
	a->job.hides_addresses = !request_reads_addresses(r);
	if (query_thread_ask(r->server->queries, &a->job) == 0) {
		r->api = a;
		return true;
	}
	r->reply.retry_after_s = 1;
	reply_text(r, MHD_HTTP_SERVICE_UNAVAILABLE, "too many questions at once: try again\n");
	return false;
}

static struct api_request *begin(struct request *r)
{
	struct api_request *a = api_request_new(r);

	if (!a)
		refuse_memory(r);
	return a;
}

void page_api_symbols(struct request *r, int *fd, enum ingest_encoding encoding)
{
	struct api_request *a = begin(r);

	if (!a)
		return;
	a->job.symbols_fd = MOVE_FD(*fd);
	a->job.symbols_encoding = encoding;
	if (!ask(r, a))
		api_request_free(a);
}

void page_api_clear(struct request *r)
{
	struct api_request *a;

	if (!r->server->queries) {
		reply_text(r, MHD_HTTP_NOT_FOUND, "there is no store here: start hearth with --store DIR\n");
		return;
	}
	a = begin(r);
	if (!a)
		return;
	a->job.clears = true;
	if (!ask(r, a))
		api_request_free(a);
}

void page_api_question(struct request *r, const struct query_param *params, size_t count)
{
	struct api_request *a;

	if (!r->server->queries) {
		reply_text(r, MHD_HTTP_NOT_FOUND, "there is no store here: start hearth with --store DIR\n");
		return;
	}
	a = begin(r);
	for (size_t i = 0; a && i < count; i++)
		add_param(a, params[i].key, params[i].value);
	if (!a)
		return;
	a->job.pack = request_takes_gzip(r);
	if (a->lacks_params)
		refuse_memory(r);
	if (a->lacks_params || !ask(r, a))
		api_request_free(a);
}

/* Begins the question of @r for a live profile, or what else its path and parameters are. @process: of that alone; NULL. */
static void ask_for(struct request *r, const char *process)
{
	struct api_request *a = begin(r);

	if (!a)
		return;
	a->job.pack = request_takes_gzip(r);
	if (process && !add_param(a, "process", process))
		refuse_memory(r);
	if (r->reply.status || !choose_process(r, a) || (is_live_profile(a) && !begin_window(r, a)) || !ask(r, a))
		api_request_free(a);
}

void page_api_own(struct request *r)
{
	ask_for(r, API_OURSELVES);
}

const char *page_api_params(const struct request *r)
{
	return api_params(r->path);
}

void page_api(struct request *r)
{
	if (!r->server->queries) {
		reply_text(r, MHD_HTTP_NOT_FOUND, "there is no store here: start hearth with --store DIR\n");
		return;
	}
	if (strstr(r->path, "/pprof/") && page_api_pprof_extra(r))
		return;
	if (!api_params(r->path)) {
		metric_add(r->server->stats.rejected[REJECTED_PATH], 1);
		reply_text(r, MHD_HTTP_NOT_FOUND, "404 not found\n");
		return;
	}
	ask_for(r, NULL);
}
