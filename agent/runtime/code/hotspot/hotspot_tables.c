/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the tables that describe the virtual machine's structures: arrays of entries that point to their names, until one
 * without. The names lie close together, so pages of them are kept meanwhile: a look at all entries takes a few hundred
 * reads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/hotspot/hotspot_state.h"
#include "agent/runtime/file/hotspot_facts.h"
#include "base/cleanup.h"

enum {
	PAGE = 4096,
	PAGES = 64,	     /* kept at a time, by the low bits of their numbers */
	MAX_ENTRIES = 20000, /* of a table: 3,000 in 17 */
	MAX_STRIDE = 256,
	NAME_BYTES = 96,
	CHUNK_ENTRIES = 64,
};

struct names {
	struct code_memory *memory;
	uint64_t page[PAGES]; /* addresses; 0: nothing */
	uint8_t bytes[PAGES][PAGE];
};

/* Copies the text at @addr, cut at NAME_BYTES. */
static int read_name(struct names *n, uint64_t addr, char name[NAME_BYTES])
{
	for (size_t i = 0; i < NAME_BYTES; i++) {
		uint64_t at = addr + i, page = at / PAGE * PAGE;
		uint32_t slot = (uint32_t)(page / PAGE % PAGES);

		if (n->page[slot] != page || !page) {
			int error = code_read(n->memory, page, n->bytes[slot], PAGE);

			n->page[slot] = error ? 0 : page;
			if (error)
				return error;
		}
		name[i] = (char)n->bytes[slot][at % PAGE];
		if (!name[i])
			return 0;
	}
	name[NAME_BYTES - 1] = '\0';
	return 0;
}

/* --- the tables' wanted entries --- */

static const struct {
	const char *type, *field, *other_type;
	uint8_t bytes;
} fields[F_MAX] = {
#define X(name, type, field, other_type, bytes) [F_##name] = { type, field, other_type, bytes },
	HOTSPOT_FIELDS(X)
#undef X
};

static const struct {
	const char *type, *field;
} statics[S_MAX] = {
#define X(name, type, field) [S_##name] = { type, field },
	HOTSPOT_STATICS(X)
#undef X
};

static const char *const types[T_MAX] = {
#define X(name, type) [T_##name] = type,
	HOTSPOT_TYPES(X)
#undef X
};

/* How wide a field of the type called @type is; 0: the name does not tell. */
static uint8_t bytes_of_type(const char *type, bool *is_signed)
{
	static const struct {
		const char *name;
		uint8_t bytes;
		bool is_signed;
	} known[] = { { "int", 4, true },	    { "jint", 4, true },    { "int16_t", 2, true },
		      { "short", 2, true },	    { "u2", 2, false },	    { "uint16_t", 2, false },
		      { "jushort", 2, false },	    { "u4", 4, false },	    { "uint32_t", 4, false },
		      { "u1", 1, false },	    { "bool", 1, false },   { "size_t", 8, false },
		      { "unsigned int", 4, false }, { "address", 8, false } };

	*is_signed = false;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strcmp(type, known[i].name) != 0)
			continue;
		*is_signed = known[i].is_signed;
		return known[i].bytes;
	}
	return strchr(type, '*') ? 8 : 0;
}

struct entry {
	char type[NAME_BYTES], field[NAME_BYTES], type_string[NAME_BYTES];
	uint64_t field_name; /* its address */
	bool is_static;
	uint64_t offset, address;
};

static void take_field(struct hotspot *s, const struct entry *e)
{
	for (int i = 0; i < F_MAX; i++) {
		struct hotspot_field_place *place = &s->field[i];
		bool is_signed;
		uint8_t bytes;

		if (strcmp(e->field, fields[i].field) != 0 || e->offset >= NO_FIELD ||
		    (strcmp(e->type, fields[i].type) != 0 &&
		     (!fields[i].other_type || strcmp(e->type, fields[i].other_type) != 0)))
			continue;
		bytes = bytes_of_type(e->type_string, &is_signed);
		place->offset = (uint16_t)e->offset;
		place->bytes = bytes ? bytes : fields[i].bytes;
		place->is_signed = is_signed;
	}
}

