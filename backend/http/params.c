/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters behind "?" of a request. One that its path does not take, or takes once and got twice, is refused: the
 * answer would not be of what was asked, and nothing in it would say so. Loop's thread only.
 */
#include <string.h>

#include "backend/http/http.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/text/json.h"

enum { MOST_NAMES = 64 }; /* of a path; it does not take those beyond */

struct judged {
	const char *names; /* as route.params tells them */
	uint64_t seen;	   /* which of them, by place */
	const char *wrong; /* the first that is; NULL: none so far */
	bool is_twice;
};

/* The place of @key in @names, MOST_NAMES: it is not there. */
static unsigned place_of(const char *names, const char *key)
{
	const size_t len = strlen(key);
	unsigned place = 0;

	for (size_t n; *names && place < MOST_NAMES; names += n + (names[n] == ' '), place++) {
		n = strcspn(names, " ");
		if (n == len && !memcmp(names, key, len))
			return place;
	}
	return MOST_NAMES;
}

static enum MHD_Result judge_param(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct judged *j = arg;
	const unsigned place = place_of(j->names, key);

	(void)kind;
	if (!*key && !value) /* nothing, as in "?&from=now" */
		return MHD_YES;
	j->is_twice = place < MOST_NAMES && j->seen >> place & 1;
	if (place == MOST_NAMES || j->is_twice) {
		j->wrong = key;
		return MHD_NO;
	}
	j->seen |= 1ull << place;
	return MHD_YES;
}

static void explain(const struct judged *j, const char *path, struct buf *out)
{
	if (j->is_twice) {
		buf_printf(out, "'%.100s' is given twice: %.200s takes it once", j->wrong, path);
		return;
	}
	buf_printf(out, "'%.100s' is no parameter of %.200s, which takes", j->wrong, path);
	buf_puts(out, *j->names ? ": " : " none");
	for (const char *c = j->names; *c; c++) {
		if (*c == ' ')
			buf_putc(out, ',');
		buf_putc(out, *c);
	}
}

bool request_judge_params(struct request *r)
{
	static const struct reply_header headers[] = { { "X-Content-Type-Options", "nosniff" }, { NULL, NULL } };
	struct judged judged = { .names = r->route->params ? r->route->params(r) : "" };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct json j;

	if (judged.names)
		MHD_get_connection_values(r->connection->mhd, MHD_GET_ARGUMENT_KIND, judge_param, &judged);
	if (!judged.wrong)
		return true;
	explain(&judged, r->path, &text);
	if (r->route->write_error) {
		r->route->write_error(&r->reply.body, MHD_HTTP_BAD_REQUEST, buf_text(&text));
	} else {
		json_init(&j, &r->reply.body, 0);
		json_object_begin(&j);
		json_key(&j, "error");
		json_string(&j, buf_text(&text));
		json_object_end(&j);
	}
	metric_add(r->server->stats.rejected[REJECTED_PARAMETER], 1);
	r->reply.headers = headers;
	reply_body(r, MHD_HTTP_BAD_REQUEST, CONTENT_TYPE_JSON);
	return false;
}
