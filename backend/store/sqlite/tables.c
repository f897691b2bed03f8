/* SPDX-License-Identifier: Apache-2.0 */
/* Names, frames and stacks of the store as the tables of an OTLP dictionary. */
#include "backend/store/sqlite/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/origin.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "proto/otlp/otlp.h"

enum { STACK_MOST_FRAMES = 1 << 16 };

static const size_t row_sizes[OUT_KINDS] = {
	[OUT_STRINGS] = sizeof(struct str),
	[OUT_ATTRIBUTES] = sizeof(struct profile_attribute),
	[OUT_FUNCTIONS] = sizeof(struct profile_function),
	[OUT_MAPPINGS] = sizeof(struct profile_mapping),
	[OUT_LOCATIONS] = sizeof(struct profile_location),
	[OUT_STACKS] = sizeof(struct indices),
	[OUT_LINKS] = sizeof(struct profile_link),
	[OUT_SETS] = sizeof(struct indices),
};

/* The index under @key: > 0 when it stands; else 0, with a new zeroed row in *@row_ret and its index in *@index_new. */
static int32_t find(struct out_tables *t, enum out_kind kind, const void *key, size_t len, void **row_ret,
		    int32_t *index_new)
{
	struct out_table *table = &t->tables[kind];
	uint32_t index;
	int is_new = intern_add(table->keys, key, len, &index);

	if (is_new < 0)
		return is_new;
	index++; /* element 0 is no key's */
	if (!is_new)
		return (int32_t)index;
	if (index > INT32_MAX - 1)
		return -EOVERFLOW;
	if (VEC_RESERVE(&table->rows, &table->cap, index + 1ull, table->size, false))
		return -ENOMEM;
	*row_ret = table->rows + index * table->size;
	memset(*row_ret, 0, table->size);
	*index_new = (int32_t)index;
	return 0;
}

int out_tables_init(struct out_tables *t, struct store_names *names, struct profiles *p)
{
	*t = (struct out_tables){ .names = names, .p = p, .stack = malloc(STACK_MOST_FRAMES * sizeof(*t->stack)) };
	if (!t->stack)
		return -ENOMEM;
	for (size_t i = 0; i < OUT_KINDS; i++) {
		struct out_table *table = &t->tables[i];

		*table = (struct out_table){ intern_new(), calloc(64, row_sizes[i]), row_sizes[i], 64 };
		if (!table->keys || !table->rows)
			return -ENOMEM;
	}
	((struct str *)t->tables[OUT_STRINGS].rows)->data = "";
	*(struct profile_link *)t->tables[OUT_LINKS].rows = (struct profile_link){ STR(""), STR("") };
	return 0;
}

void out_tables_fini(struct out_tables *t)
{
	for (size_t i = 0; i < OUT_KINDS; i++) {
		intern_free(t->tables[i].keys);
		free(t->tables[i].rows);
	}
	free(t->stack);
}

size_t out_tables_memory_bytes(const struct out_tables *t)
{
	size_t bytes = 0;

	for (size_t i = 0; i < OUT_KINDS; i++)
		bytes += intern_memory_bytes(t->tables[i].keys) + t->tables[i].cap * t->tables[i].size;
	return bytes;
}

int out_tables_finish(struct out_tables *t)
{
	struct dictionary *d = &t->p->dict;
	const struct {
		void *rows;
		uint32_t *count;
	} places[] = {
		[OUT_STRINGS] = { &d->strings, &d->string_count },
		[OUT_ATTRIBUTES] = { &d->attributes, &d->attribute_count },
		[OUT_FUNCTIONS] = { &d->functions, &d->function_count },
		[OUT_MAPPINGS] = { &d->mappings, &d->mapping_count },
		[OUT_LOCATIONS] = { &d->locations, &d->location_count },
		[OUT_STACKS] = { &d->stacks, &d->stack_count },
		[OUT_LINKS] = { &d->links, &d->link_count },
	};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct out_table *table = &t->tables[i];
		uint32_t count = intern_count(table->keys) + 1;
		void *rows;

		intern_free(table->keys); /* nothing is asked any more, and the copy wants room */
		table->keys = NULL;
		rows = profiles_alloc(t->p, count * table->size);
		if (!rows)
			return -ENOMEM;
		memcpy(rows, table->rows, count * table->size);
		free(table->rows);
		table->rows = NULL;
		memcpy(places[i].rows, &rows, sizeof(rows));
		*places[i].count = count;
	}
	return 0;
}

