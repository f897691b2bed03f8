/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses are collected first and named then, for the store is locked while it tells them. An index is known by the text
 * of a build id, of whichever kind: where a file has several, there is one for each, because senders tell one or another.
 */
#include "backend/naming/bare_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "backend/naming/index_maker.h"
#include "backend/naming/local_files.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/vec.h"
#include "symbols/index/cache.h"
#include "symbols/sources/symbol_image.h"
#include "symbols/index/index.h"
#include "symbols/symbols.h"

enum {
	MAX_BARE = 1 << 20, /* addresses named in one go */
	ENOUGH = 1,	    /* so many are there */
	LOOK_EVERY_NS = NSEC_PER_SEC,
	REST_S = 10,	  /* until a file that was given up is read again */
	MAX_ASKED = 4096, /* build ids that files are looked for in the life of a process: senders choose them */
};

#define FOLDER_MAX_BYTES (1ull << 30)

struct bare_names {
	struct store *store;
	struct symbol_cache *cache; /* NULL: there is none */
	uint32_t next;		    /* frame to look at */
	uint64_t looked_ns;
	_Atomic bool is_abandoned;
	struct local_files *local;
	struct intern *asked; /* build ids that files are, or were, looked for */
	struct wanted *wanted;
	size_t wanted_count;
};

/* A file to look for. */
struct wanted {
	uint64_t again_ns;
	uint32_t id; /* in asked */
};

/* An address of the file with the build id number @id. */
struct bare {
	uint64_t address;
	uint32_t id;
};

struct bare_list {
	struct intern *ids;	 /* texts with their NUL */
	const char *const *only; /* build ids, NULL-terminated; NULL: any */
	bool is_for_new;	 /* only those that have no name yet */
	struct bare *items;
	size_t count, cap;
};

static void bare_list_fini(struct bare_list *l)
{
	intern_free(l->ids);
	free(l->items);
}

/* --- collecting --- */

static bool is_wanted(const struct bare_list *l, const struct store_frame *frame)
{
	if (l->is_for_new && *frame->function)
		return false;
	for (const char *const *id = l->only; id && *id; id++)
		if (strcasecmp(*id, frame->build_id) == 0)
			return true;
	return !l->only;
}

static int collect(void *arg, const struct store_frame *frame)
{
	struct bare_list *l = arg;
	struct bare bare = { .address = frame->address };

	if (!is_wanted(l, frame))
		return 0;
	if (l->count == MAX_BARE)
		return ENOUGH;
	if (vec_reach(&l->items, &l->cap, l->count))
		return -ENOMEM;
	if (intern_add(l->ids, frame->build_id, strlen(frame->build_id) + 1, &bare.id) < 0)
		return -ENOMEM;
	l->items[l->count++] = bare;
	return 0;
}

static int compare(const void *a_, const void *b_)
{
	const struct bare *a = a_, *b = b_;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->address < b->address ? -1 : a->address > b->address;
}

/* Collects addresses, sorted by build id, each once. *@next says where to go on. 0 or -errno; ENOUGH: there are more. */
static int collect_all(struct bare_names *b, struct bare_list *l, uint32_t *next)
{
	size_t kept = 0;
	int err;

	l->ids = intern_new();
	if (!l->ids)
		return -ENOMEM;
	err = b->store->read->bare_frames(b->store, *next, next, collect, l);
	if (err < 0)
		return err;
	if (l->count)
		qsort(l->items, l->count, sizeof(*l->items), compare);
	for (size_t i = 0; i < l->count; i++)
		if (!kept || compare(&l->items[kept - 1], &l->items[i]))
			l->items[kept++] = l->items[i];
	l->count = kept;
	return err;
}

/* --- naming --- */

/* A name while its texts still move: where they begin in the buffer of texts. */
struct pending_name {
	uint64_t address;
	size_t function, system_name, file; /* 0: "" */
	uint32_t line, start_line;
};

/* The number of @chain, or the count of chains when it is not there: none is added. */
static uint32_t find_chain(const struct intern *chains, const struct buf *chain)
{
	const uint32_t count = intern_count(chains);
	uint32_t i = 0;

	for (; i < count; i++) {
		size_t len;
		const void *one = intern_get(chains, i, &len);

		if (len == chain->len && !memcmp(one, chain->data, len))
			break;
	}
	return i;
}

