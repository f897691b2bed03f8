/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers out of bytes that may stand anywhere, in the order of this machine. Stateless; any thread. */
#ifndef HEARTH_BASE_BYTES_H
#define HEARTH_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

/* The 4 bytes at @p. */
static inline uint32_t bytes_u32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* The 8 bytes at @p. */
static inline uint64_t bytes_u64(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

#endif
