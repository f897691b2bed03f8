/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file, mapped: a head, then rules, files, groups and places, each an array. Groups of a file stand together, sorted;
 * their places too. Nobody changes it: it is written anew and renamed. Every number in it is checked where it is used, so a
 * file whose checksum is right may be wrong but not harmful.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "agent/rows/row_store.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/search.h"
#include "symbols/index/cache.h"
#include "symbols/kept_file.h"
#include "symbols/symbols.h"

enum {
	VERSION = 2,
	MAX_NAMES = 16384, /* names of files in one run */
	MAX_GROUPS = 24576,
	MAX_PLACES = 1 << 20,
	LOADS_A_REST = 16, /* a load touches some 100 KB, as the kernel maps what is around */
	OLD_DAYS = 7,	   /* age at which files of another build of hearth may be removed */
};

static const char magic[8] = { 'h', 'e', 'a', 'r', 't', 'h', 'R', 'W' };
static const char prefix[] = "rows-";

struct head {
	char magic[8];
	uint32_t version, row_bytes;
	uint32_t rule_cnt, file_cnt, group_cnt, place_cnt;
	uint64_t hash; /* of all behind the head */
};

struct kept_rows {
	char name[SYMBOL_CACHE_KEY_BYTES];
	uint32_t first_group, group_cnt;
	uint32_t used_day; /* days since 1970: when the file was last used */
	uint32_t pad;
};

struct kept_group {
	uint64_t group;
	uint32_t first_place;
	uint16_t place_cnt, hot;
};

struct row_store {
	int dir_fd; /* owned; -1: none */
	char name[sizeof(prefix) + BUILD_ID_CHARS];
	struct intern *names; /* of files: a number is an index + 1 */
	uint32_t *kept;	      /* parallel to names: the file's index in the mapped file + 1; 0: it is not there */
	struct kept_file map; /* the file, if there is one */
	const struct head *head;
	const struct row *rules;
	const struct kept_rows *files;
	const struct kept_group *groups;
	const struct row_place *places;
	uint32_t loads;	   /* of groups */
	struct row *group; /* ROW_GROUP_BYTES, too many for a stack; NULL while nothing was read */
};

/* --- opening --- */

/* Hex digits of the build id of this program. */
static int find_own_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	char *id = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum && !id[0]; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_NOTE)
			(void)build_id_of_notes((const uint8_t *)(info->dlpi_addr + ph->p_vaddr), ph->p_memsz, id);
	}
	return 1; /* the program comes first */
}

static void unmap(struct row_store *s)
{
	kept_file_unmap(&s->map);
	s->head = NULL;
	if (s->kept)
		memset(s->kept, 0, MAX_NAMES * sizeof(*s->kept));
}

/* Finds the arrays in the file, if it has all of them. */
static bool find_arrays(struct row_store *s)
{
	const struct head *h = s->map.data;
	const uint8_t *at = (const uint8_t *)(h + 1);

	if (s->map.len_bytes < sizeof(*h) || memcmp(h->magic, magic, sizeof(magic)) || h->version != VERSION ||
	    h->row_bytes != sizeof(struct row) || h->file_cnt > MAX_NAMES || h->group_cnt > MAX_GROUPS ||
	    h->place_cnt > MAX_PLACES || h->rule_cnt > UINT16_MAX + 1)
		return false;
	s->rules = (const void *)at;
	s->files = (const void *)(s->rules + h->rule_cnt);
	s->groups = (const void *)(s->files + h->file_cnt);
	s->places = (const void *)(s->groups + h->group_cnt);
	at = (const uint8_t *)(s->places + h->place_cnt);
	return (s->map.len_bytes & ~7ull) == (((size_t)(at - (const uint8_t *)h) + 7) & ~7ull) &&
	       XXH3_64bits(h + 1, s->map.len_bytes - sizeof(*h)) == h->hash;
}

