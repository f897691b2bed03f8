/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, functions and mappings by number: pages of them that are read when a number of theirs is asked for, and stay until
 * there are many, or names_rest(). Frames and nodes are in runs.c, sets and series in sets.c. */
#include "backend/store/sqlite/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sqlite/names_parts.h"
#include "base/cleanup.h"
#include "proto/unnamed.h"

/* The name that was found later for a frame without a function. */
struct given_name {
	const char *function, *system_name, *file;
	int64_t line, start_line;
};

int store_names_new(struct store_sqlite *s, sqlite3 *const *db, struct column_codec *const *codec, struct store_names **ret)
{
	struct store_names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->s = s;
	n->db = db;
	n->codec = codec;
	*ret = n;
	return 0;
}

static void free_texts(struct store_names *n)
{
	while (n->chunks) {
		struct text_chunk *next = n->chunks->next;

		free(n->chunks);
		n->chunks = next;
	}
	n->text_bytes = 0;
}

static void forget_given(struct store_names *n)
{
	size_t pos = 0;
	void *given;

	while (map_next(&n->given, &pos, NULL, &given))
		free(given);
	map_fini(&n->given);
	n->given = MAP_EMPTY;
}

static void forget_pages(struct store_names *n)
{
	for (size_t i = 0; i < NAME_PAGED; i++) {
		size_t pos = 0;
		void *page;

		while (map_next(&n->pages[i], &pos, NULL, &page))
			free(page);
		map_fini(&n->pages[i]);
		n->pages[i] = MAP_EMPTY;
	}
}

/* Forgets all but texts, for somebody may have pointers to these. */
static void forget_read(struct store_names *n)
{
	names_caches_clear(n);
	names_runs_clear(n);
	forget_given(n);
	forget_pages(n);
}

void names_detach(struct store_names *n)
{
	forget_read(n);
	for (size_t i = 0; i < NAME_STATEMENTS; i++) {
		sqlite3_finalize(n->statements[i]);
		n->statements[i] = NULL;
	}
}

void store_names_free(struct store_names *n)
{
	if (!n)
		return;
	names_detach(n);
	free_texts(n);
	free(n);
}

/* A NUL-terminated copy that stays; NULL when out of memory. */
static const char *keep_copy(struct store_names *n, const void *data, size_t len)
{
	struct text_chunk *chunk = n->chunks;
	char *copy;

	if (!chunk || chunk->size - chunk->used < len + 1) {
		size_t size = len + 1 > TEXT_CHUNK_BYTES ? len + 1 : TEXT_CHUNK_BYTES;

		chunk = malloc(sizeof(*chunk) + size);
		if (!chunk)
			return NULL;
		*chunk = (struct text_chunk){ .next = n->chunks, .size = size };
		n->chunks = chunk;
		n->text_bytes += sizeof(*chunk) + size;
	}
	copy = chunk->data + chunk->used;
	chunk->used += len + 1;
	if (len)
		memcpy(copy, data, len);
	copy[len] = '\0';
	return copy;
}

sqlite3_stmt *names_statement(struct store_names *n, enum name_statement which, int64_t value, int *err)
{
	static const char *const sql[NAME_STATEMENTS] = {
		[NAME_STRINGS] = "SELECT id, text FROM strings WHERE id BETWEEN ?1 AND ?2",
		[NAME_FUNCTIONS] = "SELECT id, name, system_name, file, start_line FROM functions WHERE id BETWEEN ?1 AND "
				   "?2",
		[NAME_MAPPINGS] = "SELECT id, path, memory_start, memory_limit, file_offset, attributes FROM mappings WHERE "
				  "id BETWEEN ?1 AND ?2",
		[NAME_FRAMES] = "SELECT first, count, data FROM frames WHERE first <= ?1 ORDER BY first DESC LIMIT 1",
		[NAME_NODES] = "SELECT first, count, data FROM nodes WHERE first <= ?1 ORDER BY first DESC LIMIT 1",
		[NAME_TEXT] = "SELECT text FROM strings WHERE id = ?1",
		[NAME_SETS] = "SELECT first, count, data FROM sets WHERE first <= ?1 ORDER BY first DESC LIMIT 1",
		[NAME_ATTRIBUTES] =
			"SELECT first, count, data FROM attributes WHERE first <= ?1 ORDER BY first DESC LIMIT 1",
		[NAME_SERIES] = "SELECT first, count, data FROM series WHERE first <= ?1 ORDER BY first DESC LIMIT 1",
		[NAME_ORIGIN] =
			"SELECT sample_type, sample_unit, period_type, period_unit, period, shape, attributes, message"
			" FROM origins WHERE id = ?1",
		[NAME_GIVEN] = "SELECT function, system_name, file, line, start_line FROM names WHERE address = ?1 AND "
			       "build_id = ?2",
		[NAME_GIVEN_ANY] = "SELECT 1 FROM names WHERE ?1 = 0 AND build_id = ?2 LIMIT 1",
		[NAME_LINK] = "SELECT trace, span FROM links WHERE id = ?1",
		[NAME_NODE_LAST] = "SELECT first + count FROM nodes WHERE ?1 = 0 ORDER BY first DESC LIMIT 1",
	};
	int code = n->statements[which] ? SQLITE_OK
					: sqlite3_prepare_v3(*n->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT,
							     &n->statements[which], NULL);

	if (code != SQLITE_OK) {
		*err = store_sqlite_errno(code);
		return NULL;
	}
	sqlite3_reset(n->statements[which]);
	sqlite3_bind_int64(n->statements[which], 1, value);
	return n->statements[which];
}

