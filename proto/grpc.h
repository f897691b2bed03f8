/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that sender and receiver of OTLP/gRPC share: gRPC's status codes, and the prefix of a message on the wire.
 * Stateless. */
#ifndef HEARTH_PROTO_GRPC_H
#define HEARTH_PROTO_GRPC_H

#include <stdbool.h>
#include <stdint.h>

/* gRPC's "Status codes and their use". */
enum grpc_code {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_ALREADY_EXISTS = 6,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_ABORTED = 10,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16,
	GRPC_CODE_COUNT,
};

/* "UNAVAILABLE"; @code is below GRPC_CODE_COUNT. */
const char *grpc_code_name(enum grpc_code code);

enum { GRPC_PREFIX_BYTES = 5 };

/* The five bytes in front of a message of @len bytes: whether it is compressed, and its length, most significant byte first.
 */
void grpc_prefix(uint8_t prefix[static GRPC_PREFIX_BYTES], bool is_compressed, uint32_t len);

#endif