static int name_files(struct row_store *s)
{
	for (uint32_t i = 0; i < s->head->file_cnt; i++) {
		const struct kept_rows *f = &s->files[i];
		uint32_t index;

		if (!memchr(f->name, 0, sizeof(f->name)) || f->first_group > s->head->group_cnt ||
		    f->group_cnt > s->head->group_cnt - f->first_group || intern_count(s->names) == MAX_NAMES)
			continue;
		if (intern_add(s->names, f->name, strlen(f->name), &index) < 0)
			return -ENOMEM;
		s->kept[index] = i + 1;
	}
	return 0;
}

void row_store_rest(const struct row_store *s)
{
	if (s)
		kept_file_rest(&s->map);
}

/* Maps the file on disk, if it can be believed. 0 or -ENOMEM. */
static int open_file(struct row_store *s)
{
	unmap(s);
	if (s->dir_fd < 0 || kept_file_map(s->dir_fd, s->name, &s->map))
		return 0;
	if (!find_arrays(s)) {
		unmap(s);
		return 0;
	}
	row_store_rest(s); /* what the checksum touched */
	s->head = s->map.data;
	return name_files(s);
}

int row_store_new(int dir_fd, struct row_store **ret)
{
	struct row_store *s = calloc(1, sizeof(*s));
	char id[BUILD_ID_CHARS] = "";
	int error;

	if (!s)
		return -ENOMEM;
	dl_iterate_phdr(find_own_id, id);
	s->dir_fd = dir_fd >= 0 && id[0] ? fcntl(dir_fd, F_DUPFD_CLOEXEC, 0) : -1;
	snprintf(s->name, sizeof(s->name), "%s%s", prefix, id);
	s->names = intern_new();
	s->kept = calloc(MAX_NAMES, sizeof(*s->kept));
	error = s->names && s->kept ? open_file(s) : -ENOMEM;
	if (error)
		row_store_free(s);
	else
		*ret = s;
	return error;
}

void row_store_free(struct row_store *s)
{
	if (!s)
		return;
	unmap(s);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	intern_free(s->names);
	free(s->kept);
	free(s->group);
	free(s);
}

uint32_t row_store_number(struct row_store *s, const char *name)
{
	uint32_t index;

	if (!name[0] || intern_count(s->names) == MAX_NAMES || intern_add(s->names, name, strlen(name), &index) < 0)
		return 0;
	return index + 1;
}

size_t row_store_memory_bytes(const struct row_store *s)
{
	return s ? sizeof(*s) + intern_memory_bytes(s->names) + MAX_NAMES * sizeof(*s->kept) +
			       (s->group ? ROW_GROUP_BYTES * sizeof(*s->group) : 0)
		 : 0;
}

size_t row_store_mapped_bytes(const struct row_store *s)
{
	return s ? s->map.len_bytes : 0;
}

/* --- reading --- */

static const struct kept_rows *find_file(const struct row_store *s, uint32_t number)
{
	uint32_t kept = s->head && number && number <= MAX_NAMES ? s->kept[number - 1] : 0;

	return kept ? &s->files[kept - 1] : NULL;
}

/* May the file's rule be given to the walk? The check is the same as for a helper's answer. */
static bool is_sound(const struct row *rule)
{
	const uint8_t *bytes = (const uint8_t *)rule;

	return rule->cfa <= ROW_CFA_UNASKED && rule->cfa_reg < USER_REGS &&
	       bytes[offsetof(struct row, is_signal_frame)] <= 1 && bytes[offsetof(struct row, is_guess)] <= 1 &&
	       bytes[offsetof(struct row, is_followed)] <= 1 && bytes[offsetof(struct row, is_behind_syscall)] <= 1 &&
	       bytes[offsetof(struct row, is_end)] <= 1;
}

