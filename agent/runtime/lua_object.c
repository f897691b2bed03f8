/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of Lua and LuaJIT, as the kernel copied them. Lua's functions have no names of their own; they are called by
 * where they are defined, as in Lua's own traces: "function FILE:LINE", a file's own code "main chunk FILE".
 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/object.h"
#include "bpf/runtime/lua_state.h"
#include "bpf/runtime/luajit_state.h"

enum {
	TEXT_SHOWN_BYTES = 60, /* of code that is from no file (luaconf.h: LUA_IDSIZE) */
	NO_DIFFERENCE = -128,  /* of 5.4 and 5.5: the line is in a mark (ldebug.h: ABSLINEINFO) */
	PLACE_BYTES = 4,       /* of an instruction */
};

/* What a function is made of, whichever Lua it is from. */
struct function {
	const uint8_t *source;
	uint32_t source_bytes;
	uint32_t line;	/* where it begins; 0: it is a file's own code */
	uint32_t count; /* of instructions */
	uint32_t code;	/* low half of their address */
	bool is_cut;	/* not all lines are there */
};

/* Appends what the source is called: @FILE, =NAME, or code itself, of which the beginning of the first line is shown
 * (lobject.c: luaO_chunkid). */
static void put_source(const struct function *f, struct buf *out)
{
	const uint8_t *text = f->source;
	size_t len = f->source_bytes, shown = 0;
	bool is_whole;

	if (len && (text[0] == '@' || text[0] == '=')) {
		script_utf8(text + 1, len - 1, out);
		return;
	}
	while (shown < len && shown < TEXT_SHOWN_BYTES && text[shown] != '\n' && text[shown] != '\0')
		shown++;
	is_whole = shown == len;
	buf_puts(out, "[string \"");
	script_utf8(text, shown, out);
	buf_puts(out, is_whole ? "\"]" : "...\"]");
}

static void put_name(const struct function *f, struct buf *out)
{
	if (!f->source_bytes) /* it could not be read */
		return;
	buf_puts(out, f->line ? "function " : "main chunk ");
	put_source(f, out);
	if (f->line)
		buf_printf(out, ":%u", f->line);
}

/* Writes the function with the table @pairs. 0 or -ENOMEM. */
static int write(const struct function *f, struct buf *pairs, struct buf *out)
{
	struct script s = { 0 };
	struct buf text = BUF_EMPTY;
	uint32_t name_bytes;

	put_name(f, &text);
	name_bytes = (uint32_t)text.len;
	if (f->source_bytes)
		put_source(f, &text);
	s.head = (struct script_head){
		.first_line = f->line && f->line <= INT32_MAX ? f->line : 0,
		.name_bytes = name_bytes,
		.file_bytes = (uint32_t)text.len - name_bytes,
		.line_bytes = (uint32_t)pairs->len,
		.lines = SCRIPT_LINES_PAIRS,
		.code_offset = f->code + 1, /* a place is behind its instruction; in front of the first one it is -1 */
		.scale = 1,
		.is_cut = f->is_cut,
	};
	s.name = (const char *)text.data;
	s.file = text.len ? s.name + name_bytes : NULL;
	s.line_table = pairs->data;
	out->failed |= text.failed || pairs->failed;
	if (!out->failed)
		script_write(&s, out);
	buf_fini(&text);
	buf_fini(pairs);
	return out->failed ? -ENOMEM : 0;
}

/* Instruction number @i is on @line. */
static void put_line(struct buf *pairs, uint32_t i, uint32_t line, uint32_t *last)
{
	struct script_line_pair pair = { i * PLACE_BYTES, line };

	if (i && line == *last)
		return;
	buf_append(pairs, &pair, sizeof(pair));
	*last = line;
}

/* The parts @first and the one behind it, which are neighbours, are one table, unless the first could not be read. */
static uint32_t table_bytes(const struct object_record *r, int first)
{
	return r->is_cut >> first & 1 ? 0 : (uint32_t)r->part_bytes[first] + r->part_bytes[first + 1];
}

