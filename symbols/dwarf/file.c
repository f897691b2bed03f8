/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section headers are read where they lie. A section is unpacked whole when the file is opened: nearly every one that we
 * know is needed as soon as one function is asked for. zlib and zstd are unpacked here: libelf would copy all of it once
 * more.
 */
#include <dwarf.h>
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "symbols/dwarf/file.h"

static const char *const section_names[DWARF_SECTION_MAX] = {
	[DWARF_INFO] = "info",
	[DWARF_ABBREV] = "abbrev",
	[DWARF_STR] = "str",
	[DWARF_LINE_STR] = "line_str",
	[DWARF_ADDR] = "addr",
	[DWARF_RANGES] = "ranges",
	[DWARF_STR_OFFSETS] = "str_offsets",
	[DWARF_LINE] = "line",
	[DWARF_RNGLISTS] = "rnglists",
	[DWARF_CU_INDEX] = "cu_index",
};

/* The section headers of a file and their names. */
struct headers {
	const uint8_t *data;
	size_t len;
	const uint8_t *table;
	size_t count;
	struct dwarf_bytes names;
};

static bool is_inside(const struct headers *h, uint64_t off, uint64_t bytes)
{
	return off <= h->len && bytes <= h->len - off;
}

static Elf64_Shdr header(const struct headers *h, size_t i)
{
	Elf64_Shdr s;

	memcpy(&s, h->table + i * sizeof(s), sizeof(s));
	return s;
}

static int open_headers(struct headers *h, const struct symbol_image *image)
{
	Elf64_Ehdr e;
	Elf64_Shdr first, names;
	size_t names_index;

	*h = (struct headers){ .data = image->data, .len = image->len_bytes };
	if (!image->data || image->len_bytes < sizeof(e))
		return -ENODATA;
	memcpy(&e, image->data, sizeof(e));
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_ident[EI_DATA] != ELFDATA2LSB ||
	    !e.e_shoff)
		return -ENODATA;
	if (e.e_shentsize != sizeof(first) || !is_inside(h, e.e_shoff, sizeof(first)))
		return -EBADMSG;
	h->table = h->data + e.e_shoff;
	/* With too many sections for the file's header the numbers stand in the first one's (ELF-64, "Sections"). */
	first = header(h, 0);
	h->count = e.e_shnum ? e.e_shnum : first.sh_size;
	names_index = e.e_shstrndx == SHN_XINDEX ? first.sh_link : e.e_shstrndx;
	if (h->count > (h->len - e.e_shoff) / sizeof(first) || names_index >= h->count)
		return -EBADMSG;
	names = header(h, names_index);
	if (names.sh_type == SHT_NOBITS || !is_inside(h, names.sh_offset, names.sh_size))
		return -EBADMSG;
	h->names = (struct dwarf_bytes){ h->data + names.sh_offset, names.sh_size };
	return 0;
}

/* The section called @name; DWARF_SECTION_MAX: none of ours. Sections called .zdebug_* are packed in the oldest way. */
static enum dwarf_section name_section(const char *name, bool is_split, bool *is_zdebug)
{
	int i;

	*is_zdebug = !strncmp(name, ".zdebug_", 8);
	if (!*is_zdebug && strncmp(name, ".debug_", 7))
		return DWARF_SECTION_MAX;
	name += *is_zdebug ? 8 : 7;
	for (i = 0; i < DWARF_SECTION_MAX; i++) {
		size_t len = strlen(section_names[i]);
		/* A package's index has no ".dwo" behind its name. */
		const char *ending = is_split && i != DWARF_CU_INDEX ? ".dwo" : "";

		if (!strncmp(name, section_names[i], len) && !strcmp(name + len, ending))
			break;
	}
	return (enum dwarf_section)i;
}

/* Section @i if it is one of ours and has content. */
static enum dwarf_section find_section(const struct headers *h, size_t i, bool is_split, Elf64_Shdr *s, bool *is_zdebug)
{
	*s = header(h, i);
	if (s->sh_type == SHT_NOBITS || !s->sh_size || s->sh_name >= h->names.len ||
	    !memchr(h->names.data + s->sh_name, 0, h->names.len - s->sh_name))
		return DWARF_SECTION_MAX;
	return name_section((const char *)h->names.data + s->sh_name, is_split, is_zdebug);
}

/* --- packed sections --- */

/* Room for @bytes in section @which. */
static int make_room(struct dwarf_file *f, enum dwarf_section which, uint64_t bytes)
{
	void *room;

	if (!bytes || f->unpacked[which] || bytes > DWARF_MAX_UNPACKED_BYTES - f->unpacked_sum)
		return -EBADMSG;
	f->unpacked_sum += bytes;
	room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return -ENOMEM;
	f->unpacked[which] = room;
	f->unpacked_bytes[which] = bytes;
	return 0;
}

static int unpack_zlib(struct dwarf_file *f, enum dwarf_section which, const uint8_t *data, size_t len, uint64_t bytes)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)data };
	int r, error;

	/* deflate reaches 1:1032 at best. */
	if (bytes / 1032 > len)
		return -EBADMSG;
	error = make_room(f, which, bytes);
	if (error)
		return error;
	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	z.next_out = f->unpacked[which];
	do {
		uInt in = len > INT32_MAX ? INT32_MAX : (uInt)len;
		/* DWARF_MAX_UNPACKED_BYTES is less than zlib's numbers hold. */
		z.avail_out = (uInt)(bytes - z.total_out);
		z.avail_in = in;
		r = inflate(&z, Z_NO_FLUSH);
		len -= in - z.avail_in;
	} while (r == Z_OK && z.total_out < bytes && len);
	inflateEnd(&z);
	if (z.total_out != bytes || (r != Z_OK && r != Z_STREAM_END))
		return -EBADMSG;
	f->sections[which] = (struct dwarf_bytes){ f->unpacked[which], bytes };
	return 0;
}