/* The rows of @g into s->group. Their number, -EBADMSG or -ENOMEM. */
static int read_group(struct row_store *s, const struct kept_group *g)
{
	struct row *rows = s->group ? s->group : (s->group = malloc(ROW_GROUP_BYTES * sizeof(*rows)));
	uint64_t base = g->group * ROW_GROUP_BYTES, at = 0;

	if (!rows)
		return -ENOMEM;
	if (g->first_place > s->head->place_cnt || g->place_cnt > s->head->place_cnt - g->first_place ||
	    g->place_cnt > ROW_GROUP_BYTES)
		return -EBADMSG;
	for (uint32_t i = 0; i < g->place_cnt; i++) {
		const struct row_place *p = &s->places[g->first_place + i];

		if (p->start < at || p->end <= p->start || p->end > ROW_GROUP_BYTES || p->rule >= s->head->rule_cnt ||
		    !is_sound(&s->rules[p->rule]))
			return -EBADMSG;
		memcpy(&rows[i], &s->rules[p->rule], sizeof(rows[i]));
		rows[i].start = base + p->start;
		rows[i].end = base + p->end;
		at = p->end;
	}
	return g->place_cnt;
}

int row_store_load(struct row_store *s, uint32_t number, uint64_t addr, struct row_cache *cache)
{
	const struct kept_rows *f = find_file(s, number);
	uint64_t group = addr / ROW_GROUP_BYTES;
	uint32_t i;
	int count;

	if (f && ++s->loads % LOADS_A_REST == 0)
		row_store_rest(s);
	i = f ? search_first(at, f->group_cnt, s->groups[f->first_group + at].group >= group) : 0;
	if (!f || i == f->group_cnt || s->groups[f->first_group + i].group != group)
		return -ENOENT;
	count = read_group(s, &s->groups[f->first_group + i]);
	if (count < 0)
		return count == -ENOMEM ? count : -ENOENT;
	return row_cache_put(cache, number, addr, s->group, (size_t)count);
}

/* The rows of the block at @start among the @count of its group: the first, and how many. */
static size_t cut_block(const struct row *rows, size_t count, uint64_t start, size_t *first)
{
	size_t end;

	while (*first < count && rows[*first].end <= start)
		++*first;
	for (end = *first; end < count && rows[end].start < start + CODE_BLOCK_BYTES; end++)
		;
	return end - *first;
}

void row_store_hot(struct row_store *s, uint32_t number, uint32_t max,
		   void (*fn)(void *arg, uint64_t addr, const struct row *rows, size_t count), void *arg)
{
	const struct kept_rows *f = find_file(s, number);

	for (uint32_t i = 0; f && i < f->group_cnt && max; i++) {
		const struct kept_group *g = &s->groups[f->first_group + i];
		int count = g->hot ? read_group(s, g) : 0;
		size_t first = 0;

		for (uint32_t k = 0; g->hot && count >= 0 && k < ROW_GROUP_BYTES / CODE_BLOCK_BYTES && max; k++) {
			uint64_t at = g->group * ROW_GROUP_BYTES + k * CODE_BLOCK_BYTES;
			size_t n;

			if (!(g->hot >> k & 1))
				continue;
			n = cut_block(s->group, (size_t)count, at, &first);
			fn(arg, at, s->group + first, n);
			max--;
		}
	}
}

/* --- writing --- */

/* A group that may be written: from the cache (its rules are the cache's), or from the mapped file. */
struct item {
	struct row_group g; /* g.file: a number of the store */
	uint32_t used_day;
	bool is_kept;
};

static int compare_worth(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->used_day != y->used_day)
		return x->used_day > y->used_day ? -1 : 1;
	return x->is_kept - y->is_kept;
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->g.file != y->g.file)
		return x->g.file < y->g.file ? -1 : 1;
	if (x->g.group != y->g.group)
		return x->g.group < y->g.group ? -1 : 1;
	return x->is_kept - y->is_kept;
}

static uint32_t today(void)
{
	return (uint32_t)(time(NULL) / 86400);
}

