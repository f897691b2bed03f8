/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of methods from the metadata of an image in memory (ECMA-335, partition II, 24). Tables have rows of a length
 * that the sizes of all other tables decide; only the rows that a name needs are read. No state.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"
#include "base/cleanup.h"

enum {
	TABLES = 45,
	TYPE_DEF = 0x02,
	METHOD_DEF = 0x06,
	NESTED_CLASS = 0x29,
	GENERIC_PARAM = 0x2a,
	MAX_COLUMNS = 10,
	MAX_STREAMS = 8,
	MAX_PARAMETERS = 16,
	BIG_HEAP = 1 << 16,
};

/* Kinds of columns; a table's number plus TABLE: a row of it. */
enum { END, WORD, LONG, STRING, GUID, BLOB, CODED, TABLE = CODED + 13 };

/* Kinds of rows of one of several tables: how many bits tell which one, and those that there may be; 0xff: none more. */
static const struct {
	uint8_t bits, tables[22];
} coded[TABLE - CODED] = {
#define TYPE_DEF_OR_REF (CODED + 0)
	{ 2, { 0x02, 0x01, 0x1b, 0xff } },
#define HAS_CONSTANT (CODED + 1)
	{ 2, { 0x04, 0x08, 0x17, 0xff } },
#define HAS_ATTRIBUTE (CODED + 2)
	{ 5, { 0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14,
	       0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26, 0x27, 0x28, 0x2a, 0x2c, 0x2b } },
#define HAS_MARSHAL (CODED + 3)
	{ 1, { 0x04, 0x08, 0xff } },
#define HAS_SECURITY (CODED + 4)
	{ 2, { 0x02, 0x06, 0x20, 0xff } },
#define MEMBER_PARENT (CODED + 5)
	{ 3, { 0x02, 0x01, 0x1a, 0x06, 0x1b, 0xff } },
#define HAS_SEMANTICS (CODED + 6)
	{ 1, { 0x14, 0x17, 0xff } },
#define METHOD_DEF_OR_REF (CODED + 7)
	{ 1, { 0x06, 0x0a, 0xff } },
#define FORWARDED (CODED + 8)
	{ 1, { 0x04, 0x06, 0xff } },
#define IMPLEMENTATION (CODED + 9)
	{ 2, { 0x26, 0x23, 0x27, 0xff } },
#define ATTRIBUTE_TYPE (CODED + 10)
	{ 3, { 0x06, 0x0a, 0xff } },
#define SCOPE (CODED + 11)
	{ 2, { 0x00, 0x1a, 0x23, 0x01, 0xff } },
#define TYPE_OR_METHOD (CODED + 12)
	{ 1, { 0x02, 0x06, 0xff } },
};

/* The tables up to the last one needed, by number. */
static const uint8_t columns[GENERIC_PARAM + 1][MAX_COLUMNS] = {
	{ WORD, STRING, GUID, GUID, GUID },
	{ SCOPE, STRING, STRING },
	{ LONG, STRING, STRING, TYPE_DEF_OR_REF, TABLE + 0x04, TABLE + 0x06 },
	{ TABLE + 0x04 },
	{ WORD, STRING, BLOB },
	{ TABLE + 0x06 },
	{ LONG, WORD, WORD, STRING, BLOB, TABLE + 0x08 },
	{ TABLE + 0x08 },
	{ WORD, WORD, STRING },
	{ TABLE + 0x02, TYPE_DEF_OR_REF },
	{ MEMBER_PARENT, STRING, BLOB },
	{ WORD, HAS_CONSTANT, BLOB },
	{ HAS_ATTRIBUTE, ATTRIBUTE_TYPE, BLOB },
	{ HAS_MARSHAL, BLOB },
	{ WORD, HAS_SECURITY, BLOB },
	{ WORD, LONG, TABLE + 0x02 },
	{ LONG, TABLE + 0x04 },
	{ BLOB },
	{ TABLE + 0x02, TABLE + 0x14 },
	{ TABLE + 0x14 },
	{ WORD, STRING, TYPE_DEF_OR_REF },
	{ TABLE + 0x02, TABLE + 0x17 },
	{ TABLE + 0x17 },
	{ WORD, STRING, BLOB },
	{ WORD, TABLE + 0x06, HAS_SEMANTICS },
	{ TABLE + 0x02, METHOD_DEF_OR_REF, METHOD_DEF_OR_REF },
	{ STRING },
	{ BLOB },
	{ WORD, FORWARDED, STRING, TABLE + 0x1a },
	{ LONG, TABLE + 0x04 },
	{ LONG, LONG },
	{ LONG },
	{ LONG, WORD, WORD, WORD, WORD, LONG, BLOB, STRING, STRING },
	{ LONG },
	{ LONG, LONG, LONG },
	{ WORD, WORD, WORD, WORD, LONG, BLOB, STRING, STRING, BLOB },
	{ LONG, TABLE + 0x23 },
	{ LONG, LONG, LONG, TABLE + 0x23 },
	{ LONG, STRING, BLOB },
	{ LONG, LONG, STRING, STRING, IMPLEMENTATION },
	{ LONG, LONG, STRING, IMPLEMENTATION },
	{ TABLE + 0x02, TABLE + 0x02 },
	{ WORD, WORD, TYPE_OR_METHOD, STRING },
};

