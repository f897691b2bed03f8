/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small heap of V8, made by hand: one script with a function outer that has called inner, which optimized code has
 * inlined; outer also as baseline code and as bytecode; strings of all forms. For tests and fuzzing. The objects are laid
 * out as in node 20 or node 24 by the layout that is told.
 */
#ifndef HEARTH_TESTS_V8_IMAGE_H
#define HEARTH_TESTS_V8_IMAGE_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "agent/runtime/code/code_reader.h"
#include "agent/runtime/file/v8_layout.h"

enum {
	IMAGE_BYTES = 48 << 10,
	IMAGE_HEAP = 0x10000000,  /* address */
	IMAGE_CODE = 32 << 10,	  /* offset of the code */
	IMAGE_LENGTHS = 24 << 10, /* offset of the lengths of bytecodes */
	IMAGE_SOURCE_CHARS = 400,
};

enum {
	IMAGE_WASM = 64 << 10, /* offset: memory of its own, with a hole before it */
	IMAGE_WASM_BYTES = 8 << 10,
	IMAGE_WASM_WRAPPER = 160,
	IMAGE_WASM_LAST = 4096 + 32, /* the last function */
	IMAGE_WASM_JUMPS = 1024,     /* a line of jumps, then far ones, then late ones */
	IMAGE_WASM_FAR = 1088,
	IMAGE_WASM_LATE = 1152,
	IMAGE_WASM_FRAME = 4,
};

struct v8_image {
	struct v8_layout layout;
	uint8_t bytes[IMAGE_WASM + IMAGE_WASM_BYTES];
	uint32_t used, code_used;
	uint64_t meta, maps[512]; /* words of maps by type, for types below 512 */
	uint64_t function_map;
	uint64_t script, outer, inner, bytecode, closure;
	uint64_t optimized, baseline, regexp; /* where instructions begin */
	uint64_t wasm;			      /* a function, a wrapper, jumps: IMAGE_WASM_* behind it */
};

static inline struct v8_layout image_layout(bool is_new)
{
	struct v8_layout l = {
		.version = is_new ? 13 << 16 | 6 : 11 << 16 | 3,
		.kind_regexp = 3,
		.kind_interpreted = is_new ? 9 : 10,
		.kind_baseline = is_new ? 10 : 11,
		.type = { .first_function = 2066,
			  .last_function = 2082,
			  .shared = 282,
			  .shared_wrapper = is_new ? 195 : 0,
			  .script = 167,
			  .scope_info = 280,
			  .code = 187,
			  .stream = 192,
			  .bytecode = 186,
			  .interpreter_data = 188,
			  .fixed_array = 205,
			  .first_nonstring = 128 },
		.offset = { .shared_data = 8,
			    .script_source = 8,
			    .script_name = 16,
			    .script_line = 24,
			    .script_column = 32,
			    .script_line_ends = 56,
			    .script_id = 64,
			    .stream_code = 8,
			    .stream_step = 64,
			    .code_start = 40 },
		.bytecode_lengths = IMAGE_HEAP + IMAGE_LENGTHS,
		.bytecode_cnt = 6,
	};
	const struct v8_offsets old = { .function_shared = 24,
					.shared_name = 16,
					.shared_script = 32,
					.scope_flags = 32,
					.scope_first = 3,
					.stream_head = 16,
					.stream_at = 48,
					.code_deopt = 16,
					.code_positions = 24,
					.code_flags = 48,
					.code_size = 56,
					.bytecode_positions = 32,
					.bytecode_data = 54,
					.deopt_shared = 6,
					.deopt_inlined = 7,
					.deopt_literals = 2 };
	const struct v8_offsets new = { .function_shared = 32,
					.shared_name = 24,
					.shared_script = 40,
					.scope_flags = 0,
					.scope_first = 5,
					.stream_head = 32,
					.stream_at = 32,
					.code_deopt = 8,
					.code_positions = 16,
					.code_flags = 52,
					.code_size = 56,
					.bytecode_positions = 24,
					.bytecode_data = 64,
					.deopt_shared = 7,
					.deopt_inlined = 8,
					.deopt_literals = 3 };
	const uint16_t *from = (const uint16_t *)(is_new ? &new : &old);
	uint16_t *to = (uint16_t *)&l.offset;

	for (size_t i = 0; i < sizeof(l.offset) / sizeof(*to); i++)
		if (!to[i])
			to[i] = from[i];
	return l;
}