static void take_static(struct hotspot *s, const struct entry *e)
{
	for (int i = 0; i < S_MAX; i++)
		if (strcmp(e->type, statics[i].type) == 0 && strcmp(e->field, statics[i].field) == 0)
			s->variable[i] = e->address;
	if (strcmp(e->type, "StubRoutines") == 0 && strcmp(e->type_string, "address") == 0 && s->stub_var_cnt < MAX_STUBS) {
		const bool is_barrier = !strncmp(e->field, "_cont_returnBarrier", strlen("_cont_returnBarrier")); /* of 27 */

		s->stubs[s->stub_var_cnt].variable = e->address;
		s->stubs[s->stub_var_cnt].bytes_before = is_barrier ? (CPU_HAS_LR ? 4 : 1) : 0;
		s->stubs[s->stub_var_cnt++].name = e->field_name;
	}
}

/* --- reading --- */

struct table {
	uint64_t addr, stride;
	uint8_t chunk[CHUNK_ENTRIES * MAX_STRIDE];
	uint64_t chunk_at; /* the first entry in it */
	uint64_t chunk_cnt;
};

static int open_table(uint64_t addr, uint64_t stride, struct table *t)
{
	t->addr = addr;
	t->stride = stride;
	t->chunk_cnt = t->chunk_at = 0;
	if (!addr) /* the virtual machine has not begun */
		return -EAGAIN;
	return stride < 16 || stride > MAX_STRIDE ? -ENOTSUP : 0;
}

/* The bytes of entry @i; NULL: they cannot be read. */
static const uint8_t *entry_at(struct code_memory *m, struct table *t, uint64_t i)
{
	if (i - t->chunk_at >= t->chunk_cnt) {
		t->chunk_at = i;
		t->chunk_cnt = CHUNK_ENTRIES;
		while (t->chunk_cnt && code_read(m, t->addr + i * t->stride, t->chunk, t->chunk_cnt * t->stride))
			t->chunk_cnt /= 2; /* it may end near the end of what is mapped */
	}
	return t->chunk_cnt ? t->chunk + (i - t->chunk_at) * t->stride : NULL;
}

static uint64_t word_at(const uint8_t *entry, uint64_t stride, uint64_t offset)
{
	uint64_t value = 0;

	if (stride >= sizeof(value) && offset <= stride - sizeof(value))
		memcpy(&value, entry + offset, sizeof(value));
	return value;
}

static int read_structs(struct hotspot *s, struct names *n, struct table *t, const struct code_facts *facts)
{
	const uint64_t *fact = facts->fact;
	int error = open_table(fact[HOTSPOT_FACT_STRUCTS], fact[HOTSPOT_FACT_STRUCT_STRIDE], t);

	for (uint64_t i = 0; !error && i < MAX_ENTRIES; i++) {
		const uint8_t *bytes = entry_at(n->memory, t, i);
		uint64_t type, type_string;
		struct entry e;

		if (!bytes)
			return -EFAULT;
		type = word_at(bytes, t->stride, fact[HOTSPOT_FACT_STRUCT_TYPE]);
		if (!type)
			return 0;
		e.field_name = word_at(bytes, t->stride, fact[HOTSPOT_FACT_STRUCT_FIELD]);
		type_string = word_at(bytes, t->stride, fact[HOTSPOT_FACT_STRUCT_TYPE_STRING]);
		e.is_static = (uint32_t)word_at(bytes, t->stride, fact[HOTSPOT_FACT_STRUCT_IS_STATIC]);
		e.offset = word_at(bytes, t->stride, fact[HOTSPOT_FACT_STRUCT_OFFSET]);
		e.address = word_at(bytes, t->stride, fact[HOTSPOT_FACT_STRUCT_ADDRESS]);
		error = read_name(n, type, e.type);
		if (!error)
			error = read_name(n, e.field_name, e.field);
		e.type_string[0] = '\0';
		if (!error && type_string)
			error = read_name(n, type_string, e.type_string);
		if (!error && e.is_static)
			take_static(s, &e);
		else if (!error)
			take_field(s, &e);
	}
	return error ? error : -ENOTSUP;
}

