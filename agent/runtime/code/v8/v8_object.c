/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of the constants: v8dbg_StringRepresentationMask, v8dbg_OneByteStringTag, v8dbg_*StringTag, v8dbg_class_*String__*
 * and v8dbg_class_FixedArray*, the same in node 16 to 26. The type's offset in a map, 12, and the data pointer of an
 * external string, 24, were seen there (tests/v8/).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/v8/v8_object.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/script/script.h"

enum {
	MAP_TYPE = 12,
	ARRAY_LENGTH = 8,
	ARRAY_DATA = 16,
	STRING_LENGTH = 12,
	STRING_DATA = 16,
	STRING_FIRST = 16, /* of cons; parent of sliced, actual of thin */
	STRING_SECOND = 24,
	STRING_OFFSET = 24,
	STRING_EXTERNAL_DATA = 24,
	MAX_STRING_CHARS = 1 << 29,
	MAX_ARRAY = 1 << 27,
	MAX_DEPTH = 24,
	CONS_PARTS = 64,
};

enum representation { SEQUENTIAL, CONS, EXTERNAL, SLICED, THIN = 5, REPRESENTATIONS = 7 };

enum { ONE_BYTE = 8, UNCACHED = 16 };

struct v8_heap *v8_heap_new(const struct v8_layout *layout, struct code_memory *memory)
{
	struct v8_heap *h = malloc(sizeof(*h));

	if (!h)
		return NULL;
	h->layout = layout;
	h->memory = memory;
	memset(h->map, 0, sizeof(h->map));
	return h;
}

int v8_field(struct v8_heap *h, uint64_t word, uint32_t offset, uint64_t *ret)
{
	*ret = 0;
	return v8_is_pointer(word) ? v8_copy(h, v8_address(word) + offset, ret, sizeof(*ret)) : -EFAULT;
}

int v8_field32(struct v8_heap *h, uint64_t word, uint32_t offset, uint32_t *ret)
{
	*ret = 0;
	return v8_is_pointer(word) ? v8_copy(h, v8_address(word) + offset, ret, sizeof(*ret)) : -EFAULT;
}

uint16_t v8_map_type(struct v8_heap *h, uint64_t map)
{
	uint32_t slot = (uint32_t)(map >> 3) % V8_MAPS;
	uint16_t type;

	if ((map & 3) != 1 || !v8_is_pointer(map))
		return V8_NO_TYPE;
	if (h->map[slot].map == map)
		return h->map[slot].type;
	if (v8_copy(h, v8_address(map) + MAP_TYPE, &type, sizeof(type)))
		return V8_NO_TYPE;
	h->map[slot].map = map;
	h->map[slot].type = type;
	return type;
}

uint16_t v8_type(struct v8_heap *h, uint64_t word)
{
	uint64_t map;

	return v8_field(h, word, 0, &map) ? V8_NO_TYPE : v8_map_type(h, map);
}

/* The length of an array; -EBADMSG: none. */
static int array_length(struct v8_heap *h, uint64_t word, uint32_t *ret)
{
	uint64_t length;
	int status = v8_field(h, word, ARRAY_LENGTH, &length);

	if (status)
		return status;
	if (!v8_is_smi(length) || v8_smi(length) < 0 || v8_smi(length) > MAX_ARRAY)
		return -EBADMSG;
	*ret = (uint32_t)v8_smi(length);
	return 0;
}

int v8_element(struct v8_heap *h, uint64_t word, uint32_t index, uint64_t *ret)
{
	uint32_t length;
	int status = array_length(h, word, &length);

	if (status)
		return status;
	if (index >= length)
		return -EBADMSG;
	return v8_field(h, word, ARRAY_DATA + 8 * index, ret);
}

int v8_bytes(struct v8_heap *h, uint64_t word, uint32_t max, struct buf *out)
{
	uint32_t length;
	int status = array_length(h, word, &length);

	if (status)
		return status;
	if (length > max)
		return -EBADMSG;
	if (buf_reserve(out, length))
		return -ENOMEM;
	status = v8_copy(h, v8_address(word) + ARRAY_DATA, out->data + out->len, length);
	if (!status)
		out->len += length;
	return status;
}

/* --- strings --- */

/* One string, whatever its form. */
struct string {
	uint64_t word;
	uint32_t chars, width;
	enum representation form;
	bool is_uncached;
};

static int open_string(struct v8_heap *h, uint64_t word, struct string *s)
{
	uint16_t type = v8_type(h, word);
	int status;

	if (!v8_is_string(h, type))
		return h->memory->is_spent ? -EDQUOT : -EBADMSG;
	status = v8_field32(h, word, STRING_LENGTH, &s->chars);
	if (status)
		return status;
	if (s->chars > MAX_STRING_CHARS)
		return -EBADMSG;
	s->word = word;
	s->width = type & ONE_BYTE ? 1 : 2;
	s->form = (enum representation)(type & REPRESENTATIONS);
	s->is_uncached = type & UNCACHED;
	return 0;
}

