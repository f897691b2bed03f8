/* SPDX-License-Identifier: Apache-2.0 */
/* The perf map reader: the input as a map that comes in two parts, then asked for around every range that was told. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text/utf8.h"
#include "symbols/jit/perf_map.h"
#include "symbols/jit/v8_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct jit_code *code, uint64_t addr)
{
	struct jit_answer a;
	struct v8_name v8;

	if (jit_code_find(code, addr, UINT64_MAX, &a))
		return;
	if (a.name_len > JIT_CODE_MAX_NAME_BYTES || a.start > addr || !utf8_is_valid(a.name, a.name_len))
		abort();
	if (v8_name_parse(a.name, a.name_len, &v8) && v8.file_len + 4 > a.name_len)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct jit_code *code = jit_code_new();
	struct perf_map map = { 0 };
	size_t first = size / 2;

	if (fd < 0)
		fd = memfd_create("map", MFD_CLOEXEC);
	if (fd < 0 || !code || ftruncate(fd, 0))
		abort();
	if (pwrite(fd, data, first, 0) != (ssize_t)first || perf_map_read(&map, fd, 0, UINT64_MAX, code) < 0 ||
	    pwrite(fd, data + first, size - first, (off_t)first) != (ssize_t)(size - first) ||
	    perf_map_read(&map, fd, 1, UINT64_MAX, code) < 0)
		abort();
	if (map.offset > size || map.malformed > map.lines || jit_code_count(code) > 2 * map.lines + 1)
		abort();
	for (size_t i = 0; i < size; i++) /* the seeds' functions lie there */
		ask(code, (uint64_t)(data[i] & 15) << 12 | data[i] >> 4);
	jit_code_free(code);
	return 0;
}
