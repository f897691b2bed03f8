/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers the stacks and frames that questions have met: stacks become paths in one tree, as the interface has it. They are
 * fetched by their ids when they are met first, and kept until they take too much memory. Frame 0 stands for one that
 * ClickHouse does not know (any more). Under the store's read_lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/ids.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/vec.h"
#include "proto/arena.h"
#include "proto/unnamed.h"

enum {
	IDS_AT_ONCE = 20000,
	MOST_NODES = 8 << 20,
	MOST_FRAMES = 2 << 20,
};

struct node {
	uint32_t parent, frame;
};

struct frame {
	struct store_frame shown;
	struct click_frame_more more;
};

struct click_names {
	struct arena *texts;
	struct map known_texts;	   /* hash -> text with a NUL behind it */
	struct map stacks, frames; /* id -> number + 1 */
	struct map children;	   /* parent and frame -> node */
	struct node *nodes;
	size_t node_count, node_cap;
	struct frame *items;
	size_t frame_count, frame_cap;
	uint64_t names_version; /* of the store, when it began */
};

static const struct store_frame no_frame = {
	.function = "", .system_name = "", .file = "", .module = "", .path = "", .build_id = "", .type = "", .process = ""
};

static void forget(struct click_names *n)
{
	struct map *const maps[] = { &n->known_texts, &n->stacks, &n->frames, &n->children };

	for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
		map_fini(maps[i]);
		*maps[i] = MAP_EMPTY;
	}
	arena_free(n->texts);
	n->texts = NULL;
	free(n->nodes);
	free(n->items);
	n->nodes = NULL;
	n->items = NULL;
	n->node_count = n->node_cap = n->frame_count = n->frame_cap = 0;
}

static int add_node(struct click_names *n, uint32_t parent, uint32_t frame)
{
	int err = vec_reach(&n->nodes, &n->node_cap, n->node_count);

	if (!err)
		n->nodes[n->node_count++] = (struct node){ parent, frame };
	return err;
}

static int add_frame(struct click_names *n, const struct frame *frame)
{
	int err = vec_reach(&n->items, &n->frame_cap, n->frame_count);

	if (!err)
		n->items[n->frame_count++] = *frame;
	return err;
}

static int begin(struct click_names *n)
{
	const struct frame none = { no_frame, { .id_kind = "", .attributes = { STR("\0\0\0\0"), STR("\0\0\0\0") } } };
	int err;

	n->texts = arena_new();
	err = n->texts ? add_node(n, 0, 0) : -ENOMEM;
	return err ? err : add_frame(n, &none);
}

struct click_names *click_names_new(void)
{
	struct click_names *n = calloc(1, sizeof(*n));

	if (n && begin(n)) {
		click_names_free(n);
		return NULL;
	}
	return n;
}

void click_names_free(struct click_names *n)
{
	if (n)
		forget(n);
	free(n);
}

void click_rest(struct store *store, bool is_idle)
{
	struct store_clickhouse *s = store_clickhouse_of(store);
	struct click_names *n = s->names;

	(void)is_idle; /* to ask for it all again takes long */
	pthread_mutex_lock(&s->read_lock);
	if (n->node_count > MOST_NODES || n->frame_count > MOST_FRAMES ||
	    n->names_version != atomic_load(&store->names_version) || !n->frame_count) {
		forget(n);
		if (begin(n))
			forget(n);
		n->names_version = atomic_fetch_add(&store->names_version, 1) + 1;
	}
	pthread_mutex_unlock(&s->read_lock);
}

/* --- texts --- */

/* A copy of @s that stays, the same one for the same bytes. "" when out of memory: *@err says so. */
static const char *keep(struct click_names *n, struct str s, int *err)
{
	const uint64_t hash = id_key_of(s.data, s.len).low;
	char *known = s.len ? map_get(&n->known_texts, hash) : (char *)"";

	if (known)
		return known;
	known = arena_alloc(n->texts, s.len + 1);
	if (!known || map_put(&n->known_texts, hash, known)) {
		*err = -ENOMEM;
		return "";
	}
	memcpy(known, s.data, s.len);
	return known;
}

/* Walks over an array of texts. */
static void skip_texts(struct row_reader *r)
{
	for (uint64_t i = get_count(r); i > 0 && !r->is_bad; i--)
		(void)get_text(r);
}

