/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's own symbol list, text symbols only: an array sorted by address and one block of names. The kernel makes some
 * 5 MB of text as it is read, which takes 35 ms, so it is read once, in big pieces, by hand-written loops; and it is kept in
 * a file as it is in memory: a head, entries, where the modules' names are, names. Immutable once made, then any thread may
 * ask.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/search.h"
#include "base/vec.h"
#include "symbols/kept_file.h"
#include "symbols/symbols.h"

enum {
	READ_BYTES = 64 << 10,
	MAX_MODULES = UINT16_MAX,
	/* How far the last function of a text section may reach, as nothing tells its end: that of a module, behind which
	 * other code may stand that nobody names, and others. */
	MAX_MODULE_TAIL_BYTES = 4 << 10,
	MAX_TAIL_BYTES = 64 << 10,
	RANK_END = UINT16_MAX, /* no function: what stands before ends here */
	VERSION = 1,
	MAX_NOTE_BYTES = 256, /* of a module's build id: 36 */
};

struct entry {
	uint64_t addr;
	uint32_t name; /* offset in names */
	uint16_t module;
	uint16_t rank; /* of several names for one address the lowest counts */
};

/* As the text is read. */
struct list {
	struct entry *entries; /* sorted by addr, one each, when it is finished */
	size_t count;
	size_t cap;
	struct buf names;   /* NUL-terminated */
	struct buf modules; /* uint32_t: offsets in names; [0] is "" */
	bool has_address;   /* one that is not 0 was seen, of whatever kind */
};

/* Of a file, and of the memory of a list that was read. */
struct head {
	char magic[8];
	uint32_t version;
	uint32_t entry_cnt, module_cnt, names_bytes;
	uint64_t hash; /* of all behind the head */
	char key[KALLSYMS_KEY_BYTES];
};

static const char magic[8] = { 'h', 'e', 'a', 'r', 't', 'h', 'K', 'N' };

struct kallsyms {
	const struct head *head; /* in @made or in @file */
	const struct entry *entries;
	const uint32_t *modules;
	const char *names; /* the last byte is a NUL */
	struct buf made;
	struct kept_file file;
};

static uint32_t module_name(const struct list *k, size_t i)
{
	uint32_t offset;

	memcpy(&offset, k->modules.data + i * sizeof(offset), sizeof(offset));
	return offset;
}

static size_t module_count(const struct list *k)
{
	return k->modules.len / sizeof(uint32_t);
}

static uint32_t add_text(struct list *k, const char *s, size_t len)
{
	uint32_t offset = (uint32_t)k->names.len;

	buf_append(&k->names, s, len);
	buf_putc(&k->names, '\0');
	return offset;
}

/* The symbols of a module follow each other, so the last one added is the only one to compare with. */
static uint16_t add_module(struct list *k, const char *name, size_t len)
{
	size_t count = module_count(k);
	const char *last = (const char *)k->names.data + module_name(k, count - 1);
	uint32_t offset;

	if (strncmp(last, name, len) == 0 && last[len] == '\0')
		return (uint16_t)(count - 1);
	if (count == MAX_MODULES)
		return 0;
	offset = add_text(k, name, len);
	buf_append(&k->modules, &offset, sizeof(offset));
	return (uint16_t)count;
}

static int add_entry(struct list *k, const struct entry *e)
{
	if (vec_reach(&k->entries, &k->cap, k->count))
		return -ENOMEM;
	k->entries[k->count++] = *e;
	return 0;
}

/* Not functions: padding before one, type hashes. */
static bool is_noise(const char *name, size_t len)
{
	return (len > 6 && memcmp(name, "__pfx_", 6) == 0) || (len > 6 && memcmp(name, "__cfi_", 6) == 0);
}

