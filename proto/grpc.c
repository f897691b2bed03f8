/* SPDX-License-Identifier: Apache-2.0 */
/* The names of gRPC's codes, in the order of their numbers, and its message prefix. No state. */
#include "proto/grpc.h"

static const char *const names[GRPC_CODE_COUNT] = {
	"OK",	     "CANCELLED",	"UNKNOWN",	     "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
	"NOT_FOUND", "ALREADY_EXISTS",	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
	"ABORTED",   "OUT_OF_RANGE",	"UNIMPLEMENTED",     "INTERNAL",	   "UNAVAILABLE",
	"DATA_LOSS", "UNAUTHENTICATED",
};

const char *grpc_code_name(enum grpc_code code)
{
	return names[code];
}

void grpc_prefix(uint8_t prefix[static GRPC_PREFIX_BYTES], bool is_compressed, uint32_t len)
{
	prefix[0] = is_compressed;
	for (int i = 0; i < 4; i++)
		prefix[1 + i] = (uint8_t)(len >> (24 - 8 * i));
}