static void gather(const struct row_store *s, const struct row_cache *cache, struct buf *items)
{
	struct item item = { .used_day = today() };

	for (size_t pos = 0; row_cache_next(cache, &pos, &item.g);)
		if (item.g.file <= intern_count(s->names))
			buf_append(items, &item, sizeof(item));
	for (uint32_t number = 1; s->head && number <= intern_count(s->names); number++) {
		const struct kept_rows *f = find_file(s, number);

		for (uint32_t i = 0; f && i < f->group_cnt; i++) {
			const struct kept_group *g = &s->groups[f->first_group + i];

			if (g->first_place > s->head->place_cnt || g->place_cnt > s->head->place_cnt - g->first_place)
				continue;
			item = (struct item){ { g->group, number, g->place_cnt, g->hot, s->places + g->first_place },
					      f->used_day,
					      true };
			buf_append(items, &item, sizeof(item));
		}
	}
}

/* Takes what is there twice once, as the cache has it; then the most recent as far as there is room, in order. */
static size_t choose(struct item *items, size_t count)
{
	size_t n = 0, places = 0;

	qsort(items, count, sizeof(*items), compare_items);
	for (size_t i = 0; i < count; i++) {
		struct item *last = n ? &items[n - 1] : NULL;

		if (last && last->g.file == items[i].g.file && last->g.group == items[i].g.group)
			last->g.hot |= items[i].g.hot;
		else
			items[n++] = items[i];
	}
	if (n > MAX_GROUPS)
		qsort(items, n, sizeof(*items), compare_worth);
	for (size_t i = 0; i < n; i++) {
		places += items[i].g.place_cnt;
		if (i < MAX_GROUPS && places <= MAX_PLACES)
			continue;
		n = i;
	}
	qsort(items, n, sizeof(*items), compare_items);
	return n;
}

/* The state of a write. */
struct writer {
	struct row_store *store;
	const struct row_cache *cache;
	struct intern *rules;
	uint32_t *new_rules[2]; /* number in the cache, in the mapped file -> new number + 1; 0: not known yet */
	struct buf files, groups, places;
};

static int number_rule(struct writer *w, bool is_kept, uint16_t old, uint16_t *ret)
{
	uint32_t *known = &w->new_rules[is_kept][old], index;
	struct row rule;

	if (!*known) {
		if (old >= (is_kept ? w->store->head->rule_cnt : row_cache_rule_count(w->cache)))
			return -EBADMSG;
		memcpy(&rule, is_kept ? &w->store->rules[old] : row_cache_rule(w->cache, old), sizeof(rule));
		if (intern_add(w->rules, &rule, sizeof(rule), &index) < 0)
			return -ENOMEM;
		*known = index + 1;
	}
	*ret = (uint16_t)(*known - 1);
	return *known > UINT16_MAX ? -EFBIG : 0;
}

static int write_group(struct writer *w, const struct item *item)
{
	struct kept_group g = { item->g.group, (uint32_t)(w->places.len / sizeof(struct row_place)), item->g.place_cnt,
				item->g.hot };
	size_t len = w->places.len;

	for (uint32_t i = 0; i < g.place_cnt; i++) {
		struct row_place place = item->g.places[i];
		int error = number_rule(w, item->is_kept, place.rule, &place.rule);

		if (error) {
			w->places.len = len;
			return error == -ENOMEM ? error : 0; /* without this group */
		}
		buf_append(&w->places, &place, sizeof(place));
	}
	buf_append(&w->groups, &g, sizeof(g));
	return 0;
}