/* Global before weak before local, then the fewer leading underscores, then the shorter name. */
static uint16_t rank_of(char type, const char *name, size_t len)
{
	unsigned underscores = 0;

	while (underscores < len && underscores < 3 && name[underscores] == '_')
		underscores++;
	/* never RANK_END: locals have 2 up there, or less */
	return (uint16_t)((type == 'T' ? 0 : type == 't' ? 2 : 1) << 14 | underscores << 12 | (len < 4095 ? len : 4095));
}

/* One line: "ffffffff81000000 T name\t[module]". Any other line, or one with a NUL in it, is passed over. */
static int add_line(struct list *k, const char *line, const char *end)
{
	struct entry e = { 0 };
	const char *p = line, *name, *name_end;
	char type;

	for (; p < end && *p != ' '; p++) {
		unsigned digit = (unsigned char)*p;

		digit = digit - '0' < 10 ? digit - '0' : (digit | 32) - 'a' + 10;
		if (digit > 15)
			return 0;
		e.addr = e.addr << 4 | digit;
	}
	if (end - p < 4 || p[2] != ' ' || memchr(p, '\0', (size_t)(end - p)))
		return 0;
	type = p[1];
	name = p + 3;
	k->has_address |= e.addr != 0;
	name_end = memchr(name, '\t', (size_t)(end - name));
	if (type != 'T' && type != 't' && type != 'W' && type != 'w') {
		e.rank = RANK_END; /* a module's data tells where its text ends; the kernel's own has marks */
		return name_end ? add_entry(k, &e) : 0;
	}
	if (!name_end)
		name_end = end;
	if (name == name_end || is_noise(name, (size_t)(name_end - name)))
		return 0;
	if (end - name_end > 3 && name_end[1] == '[')
		e.module = add_module(k, name_end + 2, (size_t)(end - name_end) - 3);
	e.rank = rank_of(type, name, (size_t)(name_end - name));
	e.name = add_text(k, name, (size_t)(name_end - name));
	return k->names.failed || k->modules.failed ? -ENOMEM : add_entry(k, &e);
}

/* Reads all of @fd, a line at a time. */
static int read_lines(struct list *k, int fd)
{
	AUTO_FREE char *text = malloc(READ_BYTES);
	size_t have = 0; /* bytes of a line begun */

	if (!text)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, text + have, READ_BYTES - have);
		const char *line = text, *end, *newline;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return have ? add_line(k, text, text + have) : 0;
		end = text + have + n;
		while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
			if (add_line(k, line, newline))
				return -ENOMEM;
			line = newline + 1;
		}
		have = (size_t)(end - line);
		if (have == READ_BYTES)
			return -EINVAL;
		memmove(text, line, have);
		if (k->names.len > UINT32_MAX - 2 * READ_BYTES)
			return -EFBIG;
	}
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* Sorts, keeps one name an address and one end in a row. */
static void finish(struct list *k)
{
	size_t kept = 0;

	if (!k->count)
		return;
	qsort(k->entries, k->count, sizeof(*k->entries), compare_entries);
	for (size_t i = 0; i < k->count; i++) {
		const struct entry *e = &k->entries[i], *before = kept ? &k->entries[kept - 1] : NULL;

		if (before && (e->addr == before->addr || (e->rank == RANK_END && before->rank == RANK_END)))
			continue;
		k->entries[kept++] = *e;
	}
	k->count = kept;
}

static void list_fini(struct list *k)
{
	free(k->entries);
	buf_fini(&k->names);
	buf_fini(&k->modules);
}

/* --- a list in one piece --- */

/* Looks at the bounds of all arrays of @data. */
static bool find_arrays(struct kallsyms *k, const void *data, size_t len_bytes)
{
	const struct head *h = data;

	if (len_bytes < sizeof(*h) || memcmp(h->magic, magic, sizeof(magic)) || h->version != VERSION || !h->module_cnt ||
	    !h->names_bytes ||
	    len_bytes != sizeof(*h) + (uint64_t)h->entry_cnt * sizeof(*k->entries) +
				 (uint64_t)h->module_cnt * sizeof(*k->modules) + h->names_bytes)
		return false;
	k->head = h;
	k->entries = (const void *)(h + 1);
	k->modules = (const void *)(k->entries + h->entry_cnt);
	k->names = (const void *)(k->modules + h->module_cnt);
	return k->names[h->names_bytes - 1] == '\0';
}