/* --- memory --- */

static inline int image_read(void *arg, uint64_t addr, void *dst, size_t len)
{
	const struct v8_image *im = arg;

	const uint64_t off = addr - IMAGE_HEAP, end = off < IMAGE_WASM ? IMAGE_BYTES : sizeof(im->bytes);

	if (off > end || len > end - off)
		return -EFAULT;
	memcpy(dst, im->bytes + (addr - IMAGE_HEAP), len);
	return 0;
}

static inline struct code_memory image_memory(struct v8_image *im)
{
	return (struct code_memory){
		.read = image_read, .arg = im, .reads_left = 20000, .bytes_left = 32 << 20, .end_ns = UINT64_MAX
	};
}

static inline void image_set(struct v8_image *im, uint64_t word, uint32_t offset, const void *data, size_t len)
{
	memcpy(im->bytes + ((word & ~3ULL) - IMAGE_HEAP) + offset, data, len);
}

static inline void image_put(struct v8_image *im, uint64_t word, uint32_t offset, uint64_t value)
{
	image_set(im, word, offset, &value, sizeof(value));
}

static inline uint64_t image_smi(int32_t value)
{
	return (uint64_t)(uint32_t)value << 32;
}

/* --- objects --- */

static inline uint64_t image_room(struct v8_image *im, uint32_t len)
{
	uint64_t word = IMAGE_HEAP + im->used + 1;

	im->used += (len + 15) & ~15U;
	return word;
}

static inline uint64_t image_map(struct v8_image *im, uint16_t type)
{
	uint64_t *map = type < 512 ? &im->maps[type] : &im->function_map;

	if (!*map) {
		*map = image_room(im, 64);
		image_put(im, *map, 0, im->meta ? im->meta : *map);
		image_set(im, *map, 12, &type, sizeof(type));
	}
	return *map;
}

static inline uint64_t image_object(struct v8_image *im, uint16_t type, uint32_t len)
{
	uint64_t map = image_map(im, type), word = image_room(im, len);

	image_put(im, word, 0, map);
	return word;
}

static inline uint64_t image_string(struct v8_image *im, const char *text)
{
	uint32_t len = (uint32_t)strlen(text);
	uint64_t word = image_object(im, 8, 16 + len);

	image_set(im, word, 12, &len, sizeof(len));
	image_set(im, word, 16, text, len);
	return word;
}

static inline uint64_t image_wide_string(struct v8_image *im, const uint16_t *chars, uint32_t len)
{
	uint64_t word = image_object(im, 32, 16 + 2 * len);

	image_set(im, word, 12, &len, sizeof(len));
	image_set(im, word, 16, chars, 2 * (size_t)len);
	return word;
}

/* A string of another form: @type, and two words. */
static inline uint64_t image_string_of(struct v8_image *im, uint16_t type, uint32_t len, uint64_t first, uint64_t second)
{
	uint64_t word = image_object(im, type, 32);

	image_set(im, word, 12, &len, sizeof(len));
	image_put(im, word, 16, first);
	image_put(im, word, 24, second);
	return word;
}

static inline uint64_t image_bytes(struct v8_image *im, const void *data, uint32_t len)
{
	uint64_t word = image_object(im, 190, 16 + len);

	image_put(im, word, 8, image_smi((int32_t)len));
	image_set(im, word, 16, data, len);
	return word;
}

