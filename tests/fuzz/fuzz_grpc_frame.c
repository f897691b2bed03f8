/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a stream of gRPC messages, cut where the first byte says; and as the values of its headers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/grpc/grpc_frame.h"
#include "backend/grpc/grpc_text.h"

static void read_stream(const uint8_t *data, size_t len, size_t piece)
{
	struct grpc_frame f = { 0 };
	uint64_t taken = 0;

	for (size_t at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece, data_len;
		const uint8_t *p = data + at, *end = p + n, *part;
		enum grpc_frame_step step;

		while ((step = grpc_frame_next(&f, &p, end, &part, &data_len)) != GRPC_FRAME_MORE) {
			if (step == GRPC_FRAME_BAD || step == GRPC_FRAME_SURPLUS)
				return;
			if (step == GRPC_FRAME_DATA && (part < data + at || data_len == 0 || part + data_len != p))
				abort();
			taken += step == GRPC_FRAME_DATA ? data_len : 0;
		}
		if (p != end || taken != f.received || f.received > f.len)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t ns;

	if (len < 2)
		return 0;
	read_stream(data + 1, len - 1, (size_t)data[0] + 1);
	grpc_parse_timeout((const char *)data, len, &ns);
	grpc_is_content_type((const char *)data, len);
	return 0;
}
