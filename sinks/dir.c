/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One JSON file a sample, in a folder a container and sample type. A file is written under a name of its own first and then
 * linked to the next free number, so that it appears whole and two processes never overwrite each other's. Folders that
 * were written to are kept open, so many at most. Nothing is synced. Used by one thread.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/text/hex.h"
#include "base/text/json.h"
#include "base/text/parse.h"
#include "sinks/sink_type.h"
#include "sinks/value_text.h"

enum {
	OPEN_FOLDERS = 128,
	NAME_BYTES = 200, /* of a folder; file systems take 255 */
	KEEP_BYTES = 1 << 20,
};

struct folder {
	char *name; /* "CONTAINER/TYPE"; NULL: free */
	int fd;
	uint64_t last; /* the highest number in it */
	uint64_t used; /* when, by the sink's counter */
};

struct sink_dir {
	struct sink sink;
	struct dir_options options;
	int fd;
	struct folder folders[OPEN_FOLDERS];
	uint64_t uses;
	struct buf text, value;
};

struct entry {
	struct str key;
	const struct any_value *value;
};

/* --- names --- */

/* A name that stays in its folder: other bytes than [A-Za-z0-9_.-] and a leading dot as %XX; a long one cut, with a hash of
 * the whole. */
static void put_name(struct buf *out, struct str s)
{
	size_t start = out->len;
	char hash[24];

	for (uint32_t i = 0; i < s.len && out->len - start <= NAME_BYTES; i++)
		buf_percent(out, (const char *)s.data + i, 1, i ? "_-." : "_-");
	if (out->failed || out->len - start <= NAME_BYTES)
		return;
	snprintf(hash, sizeof(hash), "%%~%016" PRIx64, (uint64_t)XXH3_64bits(s.data, s.len));
	out->len = start + NAME_BYTES - strlen(hash);
	buf_puts(out, hash);
}