int32_t out_string(struct out_tables *t, const char *text)
{
	size_t len = strlen(text);
	int32_t index, index_new;
	void *row;

	if (!len)
		return 0;
	index = find(t, OUT_STRINGS, text, len, &row, &index_new);
	if (index)
		return index;
	index = origin_copy_string(t->p, (struct str){ text, (uint32_t)len }, row);
	return index ? index : index_new;
}

static int32_t out_string_of(struct out_tables *t, uint32_t id)
{
	int err = 0;
	const char *text = names_string(t->names, id, &err);

	return text ? out_string(t, text) : err;
}

/* --- attributes --- */

static int32_t out_attribute(struct out_tables *t, uint32_t id)
{
	uint32_t key, unit;
	struct profile_attribute a = { 0 };
	int32_t index_new, index;
	void *row;
	int err;

	index = find(t, OUT_ATTRIBUTES, &id, sizeof(id), &row, &index_new);
	if (index)
		return index;
	err = names_attribute(t->names, id, t->p, &key, &unit, &a.value);
	if (err)
		return err;
	a.key_strindex = out_string_of(t, key);
	a.unit_strindex = out_string_of(t, unit);
	if (a.key_strindex < 0 || a.unit_strindex < 0)
		return a.key_strindex < 0 ? a.key_strindex : a.unit_strindex;
	*(struct profile_attribute *)row = a;
	return index_new;
}

static int32_t out_cpu(struct out_tables *t, uint32_t cpu)
{
	const uint64_t key = (uint64_t)cpu << 32 | UINT32_MAX; /* longer than an attribute's number */
	int32_t index_new, index, name;
	void *row;

	index = find(t, OUT_ATTRIBUTES, &key, sizeof(key), &row, &index_new);
	if (index)
		return index;
	name = out_string(t, "cpu.logical_number");
	if (name < 0)
		return name;
	*(struct profile_attribute *)row = (struct profile_attribute){
		.key_strindex = name,
		.value = { .kind = VALUE_INT, .integer = (int64_t)cpu - 1 },
	};
	return index_new;
}

int out_set(struct out_tables *t, uint32_t set, uint32_t cpu, struct indices *ret)
{
	const uint32_t key[2] = { set, cpu };
	const struct name_set *labels;
	struct indices list = { 0 };
	int32_t index, index_new;
	void *row;
	int err = 0;

	index = find(t, OUT_SETS, key, sizeof(key), &row, &index_new);
	if (index < 0)
		return index;
	if (index) {
		*ret = ((const struct indices *)t->tables[OUT_SETS].rows)[index];
		return 0;
	}
	labels = names_set(t->names, set, &err);
	if (!labels)
		return err;
	list.items = profiles_alloc(t->p, (labels->count + 1) * sizeof(*list.items));
	if (!list.items)
		return -ENOMEM;
	for (uint32_t i = 0; i < labels->count; i++) {
		list.items[list.count] = out_attribute(t, labels->labels[i]->attribute);
		if (list.items[list.count++] < 0)
			return list.items[list.count - 1];
	}
	if (cpu) {
		list.items[list.count] = out_cpu(t, cpu);
		if (list.items[list.count++] < 0)
			return list.items[list.count - 1];
	}
	((struct indices *)t->tables[OUT_SETS].rows)[index_new] = list;
	*ret = list;
	return 0;
}

int out_key_values(struct out_tables *t, uint32_t set, struct key_values *ret)
{
	int err = 0;
	const struct name_set *labels = names_set(t->names, set, &err);

	if (!labels)
		return err;
	*ret = (struct key_values){ profiles_alloc(t->p, (labels->count + 1) * sizeof(*ret->items)), labels->count };
	if (!ret->items)
		return -ENOMEM;
	for (uint32_t i = 0; i < labels->count && !err; i++) {
		const struct name_label *label = labels->labels[i];
		struct key_value *kv = &ret->items[i];
		uint32_t key, unit;

		err = origin_copy_string(t->p, str_z(label->key), &kv->key);
		if (!err)
			err = names_attribute(t->names, label->attribute, t->p, &key, &unit, &kv->value);
	}
	return err;
}

/* --- stacks --- */

static int32_t out_function(struct out_tables *t, uint32_t id)
{
	struct profile_function f = { 0 };
	const struct name_function *function;
	int32_t index, index_new;
	void *row;
	int err = 0;

	if (!id)
		return 0;
	index = find(t, OUT_FUNCTIONS, &id, sizeof(id), &row, &index_new);
	if (index)
		return index;
	function = names_function(t->names, id, &err);
	if (!function)
		return err;
	f.name_strindex = out_string_of(t, function->name);
	f.system_name_strindex = out_string_of(t, function->system_name);
	f.filename_strindex = out_string_of(t, function->file);
	f.start_line = function->start_line;
	if (f.name_strindex < 0 || f.system_name_strindex < 0 || f.filename_strindex < 0)
		return -EBADMSG;
	*(struct profile_function *)row = f;
	return index_new;
}

