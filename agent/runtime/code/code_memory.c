/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/runtime/code/code_memory.h"
#include "base/clock.h"

/* This thread's processor time. */
static uint64_t used_ns(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* --- pages --- */

enum { PAGE_BYTES = 4096, PAGES = 128 };

struct code_pages {
	uint64_t request;
	struct {
		uint64_t addr, request; /* of another request: nothing is there */
		int error;
	} page[PAGES];
	uint8_t bytes[PAGES][PAGE_BYTES];
};

void code_memory_forget(struct code_memory *m)
{
	if (m->pages)
		m->pages->request++;
}

static int read_by_fd(void *arg, uint64_t addr, void *dst, size_t len)
{
	const int *fd = arg;
	ssize_t n = pread(*fd, dst, len, (off_t)addr);

	return n == (ssize_t)len ? 0 : -EFAULT;
}

/* Of a file's last page, which may end within it, what is behind the end is zeros. */
static int read_file(void *arg, uint64_t addr, void *dst, size_t len)
{
	const int *fd = arg;
	ssize_t n = pread(*fd, dst, len, (off_t)addr);

	if (n <= 0)
		return -EFAULT;
	memset((uint8_t *)dst + n, 0, len - (size_t)n);
	return 0;
}

static int read_bytes(void *arg, uint64_t addr, void *dst, size_t len)
{
	const struct code_bytes *b = arg;
	size_t n = addr < b->len ? b->len - addr : 0;

	if (!n)
		return -EFAULT;
	if (n > len)
		n = len;
	memcpy(dst, b->data + addr, n);
	memset((uint8_t *)dst + n, 0, len - n);
	return 0;
}

static void make(int (*read)(void *arg, uint64_t addr, void *dst, size_t len), void *arg, struct code_pages *pages,
		 uint64_t end_ns, struct code_memory *ret)
{
	*ret = (struct code_memory){
		.read = read,
		.arg = arg,
		.reads_left = CODE_MAX_READS,
		.bytes_left = CODE_MAX_BYTES,
		.end_ns = end_ns,
		.pages = pages,
	};
	code_memory_forget(ret);
}

void code_memory_of_process(int *fd, struct code_memory *ret)
{
	static struct code_pages pages; /* one process is read at a time */

	make(read_by_fd, fd, &pages, used_ns() + CODE_MAX_MS * NSEC_PER_MSEC, ret);
}

static struct code_pages file_pages; /* and one file */

void code_memory_of_file(int *fd, uint64_t end_ns, struct code_memory *ret)
{
	make(read_file, fd, &file_pages, end_ns, ret);
}

void code_memory_of_bytes(const struct code_bytes *bytes, uint64_t end_ns, struct code_memory *ret)
{
	make(read_bytes, (void *)(uintptr_t)bytes, &file_pages, end_ns, ret);
}

/* Takes a read of @len bytes out of the budget. The clock is looked at now and then. */
static bool take(struct code_memory *m, size_t len)
{
	enum { LOOKS = 64 };

	if (m->reads_left && m->reads_left % LOOKS == 0 && m->end_ns != UINT64_MAX && used_ns() > m->end_ns)
		m->reads_left = 0;
	if (!m->reads_left || len > m->bytes_left) {
		m->is_spent = true;
		return false;
	}
	m->reads_left--;
	m->bytes_left -= len;
	return true;
}

static int read_now(struct code_memory *m, uint64_t addr, void *dst, size_t len)
{
	return take(m, len) ? m->read(m->arg, addr, dst, len) : -EDQUOT;
}

/* The page at @addr, in *@ret, read if it was not yet. */
static int find_page(struct code_memory *m, uint64_t addr, const uint8_t **ret)
{
	struct code_pages *p = m->pages;
	uint32_t i = (uint32_t)(addr / PAGE_BYTES * 0x9E3779B1u >> 16) % PAGES;

	*ret = p->bytes[i];
	if (p->page[i].addr == addr && p->page[i].request == p->request)
		return p->page[i].error;
	p->page[i].addr = addr;
	p->page[i].request = p->request;
	p->page[i].error = read_now(m, addr, p->bytes[i], PAGE_BYTES);
	return p->page[i].error;
}

static int read_by_pages(struct code_memory *m, uint64_t addr, uint8_t *dst, size_t len)
{
	while (len) {
		size_t off = addr % PAGE_BYTES, n = PAGE_BYTES - off < len ? PAGE_BYTES - off : len;
		const uint8_t *bytes;
		int error = find_page(m, addr - off, &bytes);

		if (error)
			return error;
		memcpy(dst, bytes + off, n);
		addr += n;
		dst += n;
		len -= n;
	}
	return 0;
}

int code_read(struct code_memory *m, uint64_t addr, void *dst, size_t len)
{
	enum { SMALL = 1024 };
	int error = addr > INT64_MAX || len > INT64_MAX - addr ? -EFAULT : 0;

	if (!error && len)
		error = m->pages && len <= SMALL ? read_by_pages(m, addr, dst, len) : read_now(m, addr, dst, len);
	if (error)
		memset(dst, 0, len);
	return error;
}

uint64_t code_read_u64(struct code_memory *m, uint64_t addr)
{
	uint64_t value;

	(void)code_read(m, addr, &value, sizeof(value));
	return value;
}

uint32_t code_read_u32(struct code_memory *m, uint64_t addr)
{
	uint32_t value;

	(void)code_read(m, addr, &value, sizeof(value));
	return value;
}

uint16_t code_read_u16(struct code_memory *m, uint64_t addr)
{
	uint16_t value;

	(void)code_read(m, addr, &value, sizeof(value));
	return value;
}

uint8_t code_read_u8(struct code_memory *m, uint64_t addr)
{
	uint8_t value;

	(void)code_read(m, addr, &value, sizeof(value));
	return value;
}

int code_read_text(struct code_memory *m, uint64_t addr, char *dst, size_t max)
{
	enum { CHUNK = 64, PAGE = 4096 };
	size_t len = 0;

	while (len < max) {
		size_t left = PAGE - (addr + len) % PAGE, want = left < CHUNK ? left : CHUNK;
		int error;

		if (want > max - len)
			want = max - len;
		error = code_read(m, addr + len, dst + len, want);
		if (error)
			return error;
		if (memchr(dst + len, '\0', want))
			return 0;
		len += want;
	}
	return -ENAMETOOLONG;
}