/* --- folders --- */
static int open_folder(int parent, const char *name)
{
	int fd;

	if (mkdirat(parent, name, 0755) && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The highest N of the N.json in the folder. */
static int highest_number(int fd, uint64_t *ret)
{
	DIR *dir = fdopendir(dup(fd));

	if (!dir)
		return -errno;
	for (const struct dirent *e; (e = readdir(dir));) {
		size_t digits = strspn(e->d_name, "0123456789");
		uint64_t n;
		char text[24];

		if (!digits || digits >= sizeof(text) || strcmp(e->d_name + digits, ".json") != 0)
			continue;
		memcpy(text, e->d_name, digits);
		text[digits] = '\0';
		if (!parse_u64(text, &n) && n > *ret && n < UINT64_MAX)
			*ret = n;
	}
	closedir(dir);
	return 0;
}

static void folder_close(struct folder *f)
{
	if (!f->name)
		return;
	close(f->fd);
	free(f->name);
	*f = (struct folder){ 0 };
}

static int folder_open(struct sink_dir *s, struct folder *f, const char *name)
{
	AUTO_FREE char *copy = strdup(name);
	AUTO_CLOSE int container = -1;
	char *type = copy ? strchr(copy, '/') : NULL;
	uint64_t last = 0;
	int fd, error;

	if (!type)
		return -ENOMEM;
	*type = '\0';
	container = open_folder(s->fd, copy);
	if (container < 0)
		return container;
	fd = open_folder(container, type + 1);
	if (fd < 0)
		return fd;
	error = highest_number(fd, &last);
	if (error) {
		close(fd);
		return error;
	}
	*type = '/';
	*f = (struct folder){ .name = MOVE(copy), .fd = fd, .last = last };
	return 0;
}

/* The open folder called @name; the one that was not used for longest makes room. NULL: *@error says why. */
static struct folder *find_folder(struct sink_dir *s, const char *name, int *error)
{
	struct folder *oldest = &s->folders[0];

	for (size_t i = 0; i < OPEN_FOLDERS; i++) {
		struct folder *f = &s->folders[i];

		if (f->name && !strcmp(f->name, name)) {
			f->used = ++s->uses;
			return f;
		}
		if (f->used < oldest->used)
			oldest = f;
	}
	folder_close(oldest);
	*error = folder_open(s, oldest, name);
	oldest->used = *error ? 0 : ++s->uses;
	return *error ? NULL : oldest;
}

/* Writes @s->text under the next number. */
static int write_file(struct sink_dir *s, struct folder *f)
{
	char temporary[32], name[32];
	int fd, error;

	snprintf(temporary, sizeof(temporary), ".new-%d", (int)getpid());
	fd = openat(f->fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	error = io_write_all(fd, s->text.data, s->text.len);
	if (close(fd) && !error)
		error = -errno;
	while (!error) {
		snprintf(name, sizeof(name), "%" PRIu64 ".json", ++f->last);
		if (!linkat(f->fd, temporary, f->fd, name, 0))
			break;
		if (errno != EEXIST)
			error = -errno;
	}
	unlinkat(f->fd, temporary, 0);
	return error;
}

/* --- a sample as JSON --- */
static void put_string(struct json *j, const char *key, struct str s)
{
	if (!s.len)
		return;
	json_key(j, key);
	json_string_n(j, s.data, s.len);
}

/* Sorts by key; of equal keys the last one comes last. */
static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	uint32_t common = x->key.len < y->key.len ? x->key.len : y->key.len;
	int order = memcmp(x->key.data, y->key.data, common);

	if (!order)
		order = (x->key.len > y->key.len) - (x->key.len < y->key.len);
	return order ? order : (x > y) - (x < y);
}

static void put_attributes(struct sink_dir *s, struct json *j, const struct profiles *p, const struct indices *attributes)
{
	AUTO_FREE struct entry *entries = calloc(attributes->count + 1ul, sizeof(*entries));

	if (!attributes->count)
		return;
	if (!entries) {
		s->text.failed = true;
		return;
	}
	for (uint32_t i = 0; i < attributes->count; i++) {
		const struct profile_attribute *a = &p->dict.attributes[attributes->items[i]];

		entries[i] = (struct entry){ profiles_string(p, a->key_strindex), &a->value };
	}
	qsort(entries, attributes->count, sizeof(*entries), compare_entries);
	json_key(j, "attributes");
	json_object_begin(j);
	for (uint32_t i = 0; i < attributes->count; i++) {
		const struct entry *e = &entries[i], *next = e + 1;

		if (i + 1 < attributes->count && e->key.len == next->key.len &&
		    !memcmp(e->key.data, next->key.data, e->key.len))
			continue;
		buf_reset(&s->value);
		value_text(p, e->value, &s->value);
		s->text.failed |= s->value.failed;
		json_key_n(j, e->key.data, e->key.len);
		json_string_n(j, s->value.len ? (const char *)s->value.data : "", s->value.len);
	}
	json_object_end(j);
}

static void put_number(struct json *j, const char *key, int64_t v)
{
	if (!v)
		return;
	json_key(j, key);
	json_i64(j, v);
}

static void put_location(struct json *j, const struct profiles *p, const struct profile_location *l)
{
	const struct any_value *v = profiles_find_attribute(p, &l->attributes, "profile.frame.type");
	struct str type = profiles_value_text(p, v);
	char address[24];

	if (!type.len)
		type = STR("unknown");
	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct profile_function *f = &p->dict.functions[l->lines[i].function_index];

		json_object_begin(j);
		put_string(j, "type", type);
		put_string(j, "function", profiles_string(p, f->name_strindex));
		put_string(j, "file", profiles_string(p, f->filename_strindex));
		put_number(j, "line", l->lines[i].line);
		put_number(j, "column", l->lines[i].column);
		json_object_end(j);
	}
	if (l->line_count)
		return;
	snprintf(address, sizeof(address), "0x%" PRIx64, l->address);
	json_object_begin(j);
	put_string(j, "type", type);
	json_key(j, "address");
	json_string(j, address);
	if (l->mapping_index)
		put_string(j, "mapping", profiles_string(p, p->dict.mappings[l->mapping_index].filename_strindex));
	json_object_end(j);
}

static void put_stack(struct json *j, const struct profiles *p, const struct indices *stack)
{
	json_key(j, "frames");
	if (!stack->count) {
		json_null(j);
		return;
	}
	json_array_begin(j);
	for (uint32_t i = 0; i < stack->count; i++)
		put_location(j, p, &p->dict.locations[stack->items[i]]);
	json_array_end(j);
}

static struct str type_of(const struct profiles *p, const struct profile *profile)
{
	struct str type = profiles_string(p, profile->sample_type.type_strindex);

	return type.len ? type : STR("unknown");
}

static void put_sample(struct sink_dir *s, const struct profiles *p, struct str container, const struct profile *profile,
		       const struct sample *sample)
{
	struct str type = type_of(p, profile);
	uint8_t id[16] = { 0 };
	char hex[2 * sizeof(id) + 1];
	struct json j;

	if (profile->profile_id.len == sizeof(id))
		memcpy(id, profile->profile_id.data, sizeof(id));
	hex_encode(hex, id, sizeof(id));
	json_init(&j, &s->text, 2);
	j.html_safe = true;
	json_object_begin(&j);
	json_key(&j, "container_id");
	json_string_n(&j, container.data, container.len);
	json_key(&j, "profile_id");
	json_string(&j, hex);
	json_key(&j, "sample_type");
	json_string_n(&j, type.data, type.len);
	if (sample->timestamp_count) {
		json_key(&j, "timestamps_unix_nano");
		json_array_begin(&j);
		for (uint32_t i = 0; i < sample->timestamp_count; i++)
			json_u64(&j, sample->timestamps_unix_ns[i]);
		json_array_end(&j);
	}
	put_attributes(s, &j, p, &sample->attributes);
	put_stack(&j, p, &p->dict.stacks[sample->stack_index]);
	json_object_end(&j);
}

/* --- the sink --- */
static bool is_wanted(const char *const *list, struct str s)
{
	bool any = !list;

	for (; list && *list; list++)
		any |= str_is(s, *list);
	return any;
}

static int write_profile(struct sink_dir *s, const struct profiles *p, struct str container, const struct profile *profile)
{
	struct str type = type_of(p, profile);
	AUTO(buf_fini) struct buf name = BUF_EMPTY;
	int error = 0;

	if (!is_wanted(s->options.sample_types, type))
		return 0;
	put_name(&name, container);
	buf_putc(&name, '/');
	put_name(&name, type);
	for (uint32_t i = 0; i < profile->sample_count && !error; i++) {
		struct folder *f = find_folder(s, buf_text(&name), &error);

		buf_reset(&s->text);
		put_sample(s, p, container, profile, &profile->samples[i]);
		if (s->text.failed || name.failed)
			error = -ENOMEM;
		if (!error)
			error = write_file(s, f);
	}
	return error;
}

static int dir_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct sink_dir *s = (struct sink_dir *)sink;
	int error = 0;

	(void)ack;
	for (uint32_t i = 0; i < p->resource_count && !error; i++) {
		const struct resource_profiles *rp = &p->resources[i];
		struct str container = profiles_value_text(p,
							   profiles_find_key(p, &rp->resource.attributes, "container.id"));
		struct str name = container.len ? container : STR("unknown");

		if (s->options.container_id && !str_is(container, s->options.container_id))
			continue;
		for (uint32_t k = 0; k < rp->scope_count && !error; k++)
			for (uint32_t n = 0; n < rp->scopes[k].profile_count && !error; n++)
				error = write_profile(s, p, name, &rp->scopes[k].profiles[n]);
	}
	if (s->text.cap > KEEP_BYTES)
		buf_fini(&s->text);
	return error;
}

