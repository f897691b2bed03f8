/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is the including test's array `bytes`, of BYTES bytes, from address 0 on. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

/* As struct code_memory's read. */
static int read_made(void *arg, uint64_t addr, void *dst, size_t len)
{
	(void)arg;
	if (addr > BYTES || len > BYTES - addr)
		return -EFAULT;
	memcpy(dst, bytes + addr, len);
	return 0;
}