static uint32_t word_of(const uint8_t *bytes, uint32_t i)
{
	uint32_t value;

	memcpy(&value, bytes + i * sizeof(value), sizeof(value));
	return value;
}

/* Lines of 5.1 to 5.3. Returns how many there are. */
static uint32_t put_plain_lines(const struct object_record *r, const uint8_t *const *parts, struct buf *pairs)
{
	uint32_t count = table_bytes(r, LUA_PART_LINES) / sizeof(uint32_t), last = 0;

	for (uint32_t i = 0; i < count; i++)
		put_line(pairs, i, word_of(parts[LUA_PART_LINES], i), &last);
	return count;
}

/* Lines of 5.4 and 5.5. Returns how many there are. */
static uint32_t put_differences(const struct object_record *r, const uint8_t *const *parts, struct buf *pairs)
{
	const uint32_t count = table_bytes(r, LUA_PART_LINES), marks = r->part_bytes[LUA_PART_MARKS] / 8;
	uint32_t line = r->part_state[LUA_HAS_LINE], last = 0, mark = 0;

	for (uint32_t i = 0; i < count; i++) {
		int8_t difference = (int8_t)parts[LUA_PART_LINES][i];

		if (difference == NO_DIFFERENCE && mark == marks)
			return i;
		line = difference == NO_DIFFERENCE ? word_of(parts[LUA_PART_MARKS], 2 * mark++ + 1)
						   : line + (uint32_t)(int32_t)difference;
		put_line(pairs, i, line, &last);
	}
	return count;
}

int lua_object_read(const struct object_record *r, const struct chain_state *layout, struct buf *out)
{
	const uint8_t *parts[OBJECT_PARTS];
	struct buf pairs = BUF_EMPTY;
	struct function f;
	uint32_t count, last = UINT32_MAX;

	if (object_parts(r, parts))
		return -EBADMSG;
	f = (struct function){
		.source = parts[LUA_PART_SOURCE],
		.source_bytes = r->part_bytes[LUA_PART_SOURCE],
		.line = r->part_state[LUA_HAS_LINE],
		.count = r->part_state[LUA_HAS_COUNT],
		.code = r->part_state[LUA_HAS_CODE],
	};
	count = layout->offset[LUA_MARKS] ? put_differences(r, parts, &pairs) : put_plain_lines(r, parts, &pairs);
	put_line(&pairs, count, 0, &last); /* what is behind them has none */
	f.is_cut = count < f.count;
	return write(&f, &pairs, out);
}

/* The line, from the function's first one, of instruction number @i + 1. */
static uint32_t difference_of(const uint8_t *const *parts, uint32_t i, uint32_t width)
{
	uint32_t value = 0;

	memcpy(&value, parts[LUAJIT_PART_LINES] + i * width, width); /* little endian, as on x86-64 and arm64 */
	return value;
}

int lua_object_read_jit(const struct object_record *r, const struct chain_state *layout, struct buf *out)
{
	const uint8_t *parts[OBJECT_PARTS];
	struct buf pairs = BUF_EMPTY;
	uint32_t count, width, lines, last = 0;
	struct function f;

	(void)layout;
	if (object_parts(r, parts))
		return -EBADMSG;
	lines = r->part_state[LUAJIT_HAS_LINES];
	width = lines < 256 ? 1 : lines < 65536 ? 2 : 4;
	f = (struct function){
		.source = parts[LUAJIT_PART_CHUNK],
		.source_bytes = r->part_bytes[LUAJIT_PART_CHUNK],
		.line = r->part_state[LUAJIT_HAS_LINE],
		.count = r->part_state[LUAJIT_HAS_COUNT],
		.code = r->part_state[LUAJIT_HAS_CODE],
	};
	count = table_bytes(r, LUAJIT_PART_LINES) / width;
	if (count)
		put_line(&pairs, 0, f.line, &last);
	for (uint32_t i = 0; i < count; i++)
		put_line(&pairs, i + 1, f.line + difference_of(parts, i, width), &last);
	last = UINT32_MAX;
	put_line(&pairs, count + 1, 0, &last);
	f.is_cut = count + 1 < f.count;
	return write(&f, &pairs, out);
}