static struct str keep_attributes(struct click_names *n, struct row_reader *r, int *err)
{
	const uint8_t *start = r->at;
	struct str s;

	skip_texts(r);
	skip_texts(r);
	for (uint64_t i = get_count(r); i > 0 && !r->is_bad; i--)
		(void)get_number(r, 1);
	skip_texts(r);
	s = (struct str){ (const char *)start, (uint32_t)(r->at - start) };
	s.data = keep(n, s, err);
	return s;
}

/* --- fetching --- */

void click_put_ids(struct buf *sql, const uint64_t *ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_printf(sql, "%c%" PRIu64, i ? ',' : '(', ids[i]);
	buf_puts(sql, ")");
}

static int fetch(struct store_clickhouse *s, const struct store_selection *sel, const char *select, const char *tail,
		 const uint64_t *ids, size_t count, struct buf *answer)
{
	AUTO(click_sql_fini) struct click_sql q = { 0 };

	buf_printf(&q.text, "%s WHERE id IN ", select);
	click_put_ids(&q.text, ids, count);
	buf_puts(&q.text, tail);
	return click_ask(s, &q, sel, answer);
}

/* The value of @key among @attributes as they were kept; "" */
static struct str attribute_text(struct str attributes, const char *key)
{
	struct row_reader r = { (const uint8_t *)attributes.data, (const uint8_t *)attributes.data + attributes.len, false };
	struct str text = STR("");
	uint64_t place = UINT64_MAX, count = get_count(&r);

	for (uint64_t i = 0; i < count && !r.is_bad; i++)
		if (str_is(get_text(&r), key))
			place = i;
	count = get_count(&r);
	for (uint64_t i = 0; i < count && place < count && i <= place && !r.is_bad; i++)
		text = get_text(&r);
	return r.is_bad || place >= count ? STR("") : text;
}

static uint64_t attribute_number(struct click_names *n, struct str attributes, const char *key, int *err)
{
	struct str text = attribute_text(attributes, key);

	return text.len ? (uint64_t)strtoll(keep(n, text, err), NULL, 10) : 0;
}

/* Reads what is known of code without a name. */
static void read_unnamed(struct click_names *n, struct frame *f, int *err)
{
	struct str process = attribute_text(f->more.attributes[1], CODE_PROCESS_KEY);

	if (unnamed_is_generated(str_z(f->shown.path)))
		f->shown.process = keep(n, process, err);
	f->shown.code_start = attribute_number(n, f->more.attributes[0], CODE_START_KEY, err);
	f->shown.code_size = attribute_number(n, f->more.attributes[0], CODE_SIZE_KEY, err);
}

static int read_frame(struct click_names *n, struct row_reader *r)
{
	const uint64_t id = get_number(r, 8);
	struct frame f = { .shown = no_frame };
	const char *slash;
	int err = 0;

	f.shown.function = keep(n, get_text(r), &err);
	f.more.is_bare = !*f.shown.function;
	f.shown.system_name = keep(n, get_text(r), &err);
	f.shown.file = keep(n, get_text(r), &err);
	f.shown.start_line = (int64_t)get_number(r, 8);
	f.shown.line = (int64_t)get_number(r, 8);
	f.more.column = (int64_t)get_number(r, 8);
	f.shown.address = get_number(r, 8);
	f.shown.inlined = get_number(r, 1) != 0;
	f.shown.type = keep(n, get_text(r), &err);
	f.shown.path = keep(n, get_text(r), &err);
	f.shown.build_id = keep(n, get_text(r), &err);
	f.more.id_kind = keep(n, get_text(r), &err);
	f.more.memory_start = get_number(r, 8);
	f.more.memory_limit = get_number(r, 8);
	f.more.file_offset = get_number(r, 8);
	f.more.attributes[0] = keep_attributes(n, r, &err);
	f.more.attributes[1] = keep_attributes(n, r, &err);
	if (f.more.is_bare && !err && !r->is_bad)
		read_unnamed(n, &f, &err);
	slash = strrchr(f.shown.path, '/');
	f.shown.module = slash && slash[1] ? slash + 1 : f.shown.path;
	if (err || r->is_bad || map_get(&n->frames, id))
		return err ? err : r->is_bad ? -EBADMSG : 0;
	err = add_frame(n, &f);
	return err ? err : map_put(&n->frames, id, (void *)(uintptr_t)n->frame_count);
}

