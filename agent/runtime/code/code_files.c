/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/runtime/code/code_files.h"

static struct code_file *find(struct code_files *f, uint64_t base)
{
	for (uint32_t i = 0; i < f->count; i++)
		if (f->files[i].base == base && f->files[i].number == f->number)
			return &f->files[i];
	return NULL;
}

static void drop(struct code_files *f, struct code_file *file)
{
	if (file->fd >= 0) {
		close(file->fd);
		f->open_cnt--;
	}
	f->kept_bytes -= file->bytes.len;
	free(file->bytes.data);
	*file = f->files[--f->count];
}

static bool is_any(const struct code_file *file)
{
	(void)file;
	return true;
}

static bool is_open(const struct code_file *file)
{
	return file->fd >= 0;
}

static bool is_kept(const struct code_file *file)
{
	return file->bytes.data;
}

/* Drops the coldest of those that are @what. */
static void drop_coldest(struct code_files *f, bool (*what)(const struct code_file *file))
{
	struct code_file *found = NULL;

	for (uint32_t i = 0; i < f->count; i++)
		if (what(&f->files[i]) && (!found || f->files[i].used < found->used))
			found = &f->files[i];
	if (found)
		drop(f, found);
}

/* Takes over what @file owns. */
static void add(struct code_files *f, const struct code_file *file)
{
	if (f->count == CODE_FILES)
		drop_coldest(f, is_any);
	f->files[f->count] = *file;
	f->files[f->count].used = ++f->clock;
	f->files[f->count++].number = f->number;
	f->open_cnt += file->fd >= 0;
	f->kept_bytes += file->bytes.len;
}

void code_files_begin(struct code_files *f, uint32_t number)
{
	f->number = number;
	memset(&f->need, 0, sizeof(f->need));
}

int code_files_put(struct code_files *f, uint64_t base, int fd)
{
	struct code_file *file = find(f, base);
	int own = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (fd >= 0 && own < 0)
		return -errno;
	if (file)
		drop(f, file);
	if (own >= 0 && f->open_cnt == CODE_FILES_OPEN)
		drop_coldest(f, is_open);
	add(f, &(struct code_file){ .base = base, .fd = own });
	return 0;
}

bool code_files_has(struct code_files *f, uint64_t base)
{
	return find(f, base);
}

int code_files_keep(struct code_files *f, uint64_t base, uint8_t *data, size_t len)
{
	struct code_file *file = find(f, base);

	if (len > CODE_FILES_BYTES) {
		free(data);
		return -E2BIG;
	}
	if (file)
		drop(f, file);
	while (len > CODE_FILES_BYTES - f->kept_bytes)
		drop_coldest(f, is_kept);
	add(f, &(struct code_file){ .base = base, .fd = -1, .bytes = { data, len } });
	return 0;
}

void code_files_forget(struct code_files *f, uint32_t number)
{
	for (uint32_t i = 0; i < f->count;) {
		if (f->files[i].number == number)
			drop(f, &f->files[i]);
		else
			i++;
	}
}

void code_files_fini(struct code_files *f)
{
	while (f->count)
		drop(f, &f->files[0]);
}

int code_files_find(const struct code_memory *m, const struct code_need *need, struct code_memory *ret)
{
	struct code_file *file = m->files ? find(m->files, need->base) : NULL;

	if (!file) {
		if (!m->files || !code_need_is_sound(need))
			return -ENOENT;
		if (!m->files->need.base)
			m->files->need = *need;
		return -EAGAIN;
	}
	file->used = ++m->files->clock;
	if (file->bytes.data)
		code_memory_of_bytes(&file->bytes, m->end_ns, ret);
	else if (file->fd >= 0)
		code_memory_of_file(&file->fd, m->end_ns, ret);
	else
		return -ENOENT;
	return 0;
}

bool code_need_is_sound(const struct code_need *need)
{
	return need->base && need->name[0] && memchr(need->name, '\0', sizeof(need->name)) && !strchr(need->name, '/') &&
	       strcmp(need->name, ".") != 0 && strcmp(need->name, "..") != 0;
}
