/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a struct fake is: FAKE_BYTES bytes at FAKE_BASE, in its `bytes`, of which `used` are taken. Included by a
 * fake_NAME.h, behind its struct fake. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

/* As struct code_memory's read. */
static inline int fake_read(void *arg, uint64_t addr, void *dst, size_t len)
{
	const struct fake *f = arg;
	uint64_t off = addr - FAKE_BASE;

	if (off > FAKE_BYTES || len > FAKE_BYTES - off)
		return -EFAULT;
	memcpy(dst, f->bytes + off, len);
	return 0;
}

static inline void *fake_at(struct fake *f, uint64_t addr)
{
	return f->bytes + (addr - FAKE_BASE);
}

static inline void fake_put(struct fake *f, uint64_t addr, uint64_t value, uint32_t bytes)
{
	memcpy(fake_at(f, addr), &value, bytes);
}

/* Takes @bytes that nothing has yet; their address. */
static inline uint64_t fake_take(struct fake *f, uint32_t bytes)
{
	uint64_t addr = FAKE_BASE + f->used;

	f->used += (bytes + 15) & ~15u;
	return addr;
}
