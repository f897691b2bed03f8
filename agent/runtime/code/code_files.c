/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
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
	*file = f->files[--f->count];
}

/* Drops the coldest of all, or of those with a file. */
static void drop_coldest(struct code_files *f, bool has_file)
{
	struct code_file *found = NULL;

	for (uint32_t i = 0; i < f->count; i++)
		if ((!has_file || f->files[i].fd >= 0) && (!found || f->files[i].used < found->used))
			found = &f->files[i];
	if (found)
		drop(f, found);
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
		drop_coldest(f, true);
	if (f->count == CODE_FILES)
		drop_coldest(f, false);
	f->files[f->count++] = (struct code_file){ base, ++f->clock, f->number, own };
	f->open_cnt += own >= 0;
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
	if (file->fd < 0)
		return -ENOENT;
	code_memory_of_file(&file->fd, m->end_ns, ret);
	return 0;
}

bool code_need_is_sound(const struct code_need *need)
{
	return need->base && need->name[0] && memchr(need->name, '\0', sizeof(need->name)) && !strchr(need->name, '/') &&
	       strcmp(need->name, ".") != 0 && strcmp(need->name, "..") != 0;
}
