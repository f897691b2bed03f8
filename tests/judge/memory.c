/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the stopped program, kept until it runs again. */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "tests/judge/judge.h"

enum { PAGE_BYTES = 4096, KEPT_PAGES = 512 };

struct page {
	uint64_t addr;
	uint64_t stop; /* the stop it was read at */
	bool is_readable;
	uint8_t data[PAGE_BYTES];
};

struct memory {
	pid_t pid;
	uint64_t stop;
	struct page pages[KEPT_PAGES];
};

struct memory *memory_new(pid_t pid)
{
	struct memory *m = calloc(1, sizeof(*m));

	if (m) {
		m->pid = pid;
		m->stop = 1;
	}
	return m;
}

void memory_free(struct memory *m)
{
	free(m);
}

void memory_forget(struct memory *m)
{
	m->stop++;
}

static const struct page *page_at(struct memory *m, uint64_t addr)
{
	struct page *p = &m->pages[addr / PAGE_BYTES % KEPT_PAGES];
	struct iovec here = { p->data, PAGE_BYTES }, there = { (void *)(uintptr_t)addr, PAGE_BYTES };

	if (p->stop != m->stop || p->addr != addr) {
		p->is_readable = process_vm_readv(m->pid, &here, 1, &there, 1, 0) == PAGE_BYTES;
		p->addr = addr;
		p->stop = m->stop;
	}
	return p->is_readable ? p : NULL;
}

size_t memory_copy(struct memory *m, uint64_t addr, void *dst, size_t len)
{
	size_t done = 0;

	while (done < len) {
		uint64_t off = (addr + done) % PAGE_BYTES;
		const struct page *p = page_at(m, addr + done - off);
		size_t take = PAGE_BYTES - off < len - done ? PAGE_BYTES - off : len - done;

		if (!p)
			break;
		memcpy((uint8_t *)dst + done, p->data + off, take);
		done += take;
	}
	return done;
}

int memory_read(struct memory *m, uint64_t addr, void *dst, size_t len)
{
	return memory_copy(m, addr, dst, len) != len;
}
