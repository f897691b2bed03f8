/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process that lies about the code it registered for debuggers: the input is changes of a made-up one
 * (fake_gdb_jit.h), four bytes each: how many bytes further, two bytes; what to put there; how many times, 0 to 255. Then
 * everything is asked that the agent may ask. Answers must be such as the agent believes, and come within the budget.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/helper/code_service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/fuzz/require.h"
#include "tests/unit/agent/runtime/code/fake_gdb_jit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void change(struct fake *f, const uint8_t *data, size_t size)
{
	uint32_t at = 0;

	for (size_t i = 0; i + 4 <= size; i += 4) {
		at = (at + (data[i] | data[i + 1] << 8)) % FAKE_BYTES;
		for (uint32_t k = 0; k <= data[i + 3] && at + k < FAKE_BYTES; k++)
			f->bytes[at + k] = data[i + 2];
	}
}

static void ask(struct elf_service *service, int fd, const struct code_request *r, const void *more, size_t more_bytes)
{
	const struct elf_request request = { .op = ELF_OP_CODE, .file = 1 };
	struct buf what = BUF_EMPTY, reply = BUF_EMPTY;

	buf_append(&what, r, sizeof(*r));
	buf_append(&what, more, more_bytes);
	if (!elf_service_call(service, &request, fd, what.data, what.len, &reply))
		REQUIRE(code_reply_is_sound(r, reply.data, reply.len));
	buf_fini(&what);
	buf_fini(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct code_range range = { fake_code(0), fake_code(FAKE_FILES) };
	static struct fake fake;
	static int fd = -1;
	struct code_request request;
	struct elf_service *service;

	if (fd < 0)
		fd = memfd_create("memory", MFD_CLOEXEC);
	REQUIRE(fd >= 0 && !code_service_new(&service));
	fake_make(&fake);
	request = (struct code_request){ .op = CODE_OP_RANGES, .bias = FAKE_BASE, .facts = fake.facts };
	change(&fake, data, size);
	REQUIRE(pwrite(fd, fake.bytes, sizeof(fake.bytes), (off_t)FAKE_BASE) == sizeof(fake.bytes));
	ask(service, fd, &request, &range, sizeof(range));
	request.op = CODE_OP_BLOCK;
	for (uint64_t off = 0; off < range.end - range.start; off += 40) {
		request.addr = range.start + off;
		ask(service, fd, &request, NULL, 0);
	}
	elf_service_free(service);
	return 0;
}
