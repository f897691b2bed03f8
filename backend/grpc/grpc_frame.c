/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's "Length-Prefixed-Message". Invariant: received <= len, and len is 0 until the prefix is whole. Pure. */
#include "backend/grpc/grpc_frame.h"

static uint32_t length_of(const uint8_t prefix[static GRPC_PREFIX_BYTES])
{
	return (uint32_t)prefix[1] << 24 | (uint32_t)prefix[2] << 16 | (uint32_t)prefix[3] << 8 | prefix[4];
}

enum grpc_frame_step grpc_frame_next(struct grpc_frame *f, const uint8_t **p, const uint8_t *end, const uint8_t **data_ret,
				     size_t *len_ret)
{
	if (f->prefix_len < GRPC_PREFIX_BYTES) {
		while (*p < end && f->prefix_len < GRPC_PREFIX_BYTES)
			f->prefix[f->prefix_len++] = *(*p)++;
		if (f->prefix_len && f->prefix[0] > 1)
			return GRPC_FRAME_BAD;
		if (f->prefix_len < GRPC_PREFIX_BYTES)
			return GRPC_FRAME_MORE;
		f->is_compressed = f->prefix[0];
		f->len = length_of(f->prefix);
		return GRPC_FRAME_PREFIX;
	}
	if (*p == end)
		return GRPC_FRAME_MORE;
	if (f->received == f->len)
		return GRPC_FRAME_SURPLUS;

	size_t len = (size_t)(end - *p);
	if (len > f->len - f->received)
		len = f->len - f->received;
	*data_ret = *p;
	*len_ret = len;
	*p += len;
	f->received += (uint32_t)len;
	return GRPC_FRAME_DATA;
}
