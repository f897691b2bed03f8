/* SPDX-License-Identifier: Apache-2.0 */
/* The form is that of the kernel's Documentation/bpf/btf.rst: a header, types of several lengths one after another, strings.
 */
#include "agent/kernel/kernel_types.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "agent/kernel/kernel_version.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "base/map.h"
#include "base/vec.h"

enum {
	MOST_BYTES = 64 << 20,
	MOST_DEPTH = 32, /* of types by value in each other */
	KIND_ENUM64 = 19 /* BTF_KIND_ENUM64 of Linux 6.0; older headers lack it */
};

struct cut {
	const uint8_t *types;
	const char *strings;
	uint32_t types_len, strings_len;
	uint32_t *at;		   /* by number: where the type begins, in bytes; at[0] is void */
	uint32_t count, cap;	   /* of numbers in use, with 0 */
	struct map wanted, inside; /* hashes of names: of types, of members */
	struct map made;	   /* number + 1 -> number in @out + 1 */
	struct btf *out;
};

static void finish(struct cut *c)
{
	free(c->at);
	map_fini(&c->wanted);
	map_fini(&c->inside);
	map_fini(&c->made);
	btf__free(c->out);
}

/* --- names --- */

/* The length of a type's name without the ___suffix that tells forms of it apart. */
static size_t plain_length(const char *name)
{
	const char *mark = strstr(name, "___");

	return mark && mark != name ? (size_t)(mark - name) : strlen(name);
}

static int add_name(struct map *names, const char *name, size_t len)
{
	return len ? map_put(names, XXH3_64bits(name, len), names) : 0;
}

static bool is_named(const struct map *names, const char *name)
{
	return map_get(names, XXH3_64bits(name, strlen(name)));
}

/* Is @t of the kinds that objects name? */
static bool is_nameable(const struct btf_type *t)
{
	return btf_is_composite(t) || btf_is_enum(t) || btf_kind(t) == KIND_ENUM64;
}

/* Collects the names of types, and of members, that @local has. */
static int collect(struct cut *c, const struct btf *local)
{
	uint32_t count = btf__type_cnt(local);
	int error = 0;

	for (uint32_t id = 1; id < count && !error; id++) {
		const struct btf_type *t = btf__type_by_id(local, id);
		const struct btf_member *m = btf_members(t);
		const char *name = btf__name_by_offset(local, t->name_off);

		if (is_nameable(t))
			error = add_name(&c->wanted, name, plain_length(name));
		for (uint32_t i = 0; btf_is_composite(t) && i < btf_vlen(t) && !error; i++) {
			name = btf__name_by_offset(local, m[i].name_off);
			error = add_name(&c->inside, name, strlen(name));
		}
	}
	return error;
}

/* --- all types --- */

/* The bytes behind the head of a type. -1: of a kind that we do not know. */
static ssize_t rest_bytes(const struct btf_type *t)
{
	const size_t n = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	case BTF_KIND_INT:
		return sizeof(uint32_t);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return (ssize_t)(n * sizeof(struct btf_member));
	case BTF_KIND_ENUM:
		return (ssize_t)(n * sizeof(struct btf_enum));
	case KIND_ENUM64:
		return (ssize_t)(n * 3 * sizeof(uint32_t)); /* struct btf_enum64 */
	case BTF_KIND_FUNC_PROTO:
		return (ssize_t)(n * sizeof(struct btf_param));
	case BTF_KIND_VAR:
		return sizeof(struct btf_var);
	case BTF_KIND_DATASEC:
		return (ssize_t)(n * sizeof(struct btf_var_secinfo));
	case BTF_KIND_DECL_TAG:
		return sizeof(struct btf_decl_tag);
	default:
		return -1;
	}
}

static const struct btf_type *type_of(const struct cut *c, uint32_t id)
{
	return id && id < c->count ? (const struct btf_type *)(const void *)(c->types + c->at[id]) : NULL;
}

/* The strings end with a NUL, so every name in them does. */
static const char *name_of(const struct cut *c, uint32_t offset)
{
	return offset < c->strings_len ? c->strings + offset : "";
}

