/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files are found by the file's build id, which the debug file repeats, or by the name and checksum in its
 * .gnu_debuglink (both as GDB's manual, "Debugging Information in Separate Files", has them). One that fits neither is not
 * believed: its tables would describe other code. Everything read here is hostile.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include "agent/elf_debug.h"
#include "base/cleanup.h"

enum {
	MAX_CRC_BYTES = 128 << 20, /* a checksum over more takes longer than a request may; such a file has a build id */
	CRC_BYTES = 4,
	CRC_ALIGN = 4,
};

bool elf_need_name_is_sound(const char *name, size_t bytes)
{
	return memchr(name, '\0', bytes) && name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

/* Plain names with a slash between them. */
static bool is_path_below(const char *path)
{
	char part[ELF_NEED_NAME_BYTES];

	for (size_t len; *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		memcpy(part, path, len);
		part[len] = '\0';
		if (!elf_need_name_is_sound(part, sizeof(part)))
			return false;
	}
	return true;
}

bool elf_needed_is_sound(const struct elf_needed *needed)
{
	if (needed->need >= ELF_NEED_MAX || !memchr(needed->name, '\0', sizeof(needed->name)))
		return false;
	switch ((enum elf_need)needed->need) {
	case ELF_NEED_BUILD_ID:
	case ELF_NEED_DEBUGLINK:
		return elf_need_name_is_sound(needed->name, sizeof(needed->name));
	case ELF_NEED_COMMON:
		return needed->name[0] && is_path_below(needed->name);
	case ELF_NEED_PACKAGE:
		return !needed->name[0];
	case ELF_NEED_MAX:
		break;
	}
	return false;
}

/* .gnu_debuglink: a file name, padded with zeroes to a multiple of four, then the CRC-32 of that file. */
static void read_link(struct elf_debug *d, Elf_Scn *scn)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	size_t len, crc_at;

	if (!data || !data->d_buf || !elf_need_name_is_sound(data->d_buf, data->d_size))
		return;
	len = strlen(data->d_buf) + 1;
	crc_at = (len + CRC_ALIGN - 1) & ~(size_t)(CRC_ALIGN - 1);
	if (len > sizeof(d->link) || crc_at > data->d_size || data->d_size - crc_at < CRC_BYTES)
		return;
	memcpy(d->link, data->d_buf, len);
	memcpy(&d->link_crc, (const uint8_t *)data->d_buf + crc_at, CRC_BYTES);
}

/* Has the file the tables that a debug file could only repeat? Notes the link on the way. */
static bool read_sections(struct elf_debug *d, Elf *elf, const char *tables)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;

		if (!name || shdr.sh_type == SHT_NOBITS)
			continue;
		if ((!strncmp(name, ".debug_", 7) && !strcmp(name + 7, tables)) ||
		    (!strncmp(name, ".zdebug_", 8) && !strcmp(name + 8, tables)))
			return true;
		if (!strcmp(name, ".gnu_debuglink"))
			read_link(d, scn);
	}
	return false;
}

void elf_debug_read(struct elf_debug *d, int fd, const char *tables)
{
	struct build_ids ids;
	Elf *elf = elf_version(EV_CURRENT) == EV_NONE ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool is_whole = !elf || elf_kind(elf) != ELF_K_ELF;

	*d = (struct elf_debug){ 0 };
	if (!is_whole)
		is_whole = read_sections(d, elf, tables);
	elf_end(elf);
	if (is_whole)
		return;
	if (build_ids_read(fd, &ids) == 0 && strlen(ids.gnu) > 2)
		memcpy(d->build_id, ids.gnu, sizeof(d->build_id));
	d->wanted = (d->build_id[0] ? 1u << ELF_NEED_BUILD_ID : 0) | (d->link[0] ? 1u << ELF_NEED_DEBUGLINK : 0);
}

bool elf_debug_next(const struct elf_debug *d, struct elf_needed *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (!d->wanted)
		return false;
	ret->need = d->wanted & 1u << ELF_NEED_BUILD_ID ? ELF_NEED_BUILD_ID : ELF_NEED_DEBUGLINK;
	memcpy(ret->name, ret->need == ELF_NEED_BUILD_ID ? d->build_id : d->link,
	       ret->need == ELF_NEED_BUILD_ID ? sizeof(d->build_id) : sizeof(d->link));
	return true;
}

/* Is the file @fd, mapped at @map, the one that @d is about? */
static bool fits(const struct elf_debug *d, enum elf_need need, int fd, const void *map, size_t bytes)
{
	struct build_ids ids;

	if (d->build_id[0] && build_ids_read(fd, &ids) == 0 && !strcmp(ids.gnu, d->build_id))
		return true;
	return need == ELF_NEED_DEBUGLINK && bytes <= MAX_CRC_BYTES && crc32_z(0, map, bytes) == d->link_crc;
}

int elf_debug_take(struct elf_debug *d, enum elf_need need, int fd)
{
	struct stat st;
	void *map;

	if (!(d->wanted >> need & 1))
		return -ENOENT;
	if (fd < 0) {
		d->wanted &= ~(1u << need);
		return 0;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return -ENOENT;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	if (!fits(d, need, fd, map, (size_t)st.st_size)) {
		munmap(map, (size_t)st.st_size);
		return -ENOENT;
	}
	d->map = map;
	d->map_bytes = (size_t)st.st_size;
	d->wanted = 0;
	return 0;
}

void elf_debug_drop(struct elf_debug *d)
{
	if (d->map)
		munmap(d->map, d->map_bytes);
	d->map = NULL;
}
