/* SPDX-License-Identifier: Apache-2.0 */
/* The hash by which a copy of an image is named, and by which it is told whether it came whole. */
#ifndef HEARTH_APPIMAGE_HASH_H
#define HEARTH_APPIMAGE_HASH_H

#include <stddef.h>
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Behind the squashfs stands this, the hash of all its bytes, and a line feed; one that somebody packed anew may lack that.
 */
#define HASH_MARK "hearth-image "
enum { HASH_DIGITS = 32 };

/* Writes the hash of @len @bytes as hexadecimal digits. */
static inline void hash_text(const void *bytes, size_t len, char text_ret[static HASH_DIGITS + 1])
{
	const XXH128_hash_t hash = XXH3_128bits(bytes, len);

	snprintf(text_ret, HASH_DIGITS + 1, "%016llx%016llx", (unsigned long long)hash.high64,
		 (unsigned long long)hash.low64);
}

#endif