struct metadata {
	struct code_memory *m;
	uint64_t strings, table[GENERIC_PARAM + 1];
	uint32_t rows[TABLES];
	uint8_t heaps; /* bit 0: strings, 1: GUIDs, 2: blobs have indexes of 4 bytes */
};

static uint32_t column_bytes(const struct metadata *d, uint8_t kind)
{
	uint32_t most = 0;

	switch (kind) {
	case WORD:
		return 2;
	case LONG:
		return 4;
	case STRING:
	case GUID:
	case BLOB:
		return d->heaps >> (kind - STRING) & 1 ? 4 : 2;
	default:
		break;
	}
	if (kind >= TABLE)
		return d->rows[kind - TABLE] < BIG_HEAP ? 2 : 4;
	for (size_t i = 0; i < sizeof(coded[0].tables) && coded[kind - CODED].tables[i] != 0xff; i++)
		if (d->rows[coded[kind - CODED].tables[i]] > most)
			most = d->rows[coded[kind - CODED].tables[i]];
	return most < (uint32_t)BIG_HEAP >> coded[kind - CODED].bits ? 2 : 4;
}

static uint32_t row_bytes(const struct metadata *d, uint32_t table)
{
	uint32_t bytes = 0;

	for (int i = 0; i < MAX_COLUMNS && columns[table][i] != END; i++)
		bytes += column_bytes(d, columns[table][i]);
	return bytes;
}

/* The value of a row (from 1); 0: there is no such row. */
static uint32_t value_of(const struct metadata *d, uint32_t table, uint32_t row, int column)
{
	uint64_t at = d->table[table] + (uint64_t)(row - 1) * row_bytes(d, table);

	if (!row || row > d->rows[table])
		return 0;
	for (int i = 0; i < column; i++)
		at += column_bytes(d, columns[table][i]);
	return column_bytes(d, columns[table][column]) == 2 ? code_read_u16(d->m, at) : code_read_u32(d->m, at);
}

/* The first row of @table, sorted by @column, whose value there is @value or more. */
static uint32_t first_row(const struct metadata *d, uint32_t table, int column, uint32_t value)
{
	uint32_t from = 1, to = d->rows[table] + 1;

	while (from < to && !d->m->is_spent) {
		uint32_t middle = from + (to - from) / 2;

		if (value_of(d, table, middle, column) >= value)
			to = middle;
		else
			from = middle + 1;
	}
	return from;
}

/* --- the way to the tables --- */

uint64_t dotnet_metadata_stream(struct code_memory *m, uint64_t root, const char *wanted)
{
	uint32_t version_bytes = code_read_u32(m, root + 12), count;
	uint64_t at = root + 16 + ((version_bytes + 3) & ~3u) + 4;

	if (version_bytes > 256)
		return 0;
	count = code_read_u16(m, at - 2);
	for (uint32_t i = 0; i < count && i < MAX_STREAMS; i++) {
		char name[32];

		if (code_read_text(m, at + 8, name, sizeof(name)))
			return 0;
		if (!strcmp(name, wanted))
			return root + code_read_u32(m, at);
		at += 8 + ((strlen(name) + 4) & ~3ul);
	}
	return 0;
}