static int write_file(struct writer *w, const struct item *items, size_t count)
{
	const size_t group_bytes = sizeof(struct kept_group);
	struct kept_rows f = { .first_group = (uint32_t)(w->groups.len / group_bytes) };
	int error = 0;
	size_t len;
	const char *name = intern_get(w->store->names, items[0].g.file - 1, &len);

	memcpy(f.name, name, len < sizeof(f.name) ? len : sizeof(f.name) - 1);
	for (size_t i = 0; i < count && !error; i++) {
		f.used_day = items[i].used_day > f.used_day ? items[i].used_day : f.used_day;
		error = write_group(w, &items[i]);
	}
	f.group_cnt = (uint32_t)(w->groups.len / group_bytes) - f.first_group;
	buf_append(&w->files, &f, sizeof(f));
	return error;
}

/* Everything into one piece of memory. */
static int put_together(struct writer *w, struct buf *out)
{
	struct head head = { .version = VERSION,
			     .row_bytes = sizeof(struct row),
			     .rule_cnt = intern_count(w->rules),
			     .file_cnt = (uint32_t)(w->files.len / sizeof(struct kept_rows)),
			     .group_cnt = (uint32_t)(w->groups.len / sizeof(struct kept_group)),
			     .place_cnt = (uint32_t)(w->places.len / sizeof(struct row_place)) };
	static const uint8_t padding[8];

	memcpy(head.magic, magic, sizeof(magic));
	buf_append(out, &head, sizeof(head));
	for (uint32_t i = 0; i < head.rule_cnt; i++)
		buf_append(out, intern_get(w->rules, i, NULL), sizeof(struct row));
	buf_append(out, w->files.data, w->files.len);
	buf_append(out, w->groups.data, w->groups.len);
	buf_append(out, w->places.data, w->places.len);
	buf_append(out, padding, -out->len & 7);
	if (out->failed || w->files.failed || w->groups.failed || w->places.failed)
		return -ENOMEM;
	head.hash = XXH3_64bits(out->data + sizeof(head), out->len - sizeof(head));
	memcpy(out->data, &head, sizeof(head));
	return 0;
}

static int write_items(struct writer *w, const struct item *items, size_t count, struct buf *out)
{
	int error = 0;

	w->rules = intern_new();
	for (int i = 0; i < 2; i++)
		w->new_rules[i] = calloc(UINT16_MAX + 1, sizeof(*w->new_rules[i]));
	if (!w->rules || !w->new_rules[0] || !w->new_rules[1])
		return -ENOMEM;
	for (size_t i = 0, end; i < count && !error; i = end) {
		for (end = i; end < count && items[end].g.file == items[i].g.file; end++)
			;
		error = write_file(w, items + i, end - i);
	}
	return error ? error : put_together(w, out);
}

/* Removes files that other builds of hearth left. */
static void remove_old(const struct row_store *s)
{
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;
	struct stat st;

	while (dir && (d = readdir(dir)))
		if (!strncmp(d->d_name, prefix, sizeof(prefix) - 1) && strcmp(d->d_name, s->name) != 0 &&
		    !fstatat(s->dir_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) && time(NULL) - st.st_mtime > OLD_DAYS * 86400)
			(void)unlinkat(s->dir_fd, d->d_name, 0);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

int row_store_save(struct row_store *s, struct row_cache *cache)
{
	AUTO(buf_fini) struct buf items = BUF_EMPTY, out = BUF_EMPTY;
	struct writer w = { .store = s, .cache = cache };
	size_t count;
	int error;

	if (s->dir_fd < 0)
		return 0;
	gather(s, cache, &items);
	count = items.failed ? 0 : choose((struct item *)(void *)items.data, items.len / sizeof(struct item));
	error = items.failed ? -ENOMEM : write_items(&w, (const struct item *)(void *)items.data, count, &out);
	if (!error)
		error = kept_file_replace(s->dir_fd, s->name, out.data, out.len);
	intern_free(w.rules);
	for (int i = 0; i < 2; i++)
		free(w.new_rules[i]);
	buf_fini(&w.files);
	buf_fini(&w.groups);
	buf_fini(&w.places);
	if (error)
		return error;
	remove_old(s);
	return open_file(s);
}
