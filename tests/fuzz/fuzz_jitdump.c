/* SPDX-License-Identifier: Apache-2.0 */
/* The jitdump reader: the input as a dump that comes in two parts, then asked for at addresses taken out of the input. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text/utf8.h"
#include "symbols/jit/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct jit_code *code, uint64_t addr, uint64_t time_ns)
{
	struct jit_answer a;

	if (jit_code_find(code, addr, time_ns, &a))
		return;
	if (a.name_len > JIT_CODE_MAX_NAME_BYTES || !utf8_is_valid(a.name, a.name_len) ||
	    (a.file_len && !utf8_is_valid(a.file, a.file_len)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct jit_code *code = jit_code_new();
	struct jitdump dump = { .own_pid = size > 20 ? data[20] : 0, .start_ns = size > 50 ? 1ull << (data[50] & 63) : 0 };
	size_t first = size / 2;

	if (fd < 0)
		fd = memfd_create("dump", MFD_CLOEXEC);
	if (fd < 0 || !code || ftruncate(fd, 0) || pwrite(fd, data, first, 0) != (ssize_t)first)
		abort();
	(void)jitdump_read(&dump, fd, 1ull << 40, UINT64_MAX, code);
	if (pwrite(fd, data + first, size - first, (off_t)first) != (ssize_t)(size - first))
		abort();
	(void)jitdump_read(&dump, fd, 1ull << 40, UINT64_MAX, code);
	if (dump.offset > size && dump.records)
		abort();
	for (size_t i = 0; i + 16 <= size; i += 8) {
		uint64_t addr, time_ns;

		memcpy(&addr, data + i, sizeof(addr));
		memcpy(&time_ns, data + i + 8, sizeof(time_ns));
		ask(code, addr, time_ns);
		ask(code, addr + 1, UINT64_MAX);
	}
	jitdump_fini(&dump);
	jit_code_free(code);
	return 0;
}