/* --- pages --- */

static int add_string(struct store_names *n, sqlite3_stmt *st, void *row)
{
	const char **text = row;

	*text = keep_copy(n, sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1));
	return *text ? 0 : -ENOMEM;
}

static int add_function(struct store_names *n, sqlite3_stmt *st, void *row)
{
	(void)n;
	*(struct name_function *)row = (struct name_function){
		.name = (uint32_t)sqlite3_column_int64(st, 1),
		.system_name = (uint32_t)sqlite3_column_int64(st, 2),
		.file = (uint32_t)sqlite3_column_int64(st, 3),
		.start_line = sqlite3_column_int64(st, 4),
	};
	return 0;
}

static void find_build_id(struct store_names *n, struct name_mapping *m)
{
	static const char *const kinds[] = { "gnu", "go", "htlhash" };
	static const char *const keys[] = { "process.executable.build_id.gnu", "process.executable.build_id.go",
					    "process.executable.build_id.htlhash" };
	int err = 0;
	const struct name_set *set = names_set(n, m->attributes, &err);

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const char *id = set ? names_set_value(set, keys[i]) : NULL;

		if (!id || !*id)
			continue;
		id = keep_copy(n, id, strlen(id)); /* sets do not stay */
		if (id) {
			m->build_id = id;
			m->id_kind = kinds[i];
			return;
		}
	}
}

static void find_process(struct store_names *n, struct name_mapping *m)
{
	int err = 0;
	const struct name_set *set = names_set(n, m->attributes, &err);
	const char *process = set ? names_set_value(set, CODE_PROCESS_KEY) : NULL;

	process = process && unnamed_is_generated(str_z(m->path)) ? keep_copy(n, process, strlen(process)) : NULL;
	m->process = process ? process : "";
}

static int add_mapping(struct store_names *n, sqlite3_stmt *st, void *row)
{
	struct name_mapping m = { .build_id = "", .id_kind = "", .process = "" };
	const char *slash;
	int err = 0;

	m.path = names_string(n, (uint32_t)sqlite3_column_int64(st, 1), &err);
	if (!m.path)
		return err;
	slash = strrchr(m.path, '/');
	m.module = slash && slash[1] ? slash + 1 : m.path;
	m.memory_start = sqlite3_column_int64(st, 2);
	m.memory_limit = sqlite3_column_int64(st, 3);
	m.file_offset = sqlite3_column_int64(st, 4);
	m.attributes = (uint32_t)sqlite3_column_int64(st, 5);
	find_build_id(n, &m);
	find_process(n, &m);
	*(struct name_mapping *)row = m;
	return 0;
}

static const struct {
	size_t row_bytes;
	int (*add)(struct store_names *n, sqlite3_stmt *st, void *row);
} paged[NAME_PAGED] = {
	[NAME_STRINGS] = { sizeof(char *), add_string },
	[NAME_FUNCTIONS] = { sizeof(struct name_function), add_function },
	[NAME_MAPPINGS] = { sizeof(struct name_mapping), add_mapping },
};

/* Bytes of memory that pages and texts take. */
static size_t names_bytes(const struct store_names *n)
{
	size_t bytes = n->text_bytes;

	for (size_t i = 0; i < NAME_PAGED; i++)
		bytes += n->pages[i].count * (sizeof(struct name_page) + PAGE_NUMBERS * paged[i].row_bytes);
	return bytes;
}