/* Notes the calls at an address that got a name. 0, -ENOMEM, -EBADMSG. */
static int tell_chain(struct bare_names_told *told, const struct symbol_index *index, const struct code_answer *answer)
{
	AUTO(buf_fini) struct buf chain = BUF_EMPTY;
	uint32_t number = 0;
	int err = 0;

	for (uint32_t i = answer->frame_count; i-- > 0 && !err;) {
		AUTO(buf_fini) struct buf raw = BUF_EMPTY;

		if (answer->frames[i].function == CODE_NONE)
			continue;
		err = symbol_index_name(index, answer->frames[i].function, &raw);
		symbols_demangle((const char *)raw.data, raw.len, &chain);
		buf_putc(&chain, 0);
	}
	if (err || chain.failed)
		return err ? err : -ENOMEM;
	if (intern_count(told->chains) < BARE_NAMES_TOLD)
		err = intern_add(told->chains, chain.data, chain.len, &number);
	else
		number = find_chain(told->chains, &chain);
	if (err < 0)
		return err;
	if (number < BARE_NAMES_TOLD)
		told->addresses[number]++;
	else
		told->more++;
	return 0;
}

/* Reads the names that @index has for @address. 0, -ENOENT, -EBADMSG. */
static int find_name(const struct symbol_index *index, uint64_t address, struct buf *texts, struct bare_names_told *told,
		     struct pending_name *ret)
{
	AUTO(buf_fini) struct buf raw = BUF_EMPTY;
	struct code_answer answer;
	const struct code_frame *outermost;
	int err = symbol_index_find(index, address, &answer);

	if (err || !answer.frame_count)
		return err ? err : -ENOENT;
	outermost = &answer.frames[answer.frame_count - 1];
	if (outermost->function == CODE_NONE)
		return -ENOENT;
	err = symbol_index_name(index, outermost->function, &raw);
	if (err)
		return err;
	*ret = (struct pending_name){ .address = address, .line = outermost->line };
	if (answer.frame_count == 1)
		ret->start_line = answer.decl_line;
	ret->function = texts->len;
	symbols_demangle((const char *)raw.data, raw.len, texts);
	if (texts->len - ret->function != raw.len) {
		buf_putc(texts, 0);
		ret->system_name = texts->len;
		buf_append(texts, raw.data, raw.len);
	}
	buf_putc(texts, 0);
	if (outermost->file != CODE_NONE) {
		ret->file = texts->len;
		err = symbol_index_path(index, outermost->file, texts);
		buf_putc(texts, 0);
	}
	return err || !told ? err : tell_chain(told, index, &answer);
}

/* Gives the @count addresses at @bare, all of the file @id, their names. */
static int name_file(struct bare_names *b, const char *id, const struct bare *bare, size_t count,
		     const struct symbol_index *index, struct bare_names_told *told, uint64_t *named)
{
	AUTO_FREE struct pending_name *pending = malloc(count * sizeof(*pending));
	AUTO_FREE struct store_name *names = malloc(count * sizeof(*names));
	AUTO(buf_fini) struct buf texts = BUF_EMPTY;
	const char *text;
	size_t found = 0;

	if (!pending || !names)
		return -ENOMEM;
	buf_putc(&texts, 0);
	for (size_t i = 0; i < count; i++) {
		int err = find_name(index, bare[i].address, &texts, told, &pending[found]);

		if (!err)
			found++;
		else if (err != -ENOENT)
			return err;
	}
	if (texts.failed)
		return -ENOMEM;
	text = (const char *)texts.data;
	for (size_t i = 0; i < found; i++)
		names[i] = (struct store_name){ .address = pending[i].address,
						.function = text + pending[i].function,
						.system_name = text + pending[i].system_name,
						.file = text + pending[i].file,
						.line = pending[i].line,
						.start_line = pending[i].start_line };
	*named += found;
	return found ? b->store->write->name_frames(b->store, id, names, found) : 0;
}

/* Calls for each build id of the list, with its addresses. */
static int each_file(struct bare_names *b, const struct bare_list *l,
		     int (*fn)(struct bare_names *b, const char *id, const struct bare *bare, size_t count, void *arg),
		     void *arg)
{
	int err = 0;

	for (size_t i = 0, end; i < l->count && !err; i = end) {
		for (end = i; end < l->count && l->items[end].id == l->items[i].id;)
			end++;
		err = fn(b, intern_get(l->ids, l->items[i].id, NULL), l->items + i, end - i, arg);
	}
	return err;
}

/* --- indexes that are kept --- */