static int open_tables(struct metadata *d, uint64_t base)
{
	struct dotnet_image im;
	uint64_t at, there;
	int error = dotnet_image_open(d->m, base, &im);

	if (error)
		return error;
	at = dotnet_metadata_stream(d->m, im.root, "#~");
	d->strings = dotnet_metadata_stream(d->m, im.root, "#Strings");
	if (!at || !d->strings)
		return dotnet_unreadable(d->m, -EBADMSG);
	d->heaps = code_read_u8(d->m, at + 6);
	there = code_read_u64(d->m, at + 8);
	at += 24;
	for (uint32_t i = 0; i < 64; i++) {
		if (!(there >> i & 1))
			continue;
		if (i < TABLES)
			d->rows[i] = code_read_u32(d->m, at);
		at += 4;
	}
	for (uint32_t i = 0; i <= GENERIC_PARAM; i++) {
		if (d->rows[i] >> 24) /* tokens have 24 bits */
			return -EBADMSG;
		d->table[i] = at;
		at += (uint64_t)d->rows[i] * row_bytes(d, i);
	}
	return dotnet_unreadable(d->m, 0);
}

/* --- names --- */

static int read_string(const struct metadata *d, uint32_t table, uint32_t row, int column, char text[static DOTNET_MAX_PART])
{
	int error = code_read_text(d->m, d->strings + value_of(d, table, row, column), text, DOTNET_MAX_PART);

	if (error != -ENAMETOOLONG)
		return error;
	text[DOTNET_MAX_PART - 1] = '\0';
	return 0;
}

static void append(char text[static DOTNET_MAX_PART], const char *more)
{
	size_t len = strlen(text);

	snprintf(text + len, DOTNET_MAX_PART - len, "%s", more);
}

/* Appends <T, U>: of the parameters of @owner (a coded row) those from @first on, @count at most. */
static void append_parameters(const struct metadata *d, uint32_t owner, uint32_t first, uint32_t count,
			      char text[static DOTNET_MAX_PART])
{
	uint32_t row = first_row(d, GENERIC_PARAM, 2, owner) + first;
	char name[DOTNET_MAX_PART];
	bool has_any = false;

	for (uint32_t i = 0; i < count && value_of(d, GENERIC_PARAM, row + i, 2) == owner; i++) {
		if (read_string(d, GENERIC_PARAM, row + i, 3, name))
			return;
		append(text, has_any ? ", " : "<");
		append(text, name);
		has_any = true;
	}
	if (has_any)
		append(text, ">");
}

/* Names of types carry the number of their own parameters, "List`1"; rows of inner types have those of outer ones, too. */
static void write_parameters(const struct metadata *d, uint32_t type, struct dotnet_text *t)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < t->depth; i++) {
		char *mark = strrchr(t->types[i], '`');
		uint32_t count = 0;

		if (!mark)
			continue;
		for (const char *digit = mark + 1; *digit >= '0' && *digit <= '9' && count < MAX_PARAMETERS; digit++)
			count = 10 * count + (uint32_t)(*digit - '0');
		*mark = '\0';
		append_parameters(d, type << 1, first, count, t->types[i]);
		first += count;
	}
}

/* Reads @type and the types around it. */
static int read_types(const struct metadata *d, uint32_t type, struct dotnet_text *t)
{
	uint32_t chain[DOTNET_MAX_DEPTH], n = 0, innermost = type;
	int error = 0;

	while (type && n < DOTNET_MAX_DEPTH) {
		uint32_t row = first_row(d, NESTED_CLASS, 0, type);

		chain[n++] = type;
		type = value_of(d, NESTED_CLASS, row, 0) == type ? value_of(d, NESTED_CLASS, row, 1) : 0;
	}
	for (t->depth = 0; !error && t->depth < n; t->depth++)
		error = read_string(d, TYPE_DEF, chain[n - 1 - t->depth], 1, t->types[t->depth]);
	if (!error)
		error = read_string(d, TYPE_DEF, chain[n - 1], 2, t->namespace);
	if (!error)
		write_parameters(d, innermost, t);
	return error;
}

int dotnet_metadata_name(struct code_memory *m, uint64_t base, uint32_t method, char text[static DOTNET_MAX_NAME])
{
	struct metadata d = { .m = m };
	struct dotnet_text t = { 0 };
	int error = open_tables(&d, base);
	uint32_t type;

	if (!error && (!method || method > d.rows[METHOD_DEF]))
		error = -EBADMSG;
	if (error)
		return error;
	type = first_row(&d, TYPE_DEF, 5, method + 1) - 1; /* the last whose methods begin there or before */
	if (!type)
		return dotnet_unreadable(m, -EBADMSG);
	error = read_string(&d, METHOD_DEF, method, 3, t.method);
	if (!error)
		error = read_types(&d, type, &t);
	if (error)
		return error;
	append_parameters(&d, method << 1 | 1, 0, MAX_PARAMETERS, t.method);
	dotnet_text_write(&t, text);
	return dotnet_unreadable(m, 0);
}
