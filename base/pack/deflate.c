/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pack/deflate.h"

#include <errno.h>
#include <libdeflate.h>

int deflate_unpack(const void *data, size_t len_bytes, void *out, size_t out_bytes)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	enum libdeflate_result result;

	if (!d)
		return -ENOMEM;
	/* no place for the length: it must be exact */
	result = libdeflate_deflate_decompress(d, data, len_bytes, out, out_bytes, NULL);
	libdeflate_free_decompressor(d);
	return result == LIBDEFLATE_SUCCESS ? 0 : -EBADMSG;
}