static int read_types(struct hotspot *s, struct names *n, struct table *t, const struct code_facts *facts)
{
	const uint64_t *fact = facts->fact;
	int error = open_table(fact[HOTSPOT_FACT_TYPES], fact[HOTSPOT_FACT_TYPE_STRIDE], t);

	for (uint64_t i = 0; !error && i < MAX_ENTRIES; i++) {
		const uint8_t *bytes = entry_at(n->memory, t, i);
		char name[NAME_BYTES];
		uint64_t type;

		if (!bytes)
			return -EFAULT;
		type = word_at(bytes, t->stride, fact[HOTSPOT_FACT_TYPE_NAME]);
		if (!type)
			return 0;
		error = read_name(n, type, name);
		for (int k = 0; !error && k < T_MAX; k++)
			if (strcmp(name, types[k]) == 0)
				s->type_bytes[k] = (uint32_t)word_at(bytes, t->stride, fact[HOTSPOT_FACT_TYPE_SIZE]);
	}
	return error ? error : -ENOTSUP;
}

/* Is everything there without which nothing can be found? */
static bool is_whole(const struct hotspot *s)
{
	static const enum hotspot_field needed[] = {
		F_HEAP_MEMORY,	 F_HEAP_SEGMAP, F_HEAP_SEGMENT_LOG2, F_SPACE_LOW,	F_SPACE_HIGH,
		F_BLOB_NAME,	 F_BLOB_SIZE,	F_BLOB_FRAME_SIZE,   F_NM_METHOD,	F_NM_COMPILE_ID,
		F_METHOD_CONST,	 F_CONST_POOL,	F_CONST_NAME,	     F_POOL_HOLDER,	F_KLASS_NAME,
		F_SYMBOL_LENGTH, F_SYMBOL_BODY, F_NM_ENTRY_BCI,	     F_HEAP_BLOCK_USED,
	};

	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		if (!hotspot_has(s, needed[i]))
			return false;
	for (int i = 0; i < T_CONTINUATION_ENTRY; i++)
		if (!s->type_bytes[i] || s->type_bytes[i] > MAX_BLOB_HEAD)
			return false;
	return (hotspot_has(s, F_BLOB_CODE_BEGIN) && hotspot_has(s, F_BLOB_CODE_END)) ||
	       (hotspot_has(s, F_BLOB_CODE_OFFSET) && hotspot_has(s, F_BLOB_DATA_OFFSET));
}

int hotspot_open(void *state, struct code_memory *m, const struct code_facts *facts, uint64_t bias)
{
	struct hotspot *s = state;
	struct names *n = calloc(1, sizeof(*n));
	struct table *t = malloc(sizeof(*t));
	struct code_facts at = *facts;
	int error = n && t ? 0 : -ENOMEM;

	for (int i = 0; i < HOTSPOT_FACT_MAX; i++)
		at.fact[i] = code_read_u64(m, facts->fact[i] + bias);
	for (int i = 0; i < F_MAX; i++)
		s->field[i].offset = NO_FIELD;
	if (!error) {
		n->memory = m;
		error = read_structs(s, n, t, &at);
	}
	if (!error)
		error = read_types(s, n, t, &at);
	free(n);
	free(t);
	if (!error && !is_whole(s))
		error = -ENOTSUP;
	if (error)
		return error;
	s->major = s->variable[S_HEAP] ? 8 : code_read_u32(m, s->variable[S_MAJOR]);
	return hotspot_read_heaps(s, m);
}
