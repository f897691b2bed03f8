/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is the including test's array `bytes`, of BYTES bytes, from address BYTES_AT on (0 unless the test says
 * another). */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#ifndef BYTES_AT
#define BYTES_AT 0
#endif

/* As struct code_memory's read. */
static int read_made(void *arg, uint64_t addr, void *dst, size_t len)
{
	uint64_t off = addr - BYTES_AT;

	(void)arg;
	if (off > BYTES || len > BYTES - off)
		return -EFAULT;
	memcpy(dst, bytes + off, len);
	return 0;
}

/* Puts the low @size bytes of @value at offset @at. */
static inline void put(uint32_t at, uint64_t value, uint32_t size)
{
	memcpy(bytes + at, &value, size);
}
