/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process that lies: the input is changes of a made-up one, four bytes each: how many bytes further, two
 * bytes; what to put there; how many times, 0 to 255. Included behind a fake_NAME.h, which has the made-up one.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/helper/code_service.h"
#include "base/buf.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fake_change(struct fake *f, const uint8_t *data, size_t size)
{
	uint32_t at = 0;

	for (size_t i = 0; i + 4 <= size; i += 4) {
		at = (at + (data[i] | data[i + 1] << 8)) % FAKE_BYTES;
		for (uint32_t k = 0; k <= data[i + 3] && at + k < FAKE_BYTES; k++)
			f->bytes[at + k] = data[i + 2];
	}
}

/* The changed memory as a file, which the service reads that the agent asks. */
struct fake_process {
	struct elf_service *service;
	int fd;
};

static inline void fake_process_begin(struct fake_process *p, struct fake *f, const uint8_t *data, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("memory", MFD_CLOEXEC);
	REQUIRE(fd >= 0 && !code_service_new(&p->service));
	fake_change(f, data, size);
	REQUIRE(pwrite(fd, f->bytes, sizeof(f->bytes), (off_t)FAKE_BASE) == sizeof(f->bytes));
	p->fd = fd;
}

/* Asks as the agent does: an answer is one that the agent believes. */
static inline void fake_process_ask(struct fake_process *p, const struct code_request *r, const void *more,
				    size_t more_bytes)
{
	const struct elf_request request = { .op = ELF_OP_CODE, .file = 1 };
	struct buf what = BUF_EMPTY, reply = BUF_EMPTY;

	buf_append(&what, r, sizeof(*r));
	buf_append(&what, more, more_bytes);
	if (!elf_service_call(p->service, &request, p->fd, what.data, what.len, &reply))
		REQUIRE(code_reply_is_sound(r, reply.data, reply.len));
	buf_fini(&what);
	buf_fini(&reply);
}

/* Asks for the code of @range, and of places in the first @bytes of it. */
static inline void fake_process_ask_all(struct fake_process *p, struct code_request *r, struct code_range range,
					uint64_t bytes)
{
	fake_process_ask(p, r, &range, sizeof(range));
	r->op = CODE_OP_BLOCK;
	for (r->addr = range.start; r->addr < range.start + bytes; r->addr += 40)
		fake_process_ask(p, r, NULL, 0);
}