static void dir_free(struct sink *sink)
{
	struct sink_dir *s = (struct sink_dir *)sink;

	for (size_t i = 0; i < OPEN_FOLDERS; i++)
		folder_close(&s->folders[i]);
	cleanup_close(&s->fd);
	buf_fini(&s->text);
	buf_fini(&s->value);
	free(s);
}

static const struct sink_ops dir_ops = {
	.name = "dir",
	.consume = dir_consume,
	.free = dir_free,
};

int sink_dir_new(const char *dir, const struct dir_options *options, struct sink **ret)
{
	struct sink_dir *s = calloc(1, sizeof(*s));
	int error = 0;

	if (!s)
		return -ENOMEM;
	s->sink.ops = &dir_ops;
	if (options)
		s->options = *options;
	if (mkdir(dir, 0755) && errno != EEXIST)
		error = -errno;
	s->fd = error ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0) {
		error = error ? error : -errno;
		dir_free(&s->sink);
		return error;
	}
	*ret = &s->sink;
	return 0;
}

static int make_dir(const struct sink_settings *settings, const char *value, struct sink **ret, struct buf *error)
{
	(void)error;
	return sink_dir_new(value, &settings->dir, ret);
}

const struct sink_type sink_type_dir = {
	.name = "dir",
	.value = "DIR",
	.help = "a JSON file a sample",
	.is_slow = true,
	.make = make_dir,
	.explain = sink_explain_file,
};