static int note_type(struct cut *c, uint32_t at)
{
	if (vec_reach(&c->at, &c->cap, c->count))
		return -ENOMEM;
	c->at[c->count++] = at;
	return 0;
}

/* Finds where each type begins. */
static int find_types(struct cut *c, const void *all, size_t len)
{
	const struct btf_header *head = all;
	uint32_t at = 0;
	int error;

	if (len < sizeof(*head) || head->magic != BTF_MAGIC || head->version != BTF_VERSION ||
	    head->hdr_len < sizeof(*head) || head->type_off % 4 ||
	    (uint64_t)head->hdr_len + head->type_off + head->type_len > len || !head->str_len ||
	    (uint64_t)head->hdr_len + head->str_off + head->str_len > len || head->hdr_len % 4)
		return -EINVAL;
	c->types = (const uint8_t *)all + head->hdr_len + head->type_off;
	c->types_len = head->type_len;
	c->strings = (const char *)all + head->hdr_len + head->str_off;
	c->strings_len = head->str_len;
	if (c->strings[c->strings_len - 1])
		return -EINVAL;
	error = note_type(c, 0);
	while (!error && at < c->types_len) {
		const struct btf_type *t = (const void *)(c->types + at);
		ssize_t rest = c->types_len - at < sizeof(*t) ? -1 : rest_bytes(t);

		if (rest < 0)
			return c->types_len - at < sizeof(*t) ? -EINVAL : -ENOTSUP;
		if (c->types_len - at < sizeof(*t) + (size_t)rest)
			return -EINVAL;
		error = note_type(c, at);
		at += (uint32_t)(sizeof(*t) + (size_t)rest);
	}
	return error;
}

/* --- the cut --- */

static int copy(struct cut *c, uint32_t id, int depth);

/* May an object name the member @m, or, where that has no name, one inside of it? */
static bool keeps(const struct cut *c, const struct btf_member *m)
{
	const char *name = name_of(c, m->name_off);

	return !*name || is_named(&c->inside, name);
}

static int copy_struct(struct cut *c, const struct btf_type *t, int depth)
{
	const struct btf_member *m = btf_members(t);
	const char *name = name_of(c, t->name_off);
	int id, error = 0;

	/* the members' types come first: those of libbpf's writer stand behind their struct without a gap */
	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		id = keeps(c, &m[i]) ? copy(c, m[i].type, depth + 1) : 0;
		if (id < 0)
			return id;
	}
	id = btf_is_struct(t) ? btf__add_struct(c->out, name, t->size) : btf__add_union(c->out, name, t->size);
	for (uint32_t i = 0; id > 0 && i < btf_vlen(t) && !error; i++)
		if (keeps(c, &m[i]))
			error = btf__add_field(c->out, name_of(c, m[i].name_off), copy(c, m[i].type, depth + 1),
					       btf_member_bit_offset(t, i), btf_member_bitfield_size(t, i));
	return error ? error : id;
}

static int copy_enum(struct cut *c, const struct btf_type *t)
{
	const struct btf_enum *v = btf_enum(t);
	int id = btf__add_enum(c->out, name_of(c, t->name_off), t->size), error = 0;

	for (uint32_t i = 0; id > 0 && i < btf_vlen(t) && !error; i++)
		error = btf__add_enum_value(c->out, name_of(c, v[i].name_off), v[i].val);
	return error ? error : id;
}

static int copy_array(struct cut *c, const struct btf_type *t, int depth)
{
	const struct btf_array *array = btf_array(t);
	int index = copy(c, array->index_type, depth + 1), element = copy(c, array->type, depth + 1);

	return index < 0 ? index : element < 0 ? element : btf__add_array(c->out, index, element, array->nelems);
}

static int copy_new(struct cut *c, const struct btf_type *t, int depth)
{
	const char *name = name_of(c, t->name_off);
	const uint32_t *word = (const void *)(t + 1);

	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		return btf__add_int(c->out, name, t->size, (int)BTF_INT_ENCODING(*word));
	case BTF_KIND_FLOAT:
		return btf__add_float(c->out, name, t->size);
	case BTF_KIND_PTR: /* what it leads to is found by its own name */
		return btf__add_ptr(c->out, 0);
	case BTF_KIND_ARRAY:
		return copy_array(c, t, depth);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return copy_struct(c, t, depth);
	case BTF_KIND_ENUM:
		return copy_enum(c, t);
	case KIND_ENUM64: /* its values are not asked for; it is a number of this size */
		return btf__add_int(c->out, *name ? name : "enum", t->size, 0);
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return copy(c, t->type, depth + 1);
	default:
		return -EINVAL; /* nothing else is there by value */
	}
}

