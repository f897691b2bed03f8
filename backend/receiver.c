/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP over HTTP: headers judged before the body comes, the whole body handed to ingest, and what became of it put into the
 * status codes and messages that the specification has for it.
 */
#include <string.h>

#include "backend/http.h"
#include "base/cleanup.h"
#include "base/metrics.h"

#define VERSION_HEADER "otlp-profiles-development-version"
#define VERSION_SPOKEN "1"

/* The media type without its parameters, as we name it in the answer; NULL: none that we speak. */
static const char *otlp_content_type(const char *value)
{
	static const char *const spoken[] = { "application/x-protobuf", "application/protobuf", CONTENT_TYPE_JSON };
	size_t len = value ? strcspn(value, "; \t") : 0;
	for (size_t i = 0; i < ARRAY_LEN(spoken); i++)
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

/* False: one that we do not speak. */
static bool content_encoding(const char *value, enum ingest_encoding *ret)
{
	*ret = ENCODING_IDENTITY;
	if (!value || !value[0] || strcasecmp(value, "identity") == 0)
		return true;
	*ret = strcasecmp(value, "zstd") == 0 ? ENCODING_ZSTD : ENCODING_GZIP;
	return *ret == ENCODING_ZSTD || strcasecmp(value, "gzip") == 0;
}

bool receiver_encoding(struct request *r, enum ingest_encoding *ret)
{
	const char *encoding = request_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING);

	if (content_encoding(encoding, ret))
		return true;
	reply_refuse(r, MHD_HTTP_BAD_REQUEST, REJECTED_ENCODING,
		     "content encoding '%.64s' is not supported: send gzip, zstd or identity", encoding);
	return false;
}

bool receiver_speaks(struct request *r)
{
	r->content_type = otlp_content_type(request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE));
	if (r->content_type && strcmp(r->content_type, CONTENT_TYPE_JSON) == 0)
		r->ingest.format = FORMAT_JSON;
	return r->content_type;
}

void receiver_begin(struct request *r)
{
	struct ingest_request *ingest = &r->ingest;

	if (!r->content_type) {
		metric_add(r->server->stats.rejected[REJECTED_CONTENT_TYPE], 1);
		reply_text(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
			   "415 unsupported media type, supported: [application/json, application/x-protobuf]");
		return;
	}
	ingest->signal = r->route->signal;

	if (!receiver_encoding(r, &ingest->encoding))
		return;

	struct version_check check = { 0 };
	if (ingest->signal == INGEST_PROFILES)
		MHD_get_connection_values(r->connection->mhd, MHD_HEADER_KIND, check_version, &check);
	ingest->version_said = check.seen;
	if (check.bad || check.seen > 1)
		reply_refuse(r, MHD_HTTP_BAD_REQUEST, REJECTED_VERSION,
			     "header " VERSION_HEADER " must be absent or just " VERSION_SPOKEN
			     ": no other version is spoken here");
}

static void on_done(struct ingest_request *ingest, const struct ingest_answer *answer)
{
	static const struct {
		unsigned status;
		enum rejection why;
	} refusals[INGEST_OUTCOMES] = {
		[INGEST_MALFORMED] = { MHD_HTTP_BAD_REQUEST, REJECTED_MALFORMED },
		[INGEST_UNSUPPORTED] = { MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, REJECTED_CONTENT_TYPE },
		[INGEST_TOO_LARGE] = { MHD_HTTP_CONTENT_TOO_LARGE, REJECTED_TOO_LARGE },
		[INGEST_BUSY] = { MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_BUSY },
		[INGEST_NO_MEMORY] = { MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_MEMORY },
		[INGEST_NO_ROOM] = { MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_SINK },
		[INGEST_FAILED] = { MHD_HTTP_INTERNAL_SERVER_ERROR, REJECTED_SINK },
	};
	struct request *r = (struct request *)((char *)ingest - offsetof(struct request, ingest));

	if (refusals[answer->outcome].status)
		reply_refuse(r, refusals[answer->outcome].status, refusals[answer->outcome].why, "%s", answer->message);
	else
		reply_taken(r, answer->rejected, answer->message);
	request_resume(r);
}

void receiver_take(struct request *r)
{
	r->ingest.done = on_done;
	ingest_take(r->server->ingest, &r->ingest);
}
