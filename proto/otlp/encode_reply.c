/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that answer a request: google.rpc.Status, with its details, and partial successes. */
#include <errno.h>

#include "base/clock.h"
#include "base/text/utf8.h"
#include "proto/otlp/pen.h"
#include "proto/otlp/fields.h"

/* A message may quote what the other side sent: made UTF-8 first, or nobody could read the answer. */
static void put_text(struct encoder *e, uint32_t tag, const char *text)
{
	struct buf clean = BUF_EMPTY;

	utf8_append_clean(&clean, text, strlen(text));
	if (clean.failed)
		e->out->failed = true;
	put_str(e, tag, (struct str){ buf_text(&clean), (uint32_t)clean.len });
	buf_fini(&clean);
}

int otlp_encode_status(int32_t grpc_code, const char *message, struct buf *out)
{
	struct encoder e = { .out = out };

	put_number(&e, STATUS_TAG(Status, code), (uint64_t)grpc_code);
	put_text(&e, STATUS_TAG(Status, message), message);
	return out->failed ? -ENOMEM : 0;
}

#define RETRY_INFO_URL "type.googleapis.com/google.rpc.RetryInfo"

int otlp_encode_retry_status(int32_t grpc_code, const char *message, uint64_t retry_delay_ns, struct buf *out)
{
	int ret = otlp_encode_status(grpc_code, message, out);
	struct encoder e = { .out = out };
	size_t details = begin(&e, STATUS_TAG(Status, details)), value, delay;

	put_text(&e, STATUS_TAG(Any, type_url), RETRY_INFO_URL);
	value = begin(&e, STATUS_TAG(Any, value));
	delay = begin(&e, STATUS_TAG(RetryInfo, retry_delay));
	put_number(&e, STATUS_TAG(Duration, seconds), retry_delay_ns / NSEC_PER_SEC);
	put_number(&e, STATUS_TAG(Duration, nanos), retry_delay_ns % NSEC_PER_SEC);
	end(&e, delay);
	end(&e, value);
	end(&e, details);
	return ret || out->failed ? -ENOMEM : 0;
}

int otlp_encode_partial_success(int64_t rejected_profiles, const char *message, struct buf *out)
{
	struct encoder e = { .out = out };
	size_t before = out->len, at = begin(&e, SERVICE_TAG(ExportProfilesServiceResponse, partial_success));

	put_number(&e, SERVICE_TAG(ExportProfilesPartialSuccess, rejected_profiles), (uint64_t)rejected_profiles);
	put_text(&e, SERVICE_TAG(ExportProfilesPartialSuccess, error_message), message);
	if (out->len > at)
		end(&e, at);
	else
		out->len = before;
	return out->failed ? -ENOMEM : 0;
}