static inline uint64_t image_array(struct v8_image *im, uint32_t len)
{
	uint64_t word = image_object(im, im->layout.type.fixed_array, 16 + 8 * len);

	image_put(im, word, 8, image_smi((int32_t)len));
	return word;
}

/* A function: with a name of its own, or one that was inferred from what it was assigned to. Its receiver is where the two
 * bits @receiver of its scope's flags tell. */
static inline uint64_t image_function_receiver(struct v8_image *im, const char *name, bool is_inferred, int32_t start,
					       uint32_t receiver)
{
	enum { RECEIVER_SHIFT = 7, FUNCTION_VARIABLE = 1 << 12, INFERRED = 1 << 14 };
	const struct v8_offsets *o = &im->layout.offset;
	uint64_t scope = image_object(im, im->layout.type.scope_info, 128),
		 shared = image_object(im, im->layout.type.shared, 80);
	uint32_t flags = (is_inferred ? INFERRED : FUNCTION_VARIABLE) | receiver << RECEIVER_SHIFT,
		 at = 8 + 8 * o->scope_first;
	bool has_word = o->scope_receiver && (receiver == 1 || receiver == 2);

	image_put(im, scope, 8, (uint64_t)flags << o->scope_flags);
	image_put(im, scope, 24, image_smi(1)); /* one local */
	image_put(im, scope, at, image_string(im, "local"));
	image_put(im, scope, at + 8, image_smi(4));
	at += 16;
	if (has_word)
		image_put(im, scope, at, image_smi(-1));
	at += has_word ? 8 : 0;
	image_put(im, scope, at, image_string(im, name));
	at += is_inferred ? 8 : 16;
	image_put(im, scope, o->scope_first == 5 ? 32 : at, image_smi(start));
	image_put(im, shared, o->shared_name, scope);
	image_put(im, shared, o->shared_script, im->script);
	return shared;
}

/* One that does not use its receiver. */
static inline uint64_t image_function(struct v8_image *im, const char *name, bool is_inferred, int32_t start)
{
	return image_function_receiver(im, name, is_inferred, start, 3);
}

/* --- tables --- */

/* One entry of a table of positions: offsets below 64, positions in differences below 2^20, both not negative. */
static inline uint32_t image_position(uint8_t *table, uint32_t at, uint32_t code_step, int64_t raw_step)
{
	uint64_t raw = (uint64_t)raw_step << 1 ^ (uint64_t)(raw_step >> 63);

	table[at++] = (uint8_t)(code_step << 1);
	for (; raw >= 0x80; raw >>= 7)
		table[at++] = (uint8_t)(raw | 0x80);
	table[at++] = (uint8_t)raw;
	return at;
}

static inline int64_t image_raw(int32_t position, int32_t inlined)
{
	return (int64_t)(position + 1) << 1 | (int64_t)(inlined + 1) << 31;
}

/* --- code --- */

/* Makes code of @len bytes with these instructions, the rest of which is nops. Returns where it begins. */
static inline uint64_t image_code(struct v8_image *im, uint32_t kind, uint64_t deopt, uint64_t positions, const void *insns,
				  uint32_t insn_len, uint32_t len)
{
	const struct v8_offsets *o = &im->layout.offset;
	uint64_t code = image_object(im, im->layout.type.code, 80),
		 stream = IMAGE_HEAP + IMAGE_CODE + im->code_used + o->stream_at;
	uint64_t start = stream + o->stream_head;

	image_put(im, stream, 0, image_map(im, im->layout.type.stream));
	image_put(im, stream, o->stream_code, code);
	image_put(im, code, o->code_deopt, deopt);
	image_put(im, code, o->code_positions, positions);
	image_put(im, code, o->code_start, start);
	image_set(im, code, o->code_flags, &kind, sizeof(kind));
	image_set(im, code, o->code_size, &len, sizeof(len));
	memset(im->bytes + (start - IMAGE_HEAP), 0x90, len);
	image_set(im, start, 0, insns, insn_len);
	im->code_used += (o->stream_at + o->stream_head + len + 63) & ~63U;
	return start;
}

