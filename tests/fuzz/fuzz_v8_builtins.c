/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8's own tables out of hostile files. The input's first byte says of which form a sound file is; the rest is written over
 * parts of it: a number of four bytes says where, one how many bytes follow, and so on.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/file/v8_bytecodes.h"
#include "agent/runtime/file/v8_layout.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"
#include "symbols/sources/v8_builtins.h"
#include "tests/fuzz/require.h"
#include "tests/unit/made_v8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const uint8_t *bytes, size_t len)
{
	AUTO(v8_builtins_close) struct v8_builtins all = { 0 };
	struct v8_layout layout = { 0 };
	struct v8_builtin one;
	struct elf_image im;
	uint32_t i = 0;

	if (elf_image_open(bytes, len, &im))
		return;
	if (v8_bytecodes_find(&im, &layout))
		REQUIRE(layout.bytecode_cnt <= V8_MAX_BYTECODES && elf_image_loaded(&im, layout.bytecode_lengths, 1));
	if (v8_builtins_open(&im, &all))
		return;
	for (uint64_t end = 0; v8_builtins_get(&im, &all, i, &one); i++) {
		REQUIRE(strlen(one.name) < V8_BUILTIN_NAME_MAX && one.size_bytes && one.addr >= end);
		end = one.addr + one.size_bytes;
		REQUIRE(elf_image_loaded(&im, one.addr, one.size_bytes));
	}
	REQUIRE(i == all.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t strides[] = { 12, 16, 28, 32 };
	struct buf file = BUF_EMPTY;
	AUTO_FREE uint8_t *copy = NULL;
	size_t len;

	if (!size)
		return 0;
	made_v8(&(struct made_v8){ .stride = strides[data[0] & 3], .is_fixed = data[0] & 4, .has_empty = data[0] & 16 },
		&file);
	len = data[0] & 8 && size > 2 ? file.len * data[1] / 256 : file.len;
	copy = malloc(len + !len); /* no byte behind the end can be read unseen */
	REQUIRE(copy && !file.failed);
	memcpy(copy, file.data, len);
	buf_fini(&file);
	for (size_t at = 2; at + 5 <= size;) {
		uint32_t where, count = data[at + 4];

		memcpy(&where, data + at, sizeof(where));
		at += 5;
		count = count < size - at ? count : (uint32_t)(size - at);
		if (len && count <= len)
			memcpy(copy + where % (len - count + 1), data + at, count);
		at += count;
	}
	look(copy, len);
	return 0;
}
