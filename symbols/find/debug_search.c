/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files are found by the file's build id, which the debug file repeats, or by the name and checksum in its
 * .gnu_debuglink (both as GDB's manual, "Debugging Information in Separate Files", has them); what dwz moved, by name and
 * build id in .gnu_debugaltlink (dwz(1)). One that does not fit is not believed: its tables would describe other code. Only
 * the reader of a .dwp file can tell, unit by unit, whether it fits. Everything read here is hostile.
 */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "symbols/find/debug_search.h"
#include "base/text/hex.h"
#include "symbols/elf_image.h"
#include "symbols/sources/symbol_image.h"
#include "symbols/symbols.h"

enum {
	CRC_BYTES = 4,
	CRC_ALIGN = 4,
	MIN_BUILD_ID = 4, /* hex digits; the first two are a folder */
	/* needs for one and the same file */
	DEBUG_FILE = 1 << DEBUG_NEED_BUILD_ID | 1 << DEBUG_NEED_LINK | 1 << DEBUG_NEED_SERVED,
	COMMON_FILE = 1 << DEBUG_NEED_COMMON | 1 << DEBUG_NEED_COMMON_SERVED,
	PACKAGE_FILE = 1 << DEBUG_NEED_PACKAGE,
};

#define COMMON_FOLDER ".dwz/"

/* --- names --- */

/* The plain name of a file in some folder? */
static bool is_plain_name(const char *name, size_t len)
{
	return len && !memchr(name, '/', len) && !(len == 1 && name[0] == '.') && !(len == 2 && !memcmp(name, "..", 2));
}

/* Plain names with a slash between them. */
static bool is_path_below(const char *path)
{
	for (size_t len; (len = strcspn(path, "/")); path += len + 1) {
		if (!is_plain_name(path, len))
			return false;
		if (!path[len])
			return true;
	}
	return false;
}

static bool is_build_id(const char *id)
{
	size_t len = strspn(id, "0123456789abcdef");

	return len >= MIN_BUILD_ID && !id[len];
}

bool debug_need_is_sound(const struct debug_need *need)
{
	if (!memchr(need->name, '\0', sizeof(need->name)))
		return false;
	switch ((enum debug_need_kind)need->kind) {
	case DEBUG_NEED_BUILD_ID:
	case DEBUG_NEED_SERVED:
	case DEBUG_NEED_COMMON_SERVED:
		return is_build_id(need->name);
	case DEBUG_NEED_LINK:
		return is_plain_name(need->name, strlen(need->name));
	case DEBUG_NEED_COMMON:
		return is_path_below(need->name);
	case DEBUG_NEED_PACKAGE:
		return !need->name[0];
	case DEBUG_NEED_MAX:
		break;
	}
	return false;
}

/* --- what files say --- */

static bool has_section(const struct elf_image *im, const char *name)
{
	Elf64_Shdr sh;
	size_t len;

	return elf_image_find(im, name, &sh) && elf_image_bytes(im, &sh, &len) && len;
}

/* A section that starts with a text; @len_ret: of the section. */
static const char *text_section(const struct elf_image *im, const char *name, size_t *len_ret)
{
	const char *data;
	Elf64_Shdr sh;

	if (!elf_image_find(im, name, &sh))
		return NULL;
	data = (const char *)elf_image_bytes(im, &sh, len_ret);
	return data && memchr(data, '\0', *len_ret) ? data : NULL;
}

/* .gnu_debuglink: a file name, padded with zeroes to a multiple of four, then the CRC-32 of that file. */
static void read_link(struct debug_search *s, const struct elf_image *im)
{
	size_t len, name_bytes, crc_at;
	const char *name = text_section(im, ".gnu_debuglink", &len);

	if (!name || !is_plain_name(name, strlen(name)))
		return;
	name_bytes = strlen(name) + 1;
	crc_at = (name_bytes + CRC_ALIGN - 1) & ~(size_t)(CRC_ALIGN - 1);
	if (name_bytes > sizeof(s->link) || crc_at > len || len - crc_at < CRC_BYTES)
		return;
	memcpy(s->link, name, name_bytes);
	memcpy(&s->link_crc, name + crc_at, CRC_BYTES);
	s->wanted |= 1u << DEBUG_NEED_LINK;
}

/* .gnu_debugaltlink: a path, then the build id of that file. The part of the path below .dwz counts, else its last part. */
static void read_common_link(struct debug_search *s, const struct elf_image *im)
{
	size_t len, id_len;
	const char *path = text_section(im, ".gnu_debugaltlink", &len), *name, *slash;

	if (!path)
		return;
	id_len = len - strlen(path) - 1;
	name = strstr(path, COMMON_FOLDER);
	slash = strrchr(path, '/');
	name = name ? name + strlen(COMMON_FOLDER) : slash ? slash + 1 : path;
	if (id_len > sizeof(s->common_id) / 2 || strlen(name) >= sizeof(s->common) || !is_path_below(name))
		return;
	hex_encode(s->common_id, (const uint8_t *)path + strlen(path) + 1, id_len);
	if (!is_build_id(s->common_id))
		return;
	memcpy(s->common, name, strlen(name) + 1);
	s->wanted |= COMMON_FILE;
}

/* Once the debug file is there, or is known not to be. */
static void look_further(struct debug_search *s)
{
	const struct symbol_image *image = s->files.debug.data ? &s->files.debug : &s->files.program;
	struct elf_image im;

	s->has_looked_further = true;
	if (!s->is_for_names || elf_image_open(image->data, image->len_bytes, &im))
		return;
	read_common_link(s, &im);
	if (has_section(&im, ".debug_addr")) /* split DWARF has one */
		s->wanted |= 1u << DEBUG_NEED_PACKAGE;
}

void debug_search_start(struct debug_search *s, int fd, const struct symbol_image *program, bool is_for_names,
			uint64_t max_crc_bytes)
{
	struct build_ids ids;
	struct elf_image im;

	*s = (struct debug_search){ .files.program = *program,
				    .is_for_names = is_for_names,
				    .max_crc_bytes = max_crc_bytes };
	if (elf_image_open(program->data, program->len_bytes, &im) ||
	    has_section(&im, is_for_names ? ".debug_info" : ".debug_frame") ||
	    has_section(&im, is_for_names ? ".zdebug_info" : ".zdebug_frame"))
		return;
	read_link(s, &im);
	if (build_ids_read(fd, &ids) || !is_build_id(ids.gnu))
		return;
	memcpy(s->build_id, ids.gnu, sizeof(s->build_id));
	s->wanted |= 1u << DEBUG_NEED_BUILD_ID | (is_for_names ? 1u << DEBUG_NEED_SERVED : 0);
}

/* --- questions and answers --- */

bool debug_search_next(struct debug_search *s, struct debug_need *ret)
{
	const char *const names[DEBUG_NEED_MAX] = {
		[DEBUG_NEED_BUILD_ID] = s->build_id,	   [DEBUG_NEED_LINK] = s->link,
		[DEBUG_NEED_SERVED] = s->build_id,	   [DEBUG_NEED_COMMON] = s->common,
		[DEBUG_NEED_COMMON_SERVED] = s->common_id, [DEBUG_NEED_PACKAGE] = "",
	};

	if (!s->wanted && !s->has_looked_further)
		look_further(s);
	memset(ret, 0, sizeof(*ret));
	if (!s->wanted)
		return false;
	ret->kind = (uint32_t)__builtin_ctz(s->wanted);
	memcpy(ret->name, names[ret->kind], strlen(names[ret->kind]) + 1);
	return true;
}

static bool has_build_id(int fd, const char *id)
{
	struct build_ids ids;

	return id[0] && build_ids_read(fd, &ids) == 0 && !strcmp(ids.gnu, id);
}

/* Is the file @fd, mapped as @image, the one that was asked for? */
static bool fits(const struct debug_search *s, enum debug_need_kind kind, int fd, const struct symbol_image *image)
{
	if (kind == DEBUG_NEED_PACKAGE)
		return true;
	if (1u << kind & COMMON_FILE)
		return has_build_id(fd, s->common_id);
	if (has_build_id(fd, s->build_id))
		return true;
	return kind == DEBUG_NEED_LINK && image->len_bytes <= s->max_crc_bytes &&
	       crc32_z(0, image->data, image->len_bytes) == s->link_crc;
}

int debug_search_take(struct debug_search *s, enum debug_need_kind kind, int fd)
{
	struct symbol_image image;
	int error;

	if (kind >= DEBUG_NEED_MAX || !(s->wanted >> kind & 1))
		return -ENOENT;
	if (fd < 0) {
		s->wanted &= ~(1u << kind);
		return 0;
	}
	error = symbol_image_map(fd, &image);
	if (error)
		return error == -ENOEXEC ? -ENOENT : error;
	if (!fits(s, kind, fd, &image)) {
		symbol_image_unmap(&image);
		return -ENOENT;
	}
	if (1u << kind & DEBUG_FILE) {
		s->files.debug = image;
		s->wanted &= ~(uint32_t)DEBUG_FILE;
	} else if (1u << kind & COMMON_FILE) {
		s->files.common = image;
		s->wanted &= ~(uint32_t)COMMON_FILE;
	} else {
		s->files.package = image;
		s->wanted &= ~(uint32_t)PACKAGE_FILE;
	}
	return 0;
}

void debug_search_fini(struct debug_search *s)
{
	symbol_image_unmap(&s->files.debug);
	symbol_image_unmap(&s->files.common);
	symbol_image_unmap(&s->files.package);
}
