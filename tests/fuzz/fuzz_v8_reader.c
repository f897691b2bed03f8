/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of V8 on hostile heaps: a sound one, made by hand, in which the input changes words. The first byte chooses the
 * layout; then each change has four bytes: which word, as 16 bits, how, and with which value. Whatever is there, the reader
 * keeps within its budget and its own memory, and what it tells is sound. Layouts that are not sound are refused, others may
 * be any.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/fuzz/require.h"
#include "tests/unit/agent/runtime/code/v8/v8_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t word_at(const struct v8_image *im, uint32_t i)
{
	uint64_t value;

	memcpy(&value, im->bytes + 8 * (i % (sizeof(im->bytes) / 8)), sizeof(value));
	return value;
}

static void change(struct v8_image *im, const uint8_t *op)
{
	uint32_t at = (uint32_t)(op[0] | op[1] << 8) % (sizeof(im->bytes) / 8);
	uint64_t value = word_at(im, at);

	switch (op[2] & 7) {
	case 0:
		value = op[3];
		break;
	case 1:
		value = image_smi((int8_t)op[3]);
		break;
	case 2:
		value = image_smi((int32_t)((uint32_t)op[3] << (op[2] >> 3)));
		break;
	case 3: /* another word */
		value = word_at(im, at + (uint32_t)(int8_t)op[3]);
		break;
	case 4: /* a pointer to anything */
		value = IMAGE_HEAP + 16 * (uint64_t)(op[3] | (op[2] >> 3) << 8) + 1;
		break;
	case 5:
		value ^= (uint64_t)op[3] << (op[2] >> 3) * 2;
		break;
	case 6:
		value = UINT64_MAX << (op[3] & 63);
		break;
	default:
		value += (uint64_t)(int64_t)(int8_t)op[3];
	}
	memcpy(im->bytes + 8 * (size_t)at, &value, sizeof(value));
}

static void check_names(const struct block_names *n)
{
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	struct buf out = BUF_EMPTY;

	if (block_names_write(n, &out) == 0) {
		REQUIRE(block_names_are_sound(out.data, out.len));
		for (uint32_t place = 0; place < 256; place += 3)
			REQUIRE(block_names_find(out.data, out.len, place, false, lines) <= BLOCK_NAMES_MAX_DEPTH);
	}
	buf_fini(&out);
}

static void check_rows(const struct code_block *b, const struct row *rows, size_t count)
{
	uint64_t end = b->start;

	for (size_t i = 0; i < count; i++) {
		REQUIRE(rows[i].start >= end && rows[i].end > rows[i].start && rows[i].end <= b->end);
		REQUIRE(!rows[i].is_signal_frame && !rows[i].is_followed && !rows[i].is_behind_syscall && !rows[i].is_end);
		end = rows[i].end;
	}
}

static void read_block(struct v8_image *im, void *state, uint64_t pc)
{
	struct code_memory m = image_memory(im);
	struct block_names *n = block_names_new();
	AUTO_FREE struct row *rows = NULL;
	struct code_block b;
	size_t count;

	REQUIRE(n);
	if (code_v8.block(state, &m, pc, &b) == 0) {
		REQUIRE(b.start <= pc && pc < b.end && b.end - b.start <= CODE_BLOCK_MAX_BYTES);
		if (code_v8.rows(state, &m, &b, &rows, &count) == 0)
			check_rows(&b, rows, count);
		if (code_v8.names(state, &m, &b, n) == 0)
			check_names(n);
	}
	block_names_free(n);
}

static void read_function(struct v8_image *im, void *state, uint32_t capture)
{
	const uint64_t words[CODE_CAPTURE_WORDS] = { im->bytecode, im->closure };
	struct code_memory m = image_memory(im);
	struct block_names *n = block_names_new();
	struct captured_function f;

	REQUIRE(n);
	if (code_v8.function(state, &m, capture, words, &f, n) == 0) {
		REQUIRE(f.key && f.word <= CODE_CAPTURE_WORDS);
		check_names(n);
	}
	block_names_free(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct v8_image im;
	AUTO_FREE void *state = calloc(1, code_v8.state_bytes);
	struct code_facts facts;
	struct code_memory m;

	if (size < 1)
		return 0;
	REQUIRE(state);
	image_make(&im, data[0] & 1);
	if (data[0] & 2)
		image_tier_up(&im);
	if (data[0] & 4 && size > sizeof(im.layout.offset)) { /* any layout */
		memcpy(&im.layout.offset, data + 1, sizeof(im.layout.offset));
		data += sizeof(im.layout.offset);
		size -= sizeof(im.layout.offset);
	}
	facts = image_facts(&im);
	for (size_t i = 1; i + 4 <= size; i += 4)
		change(&im, data + i);
	m = image_memory(&im);
	if (code_v8.open(state, &m, &facts, 0))
		return 0;
	read_block(&im, state, im.optimized + 10);
	read_block(&im, state, im.baseline + 10);
	read_block(&im, state, im.wasm + 10);
	read_block(&im, state, im.wasm + IMAGE_WASM_LAST + 4000);
	read_block(&im, state, im.wasm + IMAGE_WASM_JUMPS + 5);
	read_function(&im, state, 1);
	read_function(&im, state, 2);
	return 0;
}
