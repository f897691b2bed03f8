/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc.health.v1.Health. Check says how a service is, Watch says it again whenever that changes, which here is once: when
 * the server stops. Messages: HealthCheckRequest {1 service}, HealthCheckResponse {1 status}.
 */
#include <string.h>

#include "backend/grpc/grpc_internal.h"
#include "base/cleanup.h"
#include "base/pack/gzip.h"
#include "proto/wire.h"

enum serving_status { STATUS_NEVER_TOLD = 0, STATUS_SERVING = 1, STATUS_NOT_SERVING = 2, STATUS_SERVICE_UNKNOWN = 3 };

enum { REQUEST_SERVICE = 1, RESPONSE_STATUS = 1, UNPACKED_MAX_BYTES = 4 << 10 };

/* The last "service" in the message; false when it is none. */
static bool read_service(const uint8_t *p, size_t message_len, const char **name_ret, size_t *len_ret)
{
	const uint8_t *end = message_len ? p + message_len : p;

	*name_ret = "";
	*len_ret = 0;
	while (p < end) {
		uint32_t field;
		unsigned wire;

		p = wire_tag(p, end, &field, &wire);
		if (!p)
			return false;
		if (field == REQUEST_SERVICE && wire == WIRE_BYTES) {
			p = wire_length(p, end, len_ret);
			*name_ret = (const char *)p;
			p = p ? p + *len_ret : NULL;
		} else {
			p = wire_skip(p, end, wire);
		}
		if (!p)
			return false;
	}
	return true;
}

static enum serving_status status_of(const struct grpc_call *call, const char *service, size_t len)
{
	if (len && !grpc_method_has_service(service, len)) /* "" is the whole server */
		return STATUS_SERVICE_UNKNOWN;
	return call->connection->server->stopping ? STATUS_NOT_SERVING : STATUS_SERVING;
}

static void watch(struct grpc_call *call, enum serving_status status)
{
	const uint8_t message[] = { RESPONSE_STATUS << 3 | WIRE_VARINT, (uint8_t)status };

	call->phase = GRPC_CALL_WATCHING;
	call->watched_status = status;
	grpc_call_append(call, message, sizeof(message));
	grpc_session_respond(call);
	if (call->connection->server->stopping)
		grpc_health_tell(call);
}

static void answer(struct grpc_call *call, const uint8_t *message, size_t len)
{
	const char *service;
	size_t service_len;

	if (!read_service(message, len, &service, &service_len)) {
		grpc_call_fail(call, GRPC_INTERNAL, REJECTED_MALFORMED, "not a HealthCheckRequest");
		return;
	}
	enum serving_status status = status_of(call, service, service_len);
	const uint8_t response[] = { RESPONSE_STATUS << 3 | WIRE_VARINT, (uint8_t)status };

	if (call->method->kind == GRPC_HEALTH_WATCH)
		watch(call, status);
	else if (status == STATUS_SERVICE_UNKNOWN)
		grpc_call_fail(call, GRPC_NOT_FOUND, REJECTED_PATH, "unknown service: '%.*s'",
			       (int)(service_len < 128 ? service_len : 128), service);
	else
		grpc_call_succeed(call, response, sizeof(response));
}

void grpc_health_take(struct grpc_call *call)
{
	AUTO(buf_fini) struct buf unpacked = BUF_EMPTY;

	if (!call->frame.is_compressed) {
		answer(call, call->early.data, call->early.len);
		return;
	}
	if (call->encoding != ENCODING_GZIP)
		grpc_call_fail(call, GRPC_UNIMPLEMENTED, REJECTED_ENCODING, "only gzip is understood here");
	else if (gzip_unpack(call->early.data, call->early.len, UNPACKED_MAX_BYTES, &unpacked))
		grpc_call_fail(call, GRPC_INTERNAL, REJECTED_MALFORMED, "a message that does not unpack");
	else
		answer(call, unpacked.data, unpacked.len);
}

void grpc_health_tell(struct grpc_call *call)
{
	const uint8_t message[] = { RESPONSE_STATUS << 3 | WIRE_VARINT, STATUS_NOT_SERVING };

	if (call->watched_status == STATUS_SERVING) {
		call->watched_status = STATUS_NOT_SERVING;
		grpc_call_append(call, message, sizeof(message));
	}
	grpc_call_fail(call, GRPC_UNAVAILABLE, REJECTED_BUSY, "the server stops");
}