/* The key under which an index is kept: ids that are no hex numbers, as Go's, are hashed. False: no build id. */
static bool key_of(const char *id, struct symbol_cache_key *ret)
{
	struct build_ids ids = { .htlhash = "00000000" }; /* that part of a key says which of the files of an id it is */
	size_t len = strlen(id);

	if (!len || len >= sizeof(ids.go))
		return false;
	memcpy(ids.go, id, len + 1);
	if (len <= SYMBOL_INDEX_ID_BYTES && strspn(id, "0123456789abcdefABCDEF") == len)
		for (size_t i = 0; i < len; i++)
			ids.gnu[i] = (char)tolower((unsigned char)id[i]);
	symbol_cache_key(&ids, 0, ret);
	return true;
}

static int add_wanted(struct bare_names *b, struct wanted w)
{
	struct wanted *grown = realloc(b->wanted, (b->wanted_count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	b->wanted = grown;
	grown[b->wanted_count++] = w;
	return 0;
}

/* Puts @id on the list of files to look for, once. */
static int want(struct bare_names *b, const char *id)
{
	uint32_t number;
	int is_new = 0;

	if (intern_count(b->asked) < MAX_ASKED)
		is_new = intern_add(b->asked, id, strlen(id) + 1, &number);
	return is_new <= 0 ? is_new : add_wanted(b, (struct wanted){ .id = number });
}

static int name_from_kept(struct bare_names *b, const char *id, const struct bare *bare, size_t count, void *arg)
{
	struct symbol_cache_entry entry;
	struct symbol_cache_key key;
	uint64_t *named = arg;
	int err;

	if (!key_of(id, &key))
		return 0;
	if (symbol_cache_find(b->cache, &key, &entry))
		return want(b, id);
	err = name_file(b, id, bare, count, entry.index, NULL, named);
	symbol_cache_entry_close(&entry);
	if (err == -EBADMSG) /* damaged: as if it were not there */
		err = symbol_cache_remove(b->cache, &key);
	return err;
}

int bare_names_update(struct bare_names *b)
{
	AUTO(bare_list_fini) struct bare_list l = { .is_for_new = true };
	uint64_t now_ns = clock_mono_ns(), named = 0;
	int err;

	if (!b->cache || (b->looked_ns && now_ns - b->looked_ns < LOOK_EVERY_NS))
		return 0;
	b->looked_ns = now_ns;
	err = collect_all(b, &l, &b->next);
	return err < 0 ? err : each_file(b, &l, name_from_kept, &named);
}

/* --- files that are sent --- */

/* One file that was sent: its build ids, and an index for each. */
struct sent {
	const char *ids[INDEX_MAKER_IDS + 1]; /* as they are told; NULL-terminated */
	struct symbol_cache_key keys[INDEX_MAKER_IDS];
	int outs[INDEX_MAKER_IDS];
	size_t count;
	struct symbol_image image; /* of the first index */
	struct symbol_index *index;
	struct bare_names_told *told;
	bool is_worse;	/* than what is kept of the same file */
	uint64_t named; /* addresses in the store */
};

static void sent_fini(struct sent *s)
{
	symbol_index_close(s->index);
	symbol_image_unmap(&s->image);
	for (size_t i = 0; i < s->count; i++)
		close(s->outs[i]);
}

static int add_id(struct bare_names *b, struct sent *s, const char *id)
{
	int fd;

	if (!key_of(id, &s->keys[s->count]))
		return 0;
	fd = b->cache ? symbol_cache_file(b->cache) : memfd_create("hearth-index", MFD_CLOEXEC);
	if (fd < 0)
		return b->cache ? fd : -errno;
	s->outs[s->count] = fd;
	s->ids[s->count++] = id;
	return 0;
}

/* Has the indexes made and looks at the first. */
static int make_indexes(struct sent *s, int fd, const _Atomic bool *abandon)
{
	const char *heads[INDEX_MAKER_IDS];
	int err;

	for (size_t i = 0; i < s->count; i++)
		heads[i] = s->keys[i].build_id;
	err = index_make(fd, heads, s->outs, s->count, abandon);
	err = err ? err : symbol_image_map(s->outs[0], &s->image);
	err = err ? err : symbol_index_open(s->image.data, s->image.len_bytes, &s->index);
	return err == -EBADMSG || err == -EPROTONOSUPPORT ? -EPROTO : err;
}

/* A stripped program has the same build id as the unstripped one: the index with more names stays. */
static int keep_indexes(struct bare_names *b, struct sent *s, uint64_t functions)
{
	int err = 0;

	for (size_t i = 0; i < s->count && !err; i++) {
		struct symbol_cache_entry kept = { 0 };
		bool is_worse = symbol_cache_find(b->cache, &s->keys[i], &kept) == 0 &&
				symbol_index_sizes(kept.index).functions > functions;

		symbol_cache_entry_close(&kept);
		s->is_worse |= is_worse;
		if (!is_worse)
			err = symbol_cache_adopt(b->cache, &s->keys[i], s->outs[i]);
	}
	return err;
}

static int name_from_sent(struct bare_names *b, const char *id, const struct bare *bare, size_t count, void *arg)
{
	struct sent *s = arg;

	return name_file(b, id, bare, count, s->index, s->told, &s->named);
}

static int name_all_from_sent(struct bare_names *b, struct sent *s)
{
	uint32_t next = 0;
	int err = 0, more = ENOUGH;

	while (!err && more == ENOUGH) {
		AUTO(bare_list_fini) struct bare_list l = { .only = s->ids, .is_for_new = s->is_worse };

		more = collect_all(b, &l, &next);
		err = more < 0 ? more : each_file(b, &l, name_from_sent, s);
	}
	return err;
}

int bare_names_take(struct bare_names *b, int fd, struct bare_names_taken *ret)
{
	AUTO(sent_fini) struct sent s = { .told = ret->told };
	struct build_ids ids;
	int err = build_ids_read(fd, &ids);

	*ret = (struct bare_names_taken){ .told = ret->told };
	err = err ? err : add_id(b, &s, ids.gnu);
	err = err ? err : add_id(b, &s, ids.go);
	err = err ? err : add_id(b, &s, ids.htlhash);
	err = err ? err : make_indexes(&s, fd, &b->is_abandoned);
	if (err)
		return err;
	ret->functions = symbol_index_sizes(s.index).functions;
	snprintf(ret->build_id, sizeof(ret->build_id), "%s", s.ids[0]);
	if (!ret->functions)
		return -ENODATA;
	err = b->cache ? keep_indexes(b, &s, ret->functions) : 0;
	if (err)
		return err;
	err = name_all_from_sent(b, &s);
	ret->named = s.named;
	return err;
}

/* --- files that are looked for --- */

static const struct wanted *first_wanted(const struct bare_names *b)
{
	const struct wanted *first = b->wanted_count ? &b->wanted[0] : NULL;

	for (size_t i = 1; i < b->wanted_count; i++)
		if (b->wanted[i].again_ns < first->again_ns)
			first = &b->wanted[i];
	return first;
}

uint64_t bare_names_search_ns(const struct bare_names *b)
{
	const struct wanted *first = first_wanted(b);

	return first ? first->again_ns : UINT64_MAX;
}

int bare_names_search(struct bare_names *b, struct bare_names_taken *ret)
{
	struct wanted *w = (struct wanted *)first_wanted(b);
	AUTO_CLOSE int fd = w ? local_files_open(b->local, intern_get(b->asked, w->id, NULL)) : -ENOENT;
	struct wanted again;
	int err;

	if (!w)
		return -ENOENT;
	if (fd == -EINPROGRESS) {
		w->again_ns = clock_mono_ns() + LOOK_EVERY_NS;
		return -ENOENT;
	}
	again = (struct wanted){ clock_mono_ns() + REST_S * NSEC_PER_SEC, w->id };
	*w = b->wanted[--b->wanted_count]; /* naming may want others */
	if (fd < 0)
		return -ENOENT;
	err = bare_names_take(b, fd, ret);
	return err == -ECANCELED && add_wanted(b, again) ? -ENOMEM : err;
}

void bare_names_abandon(struct bare_names *b)
{
	atomic_store(&b->is_abandoned, true);
}

void bare_names_resume(struct bare_names *b)
{
	atomic_store(&b->is_abandoned, false);
}

/* --- life --- */

int bare_names_new(struct store *store, const char *folder, struct bare_names **ret)
{
	AUTO(buf_fini) struct buf path = BUF_EMPTY;
	struct bare_names *b = calloc(1, sizeof(*b));
	int err = 0;

	if (!b)
		return -ENOMEM;
	b->store = store;
	b->local = local_files_new();
	b->asked = intern_new();
	if (!b->local || !b->asked)
		err = -ENOMEM;
	if (!err && folder) {
		buf_printf(&path, "%s/symbols", folder);
		err = path.failed ? -ENOMEM : symbol_cache_open(buf_text(&path), FOLDER_MAX_BYTES, &b->cache);
	}
	if (err) {
		bare_names_free(b);
		return err;
	}
	*ret = b;
	return 0;
}

void bare_names_free(struct bare_names *b)
{
	if (!b)
		return;
	symbol_cache_close(b->cache);
	local_files_free(b->local);
	intern_free(b->asked);
	free(b->wanted);
	free(b);
}
