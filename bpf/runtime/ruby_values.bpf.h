/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ruby's values, as far as names need them: texts, arrays, the names of classes, those of methods by their numbers. */
#ifndef HEARTH_BPF_RUNTIME_RUBY_VALUES_H
#define HEARTH_BPF_RUNTIME_RUBY_VALUES_H

#include "bpf/runtime/chain.bpf.h"
#include "bpf/runtime/ruby_state.h"

static __always_inline bool is_value(__u64 value)
{
	return value && !(value & 7);
}

/* Is @flags of an internal object of the kind @kind? */
static __always_inline bool is_internal(__u64 flags, __u32 kind)
{
	return (flags & RUBY_TYPE_MASK) == RUBY_TYPE_INTERNAL && (flags >> RUBY_INTERNAL_SHIFT & RUBY_INTERNAL_MASK) == kind;
}

/* Where the string @value has its text, and how many bytes. 0, or 1: it is none. */
static __always_inline int find_text(const struct chain *c, __u64 value, __u64 *at, __u64 *len)
{
	__u64 head[4]; /* flags, class, length, address */

	if (!is_value(value) || bpf_probe_read_user(head, sizeof(head), (void *)value) ||
	    (head[0] & RUBY_TYPE_MASK) != RUBY_TYPE_TEXT)
		return 1;
	*len = head[2];
	*at = head[3];
	if (!(head[0] & RUBY_TEXT_ELSEWHERE)) {
		*at = value + chain_offset(c, RUBY_TEXT);
		if (chain_offset(c, RUBY_TEXT) == RUBY_TEXT_LENGTH)
			*len = head[0] >> RUBY_TEXT_LENGTH_SHIFT & 31;
	}
	return 0;
}

/* Element @i of the array @value. 0, or 1: it is none. */
static __always_inline int read_element(__u64 value, __u64 i, __u64 *ret, __u32 bytes)
{
	__u64 flags, at = value + RUBY_ARRAY_FIRST;

	if (!is_value(value) || read_word(value, &flags) || (flags & RUBY_TYPE_MASK) != RUBY_TYPE_ARRAY)
		return 1;
	if (!(flags & RUBY_ARRAY_INSIDE) && read_word(value + RUBY_ARRAY_AT, &at))
		return 1;
	return bpf_probe_read_user(ret, bytes, (void *)(at + i * 8)) != 0;
}

static __always_inline bool is_class(__u64 value, __u64 *flags)
{
	__u32 type;

	if (!is_value(value) || read_word(value, flags))
		return false;
	type = *flags & RUBY_TYPE_MASK;
	return type == RUBY_TYPE_CLASS || type == RUBY_TYPE_MODULE;
}

/* Entries of a table of variables: hash, key, value. */
struct variables {
	__u64 cnt;
	__u64 words[RUBY_TABLE_ENTRIES * 3];
	__u64 table[RUBY_TABLE_BYTES /
		    8]; /* powers, type, count, bins, first, last, entries; there is room for 4 at least */
};

/* The first variables of @class; NULL: it has none. */
static __always_inline const struct variables *read_variables(const struct chain *c, __u64 class)
{
	struct variables *v = (void *)c->work->room;
	__u64 at;

	if (read_word(class + RUBY_CLASS_EXT, &at) || !at || read_word(at + RUBY_EXT_TABLE, &at) || !at ||
	    bpf_probe_read_user(v->table, sizeof(v->table), (void *)at) || !v->table[2])
		return NULL;
	v->cnt = v->table[5] - v->table[4];
	if (bpf_probe_read_user(v->words, sizeof(v->words), (void *)(v->table[6] + v->table[4] * 24)))
		return NULL;
	return v;
}

/* The object that the singleton class @class is of. */
static __always_inline __u64 find_attached(const struct chain *c, __u64 class)
{
	const struct variables *v;
	__u64 at;

	switch (c->work->state.style) {
	case RUBY_NAMES_TABLE:
		v = read_variables(c, class);
		return v ? v->words[2] : 0;
	case RUBY_NAMES_FIRST:
		return read_word(class + chain_offset(c, RUBY_CLASS_VARIABLES), &at) || read_word(at, &at) ? 0 : at;
	default:
		return read_word(class + chain_offset(c, RUBY_CLASS_ATTACHED), &at) ? 0 : at;
	}
}

/* The name of @class among its variables: under the key under which Object has its only one. */
static __always_inline __u64 find_in_table(const struct chain *c, __u64 class)
{
	const struct variables *v;
	__u64 object, key;

	if (!c->work->state.data[RUBY_OBJECT] || read_word(c->work->state.data[RUBY_OBJECT], &object))
		return 0;
	v = read_variables(c, object);
	if (!v)
		return 0;
	key = v->words[1];
	v = read_variables(c, class);
#pragma GCC unroll 4
	for (__u32 i = 0; v && i < RUBY_TABLE_ENTRIES; i++)
		if (i < v->cnt && v->words[i * 3 + 1] == key)
			return v->words[i * 3 + 2];
	return 0;
}

/* The name of @class, a string; 0: it has none. */
static __always_inline __u64 find_path(const struct chain *c, __u64 class)
{
	__u64 at;
	__u8 is_permanent;

	switch (c->work->state.style) {
	case RUBY_NAMES_TABLE:
		return find_in_table(c, class);
	case RUBY_NAMES_FIRST:
		return read_word(class + chain_offset(c, RUBY_CLASS_VARIABLES), &at) || read_word(at, &at) ? 0 : at;
	default:
		if (bpf_probe_read_user(&is_permanent, 1, (void *)(class + chain_offset(c, RUBY_CLASS_PERMANENT))) ||
		    !(is_permanent & 1))
			return 0;
		return read_word(class + chain_offset(c, RUBY_CLASS_PATH), &at) ? 0 : at;
	}
}

/* The name of the number @id, a string: symbol.c, get_id_serial_entry(). 0: none. The symbol beside it must be of that
 * number. */
static __always_inline __u64 find_name(const struct chain *c, __u64 id)
{
	__u64 ids, chunk, pair[2], number = id, symbol_id;

	if (id > chain_offset(c, RUBY_LAST_OPERATOR))
		number = (__u32)(id >> RUBY_NUMBER_SHIFT);
	if (!c->work->state.data[RUBY_SYMBOLS] || read_word(c->work->state.data[RUBY_SYMBOLS], &ids) ||
	    read_element(ids, number / RUBY_NUMBERS_A_CHUNK, &chunk, 8) ||
	    read_element(chunk, number % RUBY_NUMBERS_A_CHUNK * 2, pair, 16))
		return 0;
	if ((pair[1] & 255) == 12) /* ruby/internal/special_consts.h: RUBY_SYMBOL_FLAG */
		return pair[1] >> 8 == id ? pair[0] : 0;
	if (!is_value(pair[1]) || read_word(pair[1] + 32, &symbol_id)) /* struct RSymbol.id */
		return 0;
	return symbol_id == id ? pair[0] : 0;
}

#endif