/* push rbp; mov rbp,rsp; push rsi; push rdi; push rax; sub rsp,8; call; mov rsp,rbp; pop rbp; ret */
static const uint8_t image_insns[] = { 0x55, 0x48, 0x89, 0xe5, 0x56, 0x57, 0x50, 0x48, 0x83, 0xec, 0x08,
				       0xe8, 0x00, 0x00, 0x00, 0x01, 0x48, 0x89, 0xec, 0x5d, 0xc3 };

/* push rbp; mov rbp,rsp; push FRAME; push rsi; sub rsp,16; call; mov rsp,rbp; pop rbp; ret */
static const uint8_t image_wasm_insns[] = { 0x55, 0x48, 0x89, 0xe5, 0x6a, 2 * IMAGE_WASM_FRAME,
					    0x56, 0x48, 0x83, 0xec, 0x10, 0xe8,
					    0x00, 0x00, 0x00, 0x01, 0x48, 0x8b,
					    0xe5, 0x5d, 0xc3 };

static inline void image_wasm_function(struct v8_image *im, uint32_t off, uint32_t frame, uint32_t len)
{
	uint8_t *at = im->bytes + IMAGE_WASM + off;

	memset(at, 0x50, len); /* push rax */
	memcpy(at, image_wasm_insns, sizeof(image_wasm_insns));
	at[5] = (uint8_t)(2 * frame);
}

/* A function with what belongs to it behind it, a wrapper, room, tables of jumps, and a function in the second page. */
static inline void image_make_wasm(struct v8_image *im)
{
	uint8_t *jumps = im->bytes + IMAGE_WASM + IMAGE_WASM_JUMPS, *far = im->bytes + IMAGE_WASM + IMAGE_WASM_FAR,
		*late = im->bytes + IMAGE_WASM + IMAGE_WASM_LATE;

	im->layout.frame_wasm = IMAGE_WASM_FRAME;
	im->wasm = IMAGE_HEAP + IMAGE_WASM;
	image_wasm_function(im, 0, IMAGE_WASM_FRAME, IMAGE_WASM_WRAPPER);
	image_wasm_function(im, IMAGE_WASM_WRAPPER, IMAGE_WASM_FRAME + 1, 64);
	memset(jumps, 0xcc, 64);
	for (int i = 0; i < 3; i++)
		memcpy(jumps + 5 * i, "\xe9\x10\x20\x00", 5);
	memcpy(far, "\xff\x25\x02\x00\x00\x00\x66\x90\x40\xd5\x9f\x01\x00\x00\x00", 16);
	memcpy(far + 16, far, 16);
	memcpy(late, "\x68\x01\x00\x00\x00\xe9\xc6\xfa\xff\xff", 10);
	image_wasm_function(im, IMAGE_WASM_LAST, IMAGE_WASM_FRAME, IMAGE_WASM_BYTES - IMAGE_WASM_LAST);
}