static int32_t out_mapping(struct out_tables *t, uint32_t id)
{
	struct profile_mapping m = { 0 };
	const struct name_mapping *mapping;
	int32_t index, index_new;
	void *row;
	int err = 0;

	if (!id)
		return 0;
	index = find(t, OUT_MAPPINGS, &id, sizeof(id), &row, &index_new);
	if (index)
		return index;
	mapping = names_mapping(t->names, id, &err);
	if (!mapping)
		return err;
	m.memory_start = (uint64_t)mapping->memory_start;
	m.memory_limit = (uint64_t)mapping->memory_limit;
	m.file_offset = (uint64_t)mapping->file_offset;
	m.filename_strindex = out_string(t, mapping->path);
	if (m.filename_strindex < 0)
		return m.filename_strindex;
	err = out_set(t, mapping->attributes, 0, &m.attributes);
	if (err)
		return err;
	*(struct profile_mapping *)row = m;
	return index_new;
}

/* One location of @count frames, innermost call first: all but the last are inlined. */
static int32_t out_location(struct out_tables *t, const uint32_t *frames, uint32_t count)
{
	struct profile_location l = { .line_count = count };
	struct frame_row outer;
	int32_t index, index_new;
	void *row;
	int err = 0;

	index = find(t, OUT_LOCATIONS, frames, count * sizeof(*frames), &row, &index_new);
	if (index)
		return index;
	l.lines = profiles_alloc(t->p, count * sizeof(*l.lines));
	if (!l.lines)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct frame_row *frame = names_frame(t->names, frames[i], &err);

		if (!frame)
			return err;
		outer = *frame;
		l.lines[i] = (struct profile_line){ out_function(t, outer.function), outer.line, outer.column };
		if (l.lines[i].function_index < 0)
			return l.lines[i].function_index;
	}
	if (count == 1 && !outer.function && !outer.line)
		l.line_count = 0;
	l.address = outer.address;
	l.mapping_index = out_mapping(t, outer.mapping);
	if (l.mapping_index < 0)
		return l.mapping_index;
	err = out_set(t, outer.attributes, 0, &l.attributes);
	if (err)
		return err;
	*(struct profile_location *)row = l;
	return index_new;
}

/* Puts the locations from @node to the root into t->stack. 0 or -errno. */
static int walk(struct out_tables *t, uint32_t node, uint32_t *count_ret)
{
	uint32_t frames[256], n = 0;
	int err = 0;

	while (node && !err) {
		struct store_node row;
		const struct frame_row *frame;

		err = names_nodes(t->names, node, 1, &row);
		frame = err ? NULL : names_frame(t->names, row.frame, &err);
		if (!frame)
			break;
		frames[n++] = row.frame;
		node = row.parent;
		if (frame->inlined && node && n < ARRAY_LEN(frames))
			continue;
		t->stack[*count_ret] = out_location(t, frames, n);
		err = t->stack[*count_ret] < 0 ? t->stack[*count_ret] : 0;
		if (++*count_ret == STACK_MOST_FRAMES)
			break;
		n = 0;
	}
	return err;
}

int32_t out_stack(struct out_tables *t, uint32_t node)
{
	struct indices stack = { 0 };
	int32_t index, index_new;
	void *row;
	int err;

	if (!node)
		return 0;
	index = find(t, OUT_STACKS, &node, sizeof(node), &row, &index_new);
	if (index)
		return index;
	err = walk(t, node, &stack.count);
	if (err)
		return err;
	stack.items = profiles_alloc(t->p, stack.count * sizeof(*stack.items));
	if (!stack.items)
		return -ENOMEM;
	memcpy(stack.items, t->stack, stack.count * sizeof(*stack.items));
	*(struct indices *)row = stack;
	return index_new;
}

int32_t out_link(struct out_tables *t, uint32_t link)
{
	int32_t index, index_new = 0;
	void *row = NULL;

	if (!link)
		return 0;
	index = find(t, OUT_LINKS, &link, sizeof(link), &row, &index_new);
	if (index)
		return index;
	index = names_link(t->names, link, t->p, row);
	return index ? index : index_new;
}