/* Appends the list of @entries to @out, which is empty. */
static void put_list(struct buf *out, const struct entry *entries, size_t count, const void *modules, size_t modules_bytes,
		     const void *names, size_t names_bytes)
{
	struct head h = { .version = VERSION,
			  .entry_cnt = (uint32_t)count,
			  .module_cnt = (uint32_t)(modules_bytes / sizeof(uint32_t)),
			  .names_bytes = (uint32_t)names_bytes };

	memcpy(h.magic, magic, sizeof(magic));
	buf_reserve(out, sizeof(h) + count * sizeof(*entries) + modules_bytes + names_bytes);
	buf_append(out, &h, sizeof(h));
	buf_append(out, entries, count * sizeof(*entries));
	buf_append(out, modules, modules_bytes);
	buf_append(out, names, names_bytes);
}

/* The list of @path, into @out. */
static int read_list(const char *path, struct buf *out)
{
	AUTO_CLOSE int fd = open(path ? path : "/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	AUTO(list_fini) struct list list = { 0 };
	uint32_t none;
	int error;

	if (fd < 0)
		return -errno;
	none = add_text(&list, "", 0);
	buf_append(&list.modules, &none, sizeof(none));
	error = list.modules.failed || list.names.failed ? -ENOMEM : read_lines(&list, fd);
	if (!error && !list.has_address)
		error = -EPERM;
	if (error)
		return error;
	finish(&list);
	put_list(out, list.entries, list.count, list.modules.data, list.modules.len, list.names.data, list.names.len);
	buf_fit(out);
	return out->failed ? -ENOMEM : 0;
}

int kallsyms_new(const char *path, struct kallsyms **ret)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	int error;

	if (!k)
		return -ENOMEM;
	error = read_list(path, &k->made);
	if (!error && !find_arrays(k, k->made.data, k->made.len))
		error = -EINVAL;
	if (error)
		kallsyms_free(k);
	else
		*ret = k;
	return error;
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	buf_fini(&k->made);
	kept_file_unmap(&k->file);
	free(k);
}

/* --- kept in a file --- */

/* Does @module come and go without being in /proc/modules? BPF programs do, and pages for probes and tracing. */
static bool is_passing(const char *module)
{
	return !strcmp(module, "bpf") || !strncmp(module, "__builtin__", 11);
}

int kallsyms_keep(const struct kallsyms *k, int dir_fd, const char *name, const char key[static KALLSYMS_KEY_BYTES])
{
	const struct head *h = k->head;
	AUTO(buf_fini) struct buf kept = BUF_EMPTY, out = BUF_EMPTY;
	struct head *fresh;

	buf_reserve(&kept, h->entry_cnt * sizeof(*k->entries));
	for (uint32_t i = 0; i < h->entry_cnt; i++)
		if (!is_passing(k->names + k->modules[k->entries[i].module]))
			buf_append(&kept, &k->entries[i], sizeof(k->entries[i]));
	put_list(&out, (const void *)kept.data, kept.len / sizeof(*k->entries), k->modules,
		 h->module_cnt * sizeof(*k->modules), k->names, h->names_bytes);
	if (kept.failed || out.failed)
		return -ENOMEM;
	fresh = (void *)out.data;
	memcpy(fresh->key, key, sizeof(fresh->key));
	fresh->hash = XXH3_64bits(fresh + 1, out.len - sizeof(*fresh));
	return kept_file_replace(dir_fd, name, out.data, out.len);
}

