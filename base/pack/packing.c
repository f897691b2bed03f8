/* SPDX-License-Identifier: Apache-2.0 */
/* The table of packings. */
#include "base/pack/packing.h"

#include "base/cleanup.h"
#include "base/pack/gzip.h"
#include "base/pack/xz.h"
#include "base/pack/zstd.h"

static const struct packing packings[] = {
	{ "gzip", gzip_is_packed, gzip_unpack },
	{ "zstd", zstd_is_packed, zstd_unpack },
	{ "xz", xz_is_packed, xz_unpack },
};

const struct packing *packing_of(const void *data, size_t len_bytes)
{
	for (size_t i = 0; i < ARRAY_LEN(packings); i++)
		if (packings[i].is_packed(data, len_bytes))
			return &packings[i];
	return NULL;
}