/* Where the characters of @s lie, which is sequential or external. */
static int find_chars(struct v8_heap *h, const struct string *s, struct v8_text *ret)
{
	int status = 0;

	ret->chars = s->chars;
	ret->width = s->width;
	if (s->form == SEQUENTIAL) {
		ret->addr = v8_address(s->word) + STRING_DATA;
		return 0;
	}
	if (s->form != EXTERNAL || s->is_uncached)
		return -EBADMSG;
	status = v8_field(h, s->word, STRING_EXTERNAL_DATA, &ret->addr);
	return status ? status : ret->addr ? 0 : -EBADMSG;
}

/* Follows thin and sliced strings and those that were joined since. Takes [*@from, *@from + *@chars) along. */
static int flatten(struct v8_heap *h, uint64_t word, uint32_t *from, struct string *s)
{
	for (int depth = 0; depth < MAX_DEPTH; depth++) {
		uint64_t next, other;
		struct string second;
		int status = open_string(h, word, s);

		if (!status && (s->form == SEQUENTIAL || s->form == EXTERNAL))
			return 0;
		if (!status)
			status = v8_field(h, word, STRING_FIRST, &next);
		if (!status && (s->form == SLICED || s->form == CONS))
			status = v8_field(h, word, STRING_SECOND, &other);
		if (status)
			return status;
		if (s->form == SLICED) {
			if (!v8_is_smi(other) || v8_smi(other) < 0 || v8_smi(other) > MAX_STRING_CHARS)
				return -EBADMSG;
			*from += (uint32_t)v8_smi(other);
		} else if (s->form == CONS) {
			status = open_string(h, other, &second);
			if (status || second.chars)
				return status ? status : 1;
		} else if (s->form != THIN) {
			return -EBADMSG;
		}
		word = next;
	}
	return -EBADMSG;
}

int v8_text_of(struct v8_heap *h, uint64_t word, struct v8_text *ret)
{
	struct string first, s;
	uint32_t from = 0;
	int status = open_string(h, word, &first);

	if (!status)
		status = flatten(h, word, &from, &s);
	if (status)
		return status > 0 ? -EBADMSG : status;
	status = find_chars(h, &s, ret);
	if (status)
		return status;
	if (from > ret->chars || ret->chars - from < first.chars)
		return -EBADMSG;
	ret->addr += (uint64_t)from * ret->width;
	ret->chars = first.chars;
	return 0;
}

/* UTF-16 as whole characters. A half of a pair without its other half stays, and is no character. */
static size_t join_pairs(const uint16_t *from, size_t count, uint32_t *to)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		bool is_pair = from[i] >> 10 == 0x36 && i + 1 < count && from[i + 1] >> 10 == 0x37;

		to[n++] = is_pair ? 0x10000 + ((from[i] & 0x3ffU) << 10 | (from[i + 1] & 0x3ff)) : from[i];
		i += is_pair;
	}
	return n;
}

/* Appends at most @max characters of @t. Returns how many, or -errno. */
static int append_chars(struct v8_heap *h, const struct v8_text *t, uint32_t max, struct buf *out)
{
	uint16_t chars[V8_NAME_CHARS];
	uint32_t wide[V8_NAME_CHARS], n = t->chars < max ? t->chars : max;
	int status = v8_copy(h, t->addr, chars, (size_t)n * t->width);

	if (status)
		return status;
	if (t->width == 1)
		script_text(chars, n, 1, out);
	else
		script_text(wide, join_pairs(chars, n, wide) * sizeof(*wide), sizeof(*wide), out);
	return (int)n;
}

/* Of a string that was joined of parts (cons), what is still to be read: the parts behind the one in work, innermost last.
 */
int v8_string(struct v8_heap *h, uint64_t word, struct buf *out)
{
	uint32_t left = V8_NAME_CHARS, waiting_cnt = 0;
	uint64_t waiting[CONS_PARTS];

	for (uint32_t parts = 0; left && parts < CONS_PARTS; parts++) {
		struct v8_text text;
		struct string s;
		uint64_t second;
		int status = v8_text_of(h, word, &text);

		if (status == -EBADMSG) { /* parts that were not joined yet */
			status = open_string(h, word, &s);
			if (!status && s.form != CONS)
				return -EBADMSG;
			if (!status)
				status = v8_field(h, word, STRING_FIRST, &word);
			if (!status)
				status = v8_field(h, s.word, STRING_SECOND, &second);
			if (status || waiting_cnt == ARRAY_LEN(waiting))
				return status ? status : -EBADMSG;
			waiting[waiting_cnt++] = second;
			continue;
		}
		status = status ? status : append_chars(h, &text, left, out);
		if (status < 0)
			return status;
		left -= (uint32_t)status;
		if (!waiting_cnt)
			return 0;
		word = waiting[--waiting_cnt];
	}
	return left ? -EBADMSG : 0;
}