/* outer begins on line 2 (position 20), inner on line 3 (position 40); each line has 20 characters. */
static inline void image_make(struct v8_image *im, bool is_new)
{
	static const uint8_t bytecodes[] = { 4, 0, 5, 0, 0, 4 };
	static const uint8_t lengths[] = { 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 3, 1, 1, 1, 1, 1, 5 };
	const struct v8_layout *l;
	char source[IMAGE_SOURCE_CHARS + 1];
	uint8_t table[64];
	uint64_t deopt, literals, wrapper, offsets, positions;
	uint32_t n = 0;
	int64_t inlined[2][2];

	memset(im, 0, sizeof(*im));
	im->layout = image_layout(is_new);
	image_make_wasm(im);
	l = &im->layout;
	im->meta = image_map(im, 255);
	memset(source, 'x', IMAGE_SOURCE_CHARS);
	for (int i = 19; i < IMAGE_SOURCE_CHARS; i += 20)
		source[i] = '\n';
	source[IMAGE_SOURCE_CHARS] = 0;
	im->script = image_object(im, l->type.script, 112);
	image_put(im, im->script, l->offset.script_source, image_string(im, source));
	image_put(im, im->script, l->offset.script_name, image_string(im, "file:///srv/app.mjs"));
	image_put(im, im->script, l->offset.script_id, image_smi(77));
	im->outer = image_function(im, "outer", false, 20);
	im->inner = image_function(im, "thing.inner", true, 40);

	/* optimized code: outer on line 5 from 0 on, inner on line 7 in outer on line 6 from 8 on, outer on line 8 from 12
	 * on */
	n = image_position(table, n, 0, image_raw(85, -1));
	n = image_position(table, n, 8, image_raw(125, 0) - image_raw(85, -1));
	n = image_position(table, n, 4, image_raw(145, -1) - image_raw(125, 0));
	positions = image_bytes(im, table, n);
	inlined[0][0] = image_raw(105, -1);
	inlined[0][1] = 1;
	literals = image_array(im, 2);
	wrapper = im->outer;
	if (is_new) {
		wrapper = image_object(im, l->type.shared_wrapper, 16);
		image_put(im, wrapper, 8, im->outer);
	}
	image_put(im, literals, 16 + 8, im->inner | 2); /* weak */
	deopt = image_array(im, 12);
	image_put(im, deopt, 16 + 8 * l->offset.deopt_shared, wrapper);
	image_put(im, deopt, 16 + 8 * l->offset.deopt_inlined, image_bytes(im, inlined, 16));
	image_put(im, deopt, 16 + 8 * l->offset.deopt_literals, literals);
	im->optimized = image_code(im, l->kind_baseline + 1, deopt, positions, image_insns, sizeof(image_insns), 200);

	/* bytecode: line 3 from 0 on, line 4 from 5 on. The second bytecode, a wide one, has 4 bytes. */
	n = image_position(table, 0, 0, image_raw(45, -1));
	n = image_position(table, n, 5, image_raw(65, -1) - image_raw(45, -1));
	im->bytecode = image_object(im, l->type.bytecode, 96);
	image_put(im, im->bytecode, 8, image_smi(sizeof(bytecodes)));
	image_put(im, im->bytecode, l->offset.bytecode_positions, image_bytes(im, table, n));
	image_set(im, im->bytecode, l->offset.bytecode_data, bytecodes, sizeof(bytecodes));
	memcpy(im->bytes + IMAGE_LENGTHS, lengths, sizeof(lengths));

	/* baseline: the prologue ends at 5, then 10, 20 and 30 bytes for the bytecodes */
	offsets = image_bytes(im, "\x05\x0a\x14\x1e", 4);
	im->baseline = image_code(im, l->kind_baseline, im->bytecode, offsets, "\xe8\x00\x00\x00\x01", 5, 65);
	im->regexp = image_code(im, l->kind_regexp, 0, 0, image_insns, sizeof(image_insns), 64);
	image_put(im, im->outer, l->offset.shared_data, im->bytecode);
	im->closure = image_object(im, l->type.first_function + 1, 72);
	image_put(im, im->closure, l->offset.function_shared, im->outer);
}

/* outer's data is its baseline code from now on. */
static inline void image_tier_up(struct v8_image *im)
{
	uint64_t code;

	memcpy(&code,
	       im->bytes + (im->baseline - im->layout.offset.stream_head + im->layout.offset.stream_code - IMAGE_HEAP),
	       sizeof(code));
	image_put(im, im->outer, im->layout.offset.shared_data, code);
}

static inline struct code_facts image_facts(const struct v8_image *im)
{
	struct code_facts facts = { .id = CODE_V8, .version = im->layout.version << 8 };

	memcpy(facts.fact, &im->layout, sizeof(im->layout));
	return facts;
}

#endif