int kallsyms_kept(int dir_fd, const char *name, const char key[static KALLSYMS_KEY_BYTES], struct kallsyms **ret)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	int error;

	if (!k)
		return -ENOMEM;
	error = kept_file_map(dir_fd, name, &k->file);
	if (!error && (!find_arrays(k, k->file.data, k->file.len_bytes) || memcmp(k->head->key, key, KALLSYMS_KEY_BYTES)))
		error = -ESTALE;
	if (!error && XXH3_64bits(k->head + 1, k->file.len_bytes - sizeof(*k->head)) != k->head->hash)
		error = -EBADMSG;
	if (error) {
		kallsyms_free(k);
		return error;
	}
	kept_file_rest(&k->file); /* the checksum has touched all of it */
	*ret = k;
	return 0;
}

/* --- questions --- */

/* The marks that the linker puts behind the text sections. */
static bool is_end(const char *name)
{
	return strcmp(name, "_etext") == 0 || strcmp(name, "_einittext") == 0;
}

/* Neither the kernel itself nor BPF programs, of which nothing but the end of their memory follows the last. */
static bool is_loaded_module(const char *module)
{
	return *module && strcmp(module, "bpf") != 0;
}

static const char *module_of(const struct kallsyms *k, const struct entry *e)
{
	uint32_t module = e->module < k->head->module_cnt ? k->modules[e->module] : 0;

	return k->names + (module < k->head->names_bytes ? module : 0);
}

int kallsyms_find(const struct kallsyms *k, uint64_t addr, const char **name_ret, const char **module_ret,
		  uint64_t *start_ret)
{
	size_t behind = search_first(at, k->head->entry_cnt, k->entries[at].addr > addr);
	const struct entry *e;

	if (behind == 0)
		return -ENOENT;
	e = &k->entries[behind - 1];
	if (e->rank == RANK_END || e->name >= k->head->names_bytes || is_end(k->names + e->name))
		return -ENOENT;
	if (behind == k->head->entry_cnt || (e[1].module != e->module && e[1].rank != RANK_END)) {
		uint64_t max = is_loaded_module(module_of(k, e)) ? MAX_MODULE_TAIL_BYTES : MAX_TAIL_BYTES;

		if (addr - e->addr >= max)
			return -ENOENT;
	}
	*name_ret = k->names + e->name;
	*module_ret = module_of(k, e);
	*start_ret = e->addr;
	return 0;
}

void kallsyms_rest(const struct kallsyms *k)
{
	kept_file_rest(&k->file);
}

size_t kallsyms_memory_bytes(const struct kallsyms *k)
{
	return sizeof(*k) + k->made.cap;
}

size_t kallsyms_mapped_bytes(const struct kallsyms *k)
{
	return k->file.len_bytes;
}

/* --- modules --- */

/* A word of a line and the blank behind it. */
static const char *skip_word(const char *p, const char *end)
{
	p = memchr(p, ' ', (size_t)(end - p));
	return p ? p + 1 : end;
}

void kallsyms_modules(const char *text, struct buf *out)
{
	const char *line = text, *end;

	for (; *line; line = *end ? end + 1 : end) {
		const char *users, *behind;

		end = strchrnul(line, '\n');
		users = skip_word(skip_word(line, end), end);
		behind = skip_word(skip_word(users, end), end);
		buf_append(out, line, (size_t)(users - line));
		buf_append(out, behind, (size_t)(end - behind));
		buf_putc(out, '\n');
	}
}

void kallsyms_module_ids(const char *text, const char *folder, struct buf *out)
{
	const char *line = text, *end;

	for (; *line; line = *end ? end + 1 : end) {
		char path[PATH_MAX], note[MAX_NOTE_BYTES];
		ssize_t len;

		end = strchrnul(line, '\n');
		snprintf(path, sizeof(path), "%s/%.*s/notes/.note.gnu.build-id", folder, (int)strcspn(line, " \n"), line);
		len = io_read_text(AT_FDCWD, path, note, sizeof(note));
		if (len > 0)
			buf_append(out, note, (size_t)len);
	}
}
