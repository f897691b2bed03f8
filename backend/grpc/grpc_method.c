/* SPDX-License-Identifier: Apache-2.0 */
/* The methods that are served: OTLP's four Exports and gRPC's health service. Constant. */
#include <string.h>

#include "backend/grpc/grpc_internal.h"
#include "base/cleanup.h"

#define COLLECTOR "opentelemetry.proto.collector."
#define HEALTH	  "grpc.health.v1.Health"

static const struct grpc_method methods[] = {
	{ COLLECTOR "profiles.v1development.ProfilesService", "Export", GRPC_EXPORT, INGEST_PROFILES },
	{ COLLECTOR "logs.v1.LogsService", "Export", GRPC_EXPORT, INGEST_LOGS },
	{ COLLECTOR "metrics.v1.MetricsService", "Export", GRPC_EXPORT, INGEST_METRICS },
	{ COLLECTOR "trace.v1.TraceService", "Export", GRPC_EXPORT, INGEST_TRACES },
	{ HEALTH, "Check", .kind = GRPC_HEALTH_CHECK },
	{ HEALTH, "Watch", .kind = GRPC_HEALTH_WATCH },
};
_Static_assert(ARRAY_LEN(methods) <= GRPC_METHODS_MAX, "a row of counters for each");

static bool is_text(const char *text, const char *s, size_t len)
{
	return strlen(text) == len && memcmp(text, s, len) == 0;
}

bool grpc_method_has_service(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (is_text(methods[i].service, name, len))
			return true;
	return false;
}

const struct grpc_method *grpc_method_find(const char *path, size_t len, const char **why_ret)
{
	const char *end = path + len, *slash = len && path[0] == '/' ? memchr(path + 1, '/', len - 1) : NULL;

	if (!slash) {
		*why_ret = "not a path of a gRPC method";
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (is_text(methods[i].service, path + 1, (size_t)(slash - path - 1)) &&
		    is_text(methods[i].name, slash + 1, (size_t)(end - slash - 1)))
			return &methods[i];
	*why_ret = grpc_method_has_service(path + 1, (size_t)(slash - path - 1)) ? "unknown method" : "unknown service";
	return NULL;
}

size_t grpc_method_index(const struct grpc_method *method)
{
	return (size_t)(method - methods);
}