/* Reads names that were found later for frames without a function. */
static int read_given(struct click_names *n, struct row_reader *r)
{
	const uint64_t id = get_number(r, 8);
	const uintptr_t number = (uintptr_t)map_get(&n->frames, id);
	struct store_frame given = no_frame, *f;
	int err = 0;

	given.function = keep(n, get_text(r), &err);
	given.system_name = keep(n, get_text(r), &err);
	given.file = keep(n, get_text(r), &err);
	given.line = (int64_t)get_number(r, 8);
	given.start_line = (int64_t)get_number(r, 8);
	if (err || r->is_bad || !number)
		return err ? err : r->is_bad ? -EBADMSG : 0;
	f = &n->items[number - 1].shown;
	f->function = given.function;
	f->system_name = given.system_name;
	f->file = given.file;
	f->line = given.line;
	f->start_line = given.start_line;
	return 0;
}

static const char frames_sql[] = "SELECT id, function, system_name, file, start_line, line, column, address, inlined, type,"
				 " path, build_id, id_kind, memory_start, memory_limit, file_offset, key, value, kind, unit,"
				 " mapping_key, mapping_value, mapping_kind, mapping_unit FROM hearth_frames";
static const char given_sql[] =
	"SELECT f.id, n.function, n.system_name, n.file, n.line, n.start_line FROM hearth_names AS n FINAL"
	" INNER JOIN (SELECT id, build_id, address FROM hearth_frames";
static const char given_tail[] =
	" AND function = '' AND build_id != '') AS f ON n.build_id = f.build_id AND n.address = f.address";

static int fetch_frames(struct store_clickhouse *s, const struct store_selection *sel, const uint64_t *ids, size_t count)
{
	struct click_names *n = s->names;
	bool has_unnamed = false;
	int err = 0;

	for (size_t at = 0; at < count && !err; at += IDS_AT_ONCE) {
		AUTO(buf_fini) struct buf answer = BUF_EMPTY, given = BUF_EMPTY;
		const size_t some = count - at < IDS_AT_ONCE ? count - at : IDS_AT_ONCE;
		const size_t before = n->frame_count;
		struct row_reader r;

		err = fetch(s, sel, frames_sql, "", ids + at, some, &answer);
		for (r = rows_of(&answer); !err && has_row(&r);)
			err = read_frame(n, &r);
		for (size_t i = before; i < n->frame_count; i++)
			has_unnamed |= !*n->items[i].shown.function && *n->items[i].shown.build_id;
		if (err || !has_unnamed)
			continue;
		err = fetch(s, sel, given_sql, given_tail, ids + at, some, &given);
		for (r = rows_of(&given); !err && has_row(&r);)
			err = read_given(n, &r);
	}
	return err;
}

struct id_list {
	uint64_t *items;
	size_t count, cap;
};