size_t store_names_memory_bytes(const struct store_names *n)
{
	size_t bytes = sizeof(*n) + map_memory_bytes(&n->given) + n->given.count * sizeof(struct given_name);

	for (size_t i = 0; i < NAME_PAGED; i++)
		bytes += map_memory_bytes(&n->pages[i]);
	return bytes + names_bytes(n) + names_caches_memory_bytes(n) + names_runs_memory_bytes(n);
}

/* Forgets pages and the texts that they point to. */
static void forget_names(struct store_names *n)
{
	forget_given(n);
	forget_pages(n);
	free_texts(n);
	memset(n->frame_types, 0, sizeof(n->frame_types));
}

void names_rest(struct store_names *n, bool is_idle)
{
	if (is_idle) {
		forget_read(n);
	} else if (names_runs_memory_bytes(n) + names_lists_memory_bytes(n) > RUNS_KEPT_BYTES) {
		names_runs_clear(n);
		names_lists_clear(n);
	}
	if (is_idle || names_bytes(n) > NAME_BYTES_KEPT)
		forget_names(n);
}

/* The page that @id is on, made when there is none. */
static struct name_page *find_page(struct store_names *n, enum name_statement which, uint32_t id, int *err)
{
	struct name_page *page = map_get(&n->pages[which], id / PAGE_NUMBERS);

	if (page)
		return page;
	page = calloc(1, sizeof(*page) + PAGE_NUMBERS * paged[which].row_bytes);
	*err = page ? map_put(&n->pages[which], id / PAGE_NUMBERS, page) : -ENOMEM;
	if (!*err)
		return page;
	free(page);
	return NULL;
}

/* Reads what the page does not have yet: rows come at the end. */
static int fill_page(struct store_names *n, enum name_statement which, struct name_page *page, uint32_t first)
{
	int code = SQLITE_DONE, err = 0;
	sqlite3_stmt *st = names_statement(n, which, (int64_t)first + page->count, &err);

	if (!st)
		return err;
	sqlite3_bind_int64(st, 2, (int64_t)first + PAGE_NUMBERS - 1);
	while (!err && (code = sqlite3_step(st)) == SQLITE_ROW) {
		uint32_t at = (uint32_t)(sqlite3_column_int64(st, 0) - first);

		err = paged[which].add(n, st, page->rows + at * paged[which].row_bytes);
		page->count = err ? page->count : at + 1;
	}
	sqlite3_reset(st);
	return err ? err : store_sqlite_errno(code);
}

/* Row @id, read with its page when it is not there. */
static const void *get_row(struct store_names *n, enum name_statement which, uint32_t id, int *err)
{
	const uint32_t at = id % PAGE_NUMBERS;
	struct name_page *page = find_page(n, which, id, err);

	if (!page)
		return NULL;
	if (at >= page->count)
		*err = fill_page(n, which, page, id - at);
	if (!*err && at >= page->count)
		*err = -EBADMSG;
	return *err ? NULL : page->rows + at * paged[which].row_bytes;
}

const char *names_string(struct store_names *n, uint32_t id, int *err)
{
	const char *const *text = id ? get_row(n, NAME_STRINGS, id, err) : NULL;

	if (!id)
		return "";
	if (text && !*text)
		*err = -EBADMSG;
	return text ? *text : NULL;
}

const struct name_function *names_function(struct store_names *n, uint32_t id, int *err)
{
	static const struct name_function none = { 0 };

	return id ? get_row(n, NAME_FUNCTIONS, id, err) : &none;
}

const struct name_mapping *names_mapping(struct store_names *n, uint32_t id, int *err)
{
	static const struct name_mapping none = { .path = "", .module = "", .build_id = "", .id_kind = "", .process = "" };
	const struct name_mapping *m = id ? get_row(n, NAME_MAPPINGS, id, err) : &none;

	return m && !m->path ? &none : m;
}

/* A copy of @type that stays; "" for NULL. */
static const char *frame_type(struct store_names *n, const char *type)
{
	size_t i = 0;

	if (!type || !*type)
		return "";
	for (; i < FRAME_TYPES && n->frame_types[i]; i++) {
		if (!strcmp(n->frame_types[i], type))
			return n->frame_types[i];
	}
	if (i == FRAME_TYPES)
		return "";
	n->frame_types[i] = keep_copy(n, type, strlen(type));
	return n->frame_types[i] ? n->frame_types[i] : "";
}