/* Puts type @id into the cut, once. Its number there, or -errno. */
static int copy(struct cut *c, uint32_t id, int depth)
{
	uintptr_t made = (uintptr_t)map_get(&c->made, (uint64_t)id + 1);
	const struct btf_type *t = type_of(c, id);
	int fresh, error;

	if (made)
		return (int)(made - 1);
	if (!id)
		return 0;
	if (!t || depth > MOST_DEPTH)
		return -EINVAL;
	fresh = copy_new(c, t, depth);
	if (fresh < 0)
		return fresh;
	error = map_put(&c->made, (uint64_t)id + 1, (void *)((uintptr_t)fresh + 1));
	return error ? error : fresh;
}

int kernel_types_cut(const void *all, size_t len, const struct btf *local, struct btf **ret)
{
	AUTO(finish) struct cut c = { .out = btf__new_empty() };
	int error = c.out ? find_types(&c, all, len) : -errno;

	if (!error)
		error = collect(&c, local);
	for (uint32_t id = 1; id < c.count && !error; id++) {
		const struct btf_type *t = type_of(&c, id);
		const char *name = name_of(&c, t->name_off);
		int made = is_nameable(t) && *name && is_named(&c.wanted, name) ? copy(&c, id, 0) : 0;

		error = made < 0 ? made : 0;
	}
	if (!error)
		*ret = MOVE(c.out);
	return error;
}

/* --- for libbpf --- */

static int file = -1;

const struct bpf_object_open_opts *kernel_types_opts(void)
{
	static struct bpf_object_open_opts opts = { .sz = sizeof(opts) };
	static char path[32];

	if (file >= 0)
		return &opts;
	if (access(KERNEL_BTF, R_OK) == 0)
		file = memfd_create("kernel-types", MFD_CLOEXEC);
	if (file < 0)
		return &opts;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	opts.btf_custom_path = path;
	return &opts;
}

/* Writes @len bytes as the content of the file. */
static int put(const void *bytes, size_t len)
{
	if (ftruncate(file, 0) || lseek(file, 0, SEEK_SET))
		return -errno;
	return io_write_all(file, bytes, len);
}

/* All types of the kernel: mapped, or read into @read. */
struct all_types {
	const void *bytes;
	size_t len;
	void *mapped; /* NULL: it is not */
	struct buf read;
};

static void all_types_fini(struct all_types *all)
{
	if (all->mapped)
		munmap(all->mapped, all->len);
	buf_fini(&all->read);
}

/* Kernels since 6.16 let the file be mapped, which saves 5 MB of copying. 0 or -errno. */
static int all_types_open(struct all_types *all)
{
	AUTO_CLOSE int fd = open(KERNEL_BTF, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int error;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	all->len = (size_t)st.st_size;
	all->mapped = all->len ? mmap(NULL, all->len, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	if (all->mapped != MAP_FAILED) {
		all->bytes = all->mapped;
		return 0;
	}
	all->mapped = NULL;
	error = io_read_all(fd, MOST_BYTES, &all->read);
	all->bytes = all->read.data;
	all->len = all->read.len;
	return error;
}

void kernel_types_give(const struct bpf_object *object)
{
	AUTO(all_types_fini) struct all_types all = { .read = BUF_EMPTY };
	struct btf *cut = NULL;
	uint32_t len = 0;
	int error;

	if (file < 0)
		return;
	error = all_types_open(&all);
	if (!error)
		error = kernel_types_cut(all.bytes, all.len, bpf_object__btf(object), &cut);
	if (!error) {
		const void *bytes = btf__raw_data(cut, &len);

		error = bytes ? put(bytes, len) : -errno;
	}
	if (error) {
		log_debug("the kernel's types are not cut: %s", strerror(-error));
		(void)put(all.bytes, all.len);
	}
	btf__free(cut);
}