static int add_id(struct id_list *l, uint64_t id)
{
	int err = vec_reach(&l->items, &l->cap, l->count);

	if (!err)
		l->items[l->count++] = id;
	return err;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorts the ids and keeps each once. */
static void sort_ids(struct id_list *l)
{
	size_t kept = 0;

	if (l->count)
		qsort(l->items, l->count, sizeof(*l->items), compare_ids);
	for (size_t i = 0; i < l->count; i++)
		if (!kept || l->items[kept - 1] != l->items[i])
			l->items[kept++] = l->items[i];
	l->count = kept;
}

/* Collects the frames of the stacks of @answer that are not known yet. */
static int find_frames(const struct click_names *n, const struct buf *answer, struct id_list *ret)
{
	struct row_reader r = rows_of(answer);
	int err = 0;

	while (has_row(&r) && !err) {
		(void)get_number(&r, 8);
		for (uint64_t i = get_count(&r); i > 0 && !r.is_bad && !err; i--) {
			uint64_t id = get_number(&r, 8);

			err = map_get(&n->frames, id) ? 0 : add_id(ret, id);
		}
	}
	sort_ids(ret);
	return err ? err : r.is_bad ? -EBADMSG : 0;
}

static int add_stack(struct click_names *n, struct row_reader *r)
{
	const uint64_t id = get_number(r, 8);
	uint32_t node = 0;

	for (uint64_t i = get_count(r); i > 0 && !r->is_bad; i--) {
		const uintptr_t known = (uintptr_t)map_get(&n->frames, get_number(r, 8));
		const uint32_t frame = known ? (uint32_t)(known - 1) : 0;
		const uint64_t key = (uint64_t)node << 32 | frame;
		const uintptr_t child = (uintptr_t)map_get(&n->children, key);
		int err = 0;

		if (!child) {
			err = add_node(n, node, frame);
			err = err ? err : map_put(&n->children, key, (void *)(uintptr_t)(n->node_count - 1));
		}
		if (err)
			return err;
		node = child ? (uint32_t)child : (uint32_t)(n->node_count - 1);
	}
	return r->is_bad ? -EBADMSG : map_put(&n->stacks, id, (void *)(uintptr_t)(node + 1));
}

static int fetch_stacks(struct store_clickhouse *s, const struct store_selection *sel, const uint64_t *ids, size_t count)
{
	struct click_names *n = s->names;
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	struct id_list frames = { 0 };
	struct row_reader r;
	int err = fetch(s, sel, "SELECT id, frames FROM hearth_stacks", "", ids, count, &answer);

	err = err ? err : find_frames(n, &answer, &frames);
	err = err ? err : fetch_frames(s, sel, frames.items, frames.count);
	free(frames.items);
	for (r = rows_of(&answer); !err && has_row(&r);)
		err = add_stack(n, &r);
	for (size_t i = 0; i < count && !err; i++) /* ids that are not there are not asked for again */
		err = map_get(&n->stacks, ids[i]) ? 0 : map_put(&n->stacks, ids[i], (void *)1);
	return err;
}

int click_names_load(struct store_clickhouse *s, const struct store_selection *sel, const uint64_t *ids, size_t count)
{
	struct id_list unknown = { 0 };
	int err = s->names->frame_count ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !err; i++)
		err = !ids[i] || map_get(&s->names->stacks, ids[i]) ? 0 : add_id(&unknown, ids[i]);
	sort_ids(&unknown);
	for (size_t at = 0; at < unknown.count && !err; at += IDS_AT_ONCE)
		err = fetch_stacks(s, sel, unknown.items + at,
				   unknown.count - at < IDS_AT_ONCE ? unknown.count - at : IDS_AT_ONCE);
	free(unknown.items);
	return err;
}

int click_names_load_frames(struct store_clickhouse *s, const uint64_t *ids, size_t count)
{
	struct id_list unknown = { 0 };
	int err = s->names->frame_count ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !err; i++)
		err = map_get(&s->names->frames, ids[i]) ? 0 : add_id(&unknown, ids[i]);
	sort_ids(&unknown);
	err = err ? err : fetch_frames(s, NULL, unknown.items, unknown.count);
	free(unknown.items);
	return err;
}

/* --- what is known --- */

uint32_t click_frame_count(const struct click_names *n)
{
	return (uint32_t)n->frame_count;
}

uint32_t click_names_stack(const struct click_names *n, uint64_t id)
{
	const uintptr_t node = id ? (uintptr_t)map_get(&n->stacks, id) : 0;

	return node ? (uint32_t)(node - 1) : 0;
}

uint32_t click_node_count(struct store *s)
{
	return (uint32_t)store_clickhouse_of(s)->names->node_count;
}

int click_nodes(struct store *s, uint32_t first, uint32_t count, struct store_node *ret)
{
	const struct click_names *n = store_clickhouse_of(s)->names;

	if (first > n->node_count || count > n->node_count - first)
		return -EBADMSG;
	memcpy(ret, n->nodes + first, count * sizeof(*ret));
	return 0;
}

int click_frame(struct store *s, uint32_t frame, struct store_frame *ret)
{
	const struct click_names *n = store_clickhouse_of(s)->names;

	if (frame >= n->frame_count)
		return -EBADMSG;
	*ret = n->items[frame].shown;
	return 0;
}

const struct click_frame_more *click_frame_more(const struct click_names *n, uint32_t frame)
{
	return &n->items[frame < n->frame_count ? frame : 0].more;
}