static const char *keep_column(struct store_names *n, sqlite3_stmt *st, int column)
{
	return keep_copy(n, sqlite3_column_blob(st, column), (size_t)sqlite3_column_bytes(st, column));
}

/* Whether addresses of mapping @id, which has been read, were given names: 1, 0 or -errno. Few files have been, and many
 * frames are asked about. */
static int has_given(struct store_names *n, uint32_t id)
{
	struct name_page *page = map_get(&n->pages[NAME_MAPPINGS], id / PAGE_NUMBERS);
	struct name_mapping *m = (struct name_mapping *)page->rows + id % PAGE_NUMBERS;
	sqlite3_stmt *st;
	int err = 0, code;

	if (m->given_version == n->given_version)
		return m->has_given;
	st = names_statement(n, NAME_GIVEN_ANY, 0, &err);
	if (!st)
		return err;
	sqlite3_bind_text(st, 2, m->build_id, -1, SQLITE_STATIC);
	code = sqlite3_step(st);
	sqlite3_reset(st);
	err = store_sqlite_errno(code);
	if (err)
		return err;
	m->has_given = code == SQLITE_ROW;
	m->given_version = n->given_version;
	return m->has_given;
}

/* Names are looked for until there is one, and again when others were given. 0 or -errno. */
static int give_name(struct store_names *n, uint32_t frame, uint32_t mapping, struct store_frame *f)
{
	const uint64_t version = atomic_load(&n->s->store.names_version) + 1; /* 0: of none */
	struct given_name *given;
	int err, code;
	sqlite3_stmt *st;

	if (version != n->given_version)
		forget_given(n);
	n->given_version = version;
	err = has_given(n, mapping);
	if (err <= 0)
		return err;
	err = 0;
	given = map_get(&n->given, frame);
	if (!given) {
		st = names_statement(n, NAME_GIVEN, (int64_t)f->address, &err);
		if (!st)
			return err;
		sqlite3_bind_text(st, 2, f->build_id, -1, SQLITE_STATIC);
		code = sqlite3_step(st);
		if (code == SQLITE_ROW) {
			given = malloc(sizeof(*given));
			if (given)
				*given = (struct given_name){ keep_column(n, st, 0), keep_column(n, st, 1),
							      keep_column(n, st, 2), sqlite3_column_int64(st, 3),
							      sqlite3_column_int64(st, 4) };
			err = given && given->function && given->system_name && given->file
				      ? map_put(&n->given, frame, given)
				      : -ENOMEM;
			if (err) {
				free(given);
				given = NULL;
			}
		} else {
			err = store_sqlite_errno(code);
		}
		sqlite3_reset(st);
	}
	if (given) {
		f->function = given->function;
		f->system_name = given->system_name;
		f->file = given->file;
		f->line = given->line;
		f->start_line = given->start_line;
	}
	return err;
}

/* A whole number of a set; 0: there is none. */
static uint64_t set_number(const struct name_set *set, const char *key)
{
	const char *value = names_set_value(set, key);

	return value ? (uint64_t)strtoll(value, NULL, 10) : 0;
}

int names_store_frame(struct store_names *n, uint32_t frame, struct store_frame *ret)
{
	const struct name_function *function = NULL;
	const struct name_mapping *mapping = NULL;
	const struct name_set *set = NULL;
	int err = 0;
	const struct frame_row *row = names_frame(n, frame, &err);

	if (names_bytes(n) > MOST_NAME_BYTES)
		forget_names(n);
	if (row)
		function = names_function(n, row->function, &err);
	if (function)
		mapping = names_mapping(n, row->mapping, &err);
	if (mapping)
		set = names_set(n, row->attributes, &err);
	if (!set)
		return err;
	*ret = (struct store_frame){
		.function = names_string(n, function->name, &err),
		.system_name = names_string(n, function->system_name, &err),
		.file = names_string(n, function->file, &err),
		.module = mapping->module,
		.path = mapping->path,
		.build_id = mapping->build_id,
		.type = frame_type(n, names_set_value(set, "profile.frame.type")),
		.line = row->line,
		.start_line = function->start_line,
		.address = row->address,
		.process = mapping->process,
		.inlined = row->inlined,
	};
	if (!row->function) {
		ret->code_start = set_number(set, CODE_START_KEY);
		ret->code_size = set_number(set, CODE_SIZE_KEY);
	}
	return err || row->function || !*mapping->build_id ? err : give_name(n, frame, row->mapping, ret);
}
