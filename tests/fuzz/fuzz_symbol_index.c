/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index made to harm: its checksums are right, nothing else need be. The first byte chooses: the rest is the file, or
 * edits to a sound one (two bytes: where; one: what), so that the search does not have to invent the tables first.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/index/index.h"
#include "symbols/index/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A few functions with inlined calls and lines, in more than one block. */
static const struct buf *sound_index(void)
{
	static const struct symbol_index_head head = { .build_id = "abcd", .best = CODE_SOURCE_DWARF };
	static struct buf bytes;
	struct code_names *c = bytes.len ? NULL : code_names_new(NULL, 0);
	char name[16] = "function_00";

	if (!c)
		return &bytes;
	code_names_begin(c, CODE_SOURCE_DWARF);
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t file = code_names_file(c, i % 2 ? "a.c" : "b.h", 3), outer, inner;

		name[9] = (char)('0' + i / 10);
		name[10] = (char)('0' + i % 10);
		outer = code_names_node(c, CODE_NONE, code_names_function(c, name, 11, i), CODE_NONE, 0, 0);
		inner = code_names_node(c, outer, code_names_function(c, "inlined", 7, 3), file, i, 1);
		code_names_range(c, 0x1000 + i * 64, 0x1000 + i * 64 + 48, outer);
		code_names_range(c, 0x1000 + i * 64 + 8, 0x1000 + i * 64 + 32, inner);
		code_names_line(c, 0x1000 + i * 64, file, i, 2);
		code_names_line(c, 0x1000 + i * 64 + 10, file, 300, 2);
		code_names_line(c, 0x1000 + i * 64 + 50, CODE_NONE, 0, 0);
	}
	if (code_names_finish(c) || symbol_index_write(c, &head, &bytes))
		abort();
	code_names_free(c);
	return &bytes;
}

/* Makes the head say how long the file is, and the checksums right. */
static void heal(struct buf *file)
{
	struct index_header h;
	uint64_t chunk = 0, hash;

	memcpy(&h, file->data, sizeof(h));
	memcpy(h.magic, index_magic, sizeof(h.magic));
	h.version = SYMBOL_INDEX_VERSION;
	h.len_bytes = file->len;
	/* As many checksums as there are chunks behind them. */
	while (chunk * (8 + INDEX_CHUNK_BYTES) < file->len - sizeof(h))
		chunk++;
	h.data = sizeof(h) + 8 * chunk < file->len ? sizeof(h) + 8 * chunk : file->len;
	memcpy(file->data, &h, sizeof(h));
	chunk = 0;
	for (uint64_t at = h.data; at < file->len; at += INDEX_CHUNK_BYTES, chunk++) {
		uint64_t rest = file->len - at;

		hash = XXH3_64bits(file->data + at, rest < INDEX_CHUNK_BYTES ? rest : INDEX_CHUNK_BYTES);
		memcpy(file->data + sizeof(h) + 8 * chunk, &hash, sizeof(hash));
	}
	hash = index_head_hash(file->data, h.data);
	memcpy(file->data + offsetof(struct index_header, hash), &hash, sizeof(hash));
}

static void ask(const struct symbol_index *x, uint64_t addr)
{
	struct buf text = BUF_EMPTY;
	struct code_answer a;

	if (symbol_index_find(x, addr, &a) == 0) {
		if (!a.frame_count || a.frame_count > CODE_MAX_FRAMES || a.start > addr)
			abort();
		for (uint32_t i = 0; i < a.frame_count; i++) {
			if (symbol_index_name(x, a.frames[i].function, &text) == 0 && a.frames[i].file != CODE_NONE)
				symbol_index_path(x, a.frames[i].file, &text);
		}
	}
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct buf *sound = sound_index();
	struct buf file = BUF_EMPTY;
	struct symbol_index *x;

	if (size < 1)
		return 0;
	if (data[0] & 1) {
		buf_append(&file, data + 1, size - 1);
	} else {
		buf_append(&file, sound->data, sound->len);
		for (size_t i = 1; i + 3 <= size; i += 3)
			file.data[(data[i] | (size_t)data[i + 1] << 8) % file.len] = data[i + 2];
	}
	if (file.len >= sizeof(struct index_header))
		heal(&file);
	if (symbol_index_open(file.data, file.len, &x) == 0) {
		for (uint64_t addr = 0xff0; addr < 0x1000 + 41 * 64; addr += 37)
			ask(x, addr);
		ask(x, 0);
		ask(x, UINT64_MAX);
		symbol_index_check(x);
		symbol_index_close(x);
	} else if (!(data[0] & 1) && size < 4) {
		abort(); /* nothing was edited */
	}
	buf_fini(&file);
	return 0;
}
