/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OTLP receiver: headers judged before the body comes, then body -> (inflate) -> decode -> sink. A bad request is
 * refused whole and touches nothing else. The body's block is handed to the decoded model, which keeps strings in it.
 */
#include <stdlib.h>
#include <string.h>

#include "backend/http.h"
#include "backend/lazy_counters.h"
#include "base/metrics.h"
#include "proto/otlp.h"

#define VERSION_HEADER "otlp-profiles-development-version"
#define VERSION_SPOKEN "1"

/* The media type without its parameters, as we name it in the answer; NULL: none that we speak. */
static const char *otlp_content_type(const char *value)
{
	static const char *const spoken[] = { "application/x-protobuf", "application/protobuf" };
	size_t len = value ? strcspn(value, "; \t") : 0;
	for (size_t i = 0; i < sizeof(spoken) / sizeof(spoken[0]); i++)
		if (len == strlen(spoken[i]) && strncasecmp(value, spoken[i], len) == 0)
			return spoken[i];
	return NULL;
}

struct version_check {
	unsigned seen;
	bool bad;
};

static enum MHD_Result check_version(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct version_check *check = arg;
	(void)kind;
	if (strcasecmp(name, VERSION_HEADER) == 0) {
		size_t len = value ? strlen(value) : 0;
		while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
			len--;
		check->seen++;
		check->bad |= len != strlen(VERSION_SPOKEN) || memcmp(value, VERSION_SPOKEN, len) != 0;
	}
	return MHD_YES;
}

void receiver_begin(struct request *r)
{
	r->content_type = otlp_content_type(request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE));
	if (!r->content_type) {
		metric_add(r->server->stats.rejected[REJECTED_CONTENT_TYPE], 1);
		reply_text(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
			   "415 unsupported media type, supported: [application/x-protobuf]");
		return;
	}

	const char *encoding = request_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING);
	r->gzip = encoding && strcasecmp(encoding, "gzip") == 0;
	if (encoding && !r->gzip && encoding[0] && strcasecmp(encoding, "identity") != 0) {
		reply_refuse(r, MHD_HTTP_BAD_REQUEST, REJECTED_ENCODING,
			     "content encoding '%.64s' is not supported: send gzip or identity", encoding);
		return;
	}

	struct version_check check = { 0 };
	if (r->route->handle == receiver_profiles)
		MHD_get_connection_values(r->connection->mhd, MHD_HEADER_KIND, check_version, &check);
	if (check.bad || check.seen > 1)
		reply_refuse(r, MHD_HTTP_BAD_REQUEST, REJECTED_VERSION,
			     "header " VERSION_HEADER " must be absent or just " VERSION_SPOKEN
			     ": no other version is spoken here");
}

/* The body, inflated where needed. False: refused. */
static bool unpack(struct request *r)
{
	int ret = r->gzip ? body_gunzip(&r->body, r->server->max_receive_bytes) : 0;
	switch (ret) {
	case 0:
		return true;
	case -EBADMSG:
		reply_refuse(r, MHD_HTTP_BAD_REQUEST, REJECTED_MALFORMED,
			     "body is not one whole gzip member: cut, corrupt, or followed by something else");
		return false;
	case -EFBIG:
		reply_refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, REJECTED_TOO_LARGE,
			     "request body is larger than %zu bytes when unpacked: send smaller batches, or raise the limit",
			     r->server->max_receive_bytes);
		return false;
	default:
		reply_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_MEMORY,
			     "no memory to unpack the body now: try again");
		return false;
	}
}

/* A full success is an empty message. */
static void answer_sink(struct request *r, int ret)
{
	if (ret == 0)
		reply_body(r, MHD_HTTP_OK, r->content_type);
	else if (ret == -EAGAIN)
		reply_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_BUSY, "queues are full: try again");
	else
		reply_refuse(r, MHD_HTTP_INTERNAL_SERVER_ERROR, REJECTED_SINK, "what came could not be passed on: %s",
			     strerror(-ret));
}

/* NULL: refused. */
static struct profiles *decode(struct request *r)
{
	size_t len;
	uint8_t *data = body_take(&r->body, &len);
	struct profiles *p = NULL;
	struct otlp_error err;
	int ret = data ? otlp_decode(data, len, true, &p, &err) : -ENOMEM;
	if (ret == 0)
		return p;

	free(data);
	if (ret == -EBADMSG)
		reply_refuse(r, MHD_HTTP_BAD_REQUEST, REJECTED_MALFORMED, "%s", err.message);
	else
		reply_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_MEMORY,
			     "no memory to decode the body now: try again");
	return NULL;
}

static uint64_t count_profiles(const struct profiles *p)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < p->resource_count; i++)
		for (uint32_t j = 0; j < p->resources[i].scope_count; j++)
			count += p->resources[i].scopes[j].profile_count;
	return count;
}

/*
 * Sinks that are not durable never complete an ack, so none is given and the answer follows consume() at once. A durable
 * sink makes this the place where the request is suspended with an ack, whose done() brings it back to the loop's thread for
 * answer_sink().
 */
void receiver_profiles(struct request *r)
{
	struct server *s = r->server;
	if (!unpack(r))
		return;
	struct profiles *p = decode(r);
	if (!p)
		return;

	int ret = sink_consume(s->out, p, NULL);
	if (ret == 0) {
		metric_add(s->stats.received_profiles, count_profiles(p));
		metric_add(s->stats.received_samples, p->sample_events);
		lazy_counters_add(s->lazy, p);
	}
	profiles_put(p);
	answer_sink(r, ret);
}

void receiver_other(struct request *r)
{
	if (!unpack(r))
		return;
	const uint8_t *data = r->body.data ? r->body.data : (const uint8_t *)"";
	answer_sink(r, sink_consume_other(r->server->out, r->route->signal, data, r->body.len));
}
