/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP over HTTP: headers are judged before the body comes, the whole body is handed to ingest, and the outcome becomes a
 * status code and message of the specification.
 */
#include <string.h>

#include "backend/routes/handlers.h"
#include "base/cleanup.h"
#include "base/metrics.h"

#define VERSION_HEADER "otlp-profiles-development-version"
#define VERSION_SPOKEN "1"

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
	struct ingest_request *ingest = &r->ingest;

	if (!r->content_type) {
		metric_add(r->server->stats.rejected[REJECTED_CONTENT_TYPE], 1);
		reply_text(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
			   "415 unsupported media type, supported: [application/json, application/x-protobuf]");
		return;
	}
	ingest->signal = r->route->signal;

	if (!request_encoding(r, &ingest->encoding))
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