static int unpack_zstd(struct dwarf_file *f, enum dwarf_section which, const uint8_t *data, size_t len, uint64_t bytes)
{
	int error = make_room(f, which, bytes);

	if (error)
		return error;
	if (ZSTD_decompress(f->unpacked[which], bytes, data, len) != bytes) /* an error is a number beyond any size */
		return -EBADMSG;
	f->sections[which] = (struct dwarf_bytes){ f->unpacked[which], bytes };
	return 0;
}

/* ELFCOMPRESS_ZSTD, which glibc's elf.h has since 2.37. */
enum { PACKED_ZSTD = 2 };

static int unpack_section(struct dwarf_file *f, enum dwarf_section which, const struct headers *h, const Elf64_Shdr *s)
{
	const uint8_t *data = h->data + s->sh_offset;
	Elf64_Chdr packed;

	if (s->sh_size < sizeof(packed))
		return -EBADMSG;
	memcpy(&packed, data, sizeof(packed));
	if (packed.ch_type == ELFCOMPRESS_ZLIB)
		return unpack_zlib(f, which, data + sizeof(packed), s->sh_size - sizeof(packed), packed.ch_size);
	if (packed.ch_type == PACKED_ZSTD)
		return unpack_zstd(f, which, data + sizeof(packed), s->sh_size - sizeof(packed), packed.ch_size);
	return -EBADMSG;
}

/* "ZLIB", the size in eight bytes, the most significant first, and a stream of zlib's. */
static int unpack_zdebug(struct dwarf_file *f, enum dwarf_section which, const uint8_t *data, size_t len)
{
	uint64_t bytes;

	if (len < 12 || memcmp(data, "ZLIB", 4))
		return -EBADMSG;
	memcpy(&bytes, data + 4, sizeof(bytes));
	return unpack_zlib(f, which, data + 12, len - 12, be64toh(bytes));
}

static int add_section(struct dwarf_file *f, enum dwarf_section which, const struct headers *h, const Elf64_Shdr *s,
		       bool is_zdebug)
{
	if (!is_inside(h, s->sh_offset, s->sh_size))
		return -EBADMSG;
	if (s->sh_flags & SHF_COMPRESSED)
		return unpack_section(f, which, h, s);
	if (is_zdebug)
		return unpack_zdebug(f, which, h->data + s->sh_offset, s->sh_size);
	f->sections[which] = (struct dwarf_bytes){ h->data + s->sh_offset, s->sh_size };
	return 0;
}

static void add_code(struct dwarf_file *f, const Elf64_Shdr *s)
{
	if (!(s->sh_flags & SHF_EXECINSTR) || !(s->sh_flags & SHF_ALLOC) || s->sh_size > UINT64_MAX - s->sh_addr)
		return;
	if (s->sh_addr < f->code_start)
		f->code_start = s->sh_addr;
	if (s->sh_addr + s->sh_size > f->code_end)
		f->code_end = s->sh_addr + s->sh_size;
}

/* Does the section start with a type unit of version 5? In a .dwo file each of those has a section of its own. */
static bool has_type_unit(const struct dwarf_bytes *info)
{
	size_t head = info->len >= 4 && !memcmp(info->data, "\xff\xff\xff\xff", 4) ? 12 : 4;

	return info->len > head + 2 && info->data[head] == 5 && !info->data[head + 1] &&
	       (info->data[head + 2] == DW_UT_type || info->data[head + 2] == DW_UT_split_type);
}

static void drop_section(struct dwarf_file *f, enum dwarf_section which)
{
	if (f->unpacked[which])
		munmap(f->unpacked[which], f->unpacked_bytes[which]);
	f->unpacked[which] = NULL;
	f->unpacked_bytes[which] = 0;
	f->sections[which] = DWARF_NO_BYTES;
}

int dwarf_file_open(struct dwarf_file *f, const struct symbol_image *image, bool is_split)
{
	struct headers h;
	int error = open_headers(&h, image);

	*f = (struct dwarf_file){ .code_start = UINT64_MAX };
	if (error)
		return error;
	for (int i = 0; i < DWARF_SECTION_MAX; i++)
		f->sections[i] = DWARF_NO_BYTES;
	for (size_t i = 1; i < h.count; i++) {
		Elf64_Shdr s;
		bool is_zdebug;
		enum dwarf_section which = find_section(&h, i, is_split, &s, &is_zdebug);

		add_code(f, &s);
		if (which == DWARF_INFO && has_type_unit(&f->sections[which]))
			drop_section(f, which);
		if (which == DWARF_SECTION_MAX || f->sections[which].len)
			continue;
		error = add_section(f, which, &h, &s, is_zdebug);
		if (error == -ENOMEM) {
			dwarf_file_close(f);
			return error;
		}
		f->is_broken |= error != 0;
	}
	if (f->sections[DWARF_INFO].len)
		return 0;
	error = f->is_broken ? -EBADMSG : -ENODATA;
	dwarf_file_close(f);
	return error;
}

void dwarf_file_close(struct dwarf_file *f)
{
	for (int i = 0; i < DWARF_SECTION_MAX; i++)
		drop_section(f, (enum dwarf_section)i);
	*f = (struct dwarf_file){ 0 };
}

bool dwarf_file_has(const struct symbol_image *image, enum dwarf_section which)
{
	struct headers h;
	Elf64_Shdr s;
	bool is_zdebug;

	if (open_headers(&h, image))
		return false;
	for (size_t i = 1; i < h.count; i++)
		if (find_section(&h, i, false, &s, &is_zdebug) == which)
			return true;
	return false;
}
