/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of .NET in memory: PE files (Microsoft's "PE Format"), for one kind of CPU or for any. An image is mapped by its
 * sections, or as the file is: the first word of its metadata tells which. No state.
 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"

enum {
	MAX_SECTIONS = 96,
	MAX_DEBUG_ENTRIES = 16,
	MAX_PATH_BYTES = 1024,
	SIGNATURE = 0x424a5342, /* BSJB */
	DIRECTORY_DEBUG = 6,
	DIRECTORY_CLR = 14,
	DEBUG_ENTRY_BYTES = 28,
	DEBUG_CODEVIEW = 2,
	DEBUG_EMBEDDED = 17,
	PORTABLE = 0x504d,     /* the entry's minor version, "PM" */
	CODEVIEW = 0x53445352, /* RSDS, a GUID, a number, and the path */
	EMBEDDED = 0x4244504d, /* MPDB, how long it is unpacked, and it */
	EMBEDDED_HEAD = 8,
};

/* The address of the @rva of an image as the file is. */
static uint64_t flat_address(const struct dotnet_image *im, uint32_t rva)
{
	uint32_t count = code_read_u16(im->m, im->head + 6), section[4]; /* size, address, size in the file, offset there */
	uint64_t at = im->head + 24 + code_read_u16(im->m, im->head + 20);

	for (uint32_t i = 0; i < count && i < MAX_SECTIONS; i++)
		if (!code_read(im->m, at + 40ull * i + 8, section, sizeof(section)) && rva >= section[1] &&
		    rva - section[1] < section[2])
			return im->base + section[3] + (rva - section[1]);
	return im->base + rva;
}

uint64_t dotnet_image_at(const struct dotnet_image *im, uint32_t rva)
{
	return im->is_flat ? flat_address(im, rva) : im->base + rva;
}

int dotnet_image_open(struct code_memory *m, uint64_t base, struct dotnet_image *ret)
{
	uint32_t rva, magic;

	*ret = (struct dotnet_image){ .m = m, .base = base };
	ret->head = base + code_read_u32(m, base + 0x3c);
	magic = code_read_u16(m, ret->head + 24);
	if (code_read_u16(m, base) != 0x5a4d || code_read_u32(m, ret->head) != 0x4550 || (magic != 0x20b && magic != 0x10b))
		return dotnet_unreadable(m, -EBADMSG);
	ret->directories = ret->head + 24 + (magic == 0x20b ? 112 : 96); /* 0x10b: compiled for any CPU */
	rva = code_read_u32(m, ret->directories + 8 * DIRECTORY_CLR);
	for (int is_flat = 0; rva && is_flat < 2; is_flat++) {
		ret->is_flat = is_flat;
		ret->clr = dotnet_image_at(ret, rva);
		ret->root = dotnet_image_at(ret, code_read_u32(m, ret->clr + 8));
		if (code_read_u32(m, ret->root) == SIGNATURE)
			return 0;
	}
	return dotnet_unreadable(m, -EBADMSG);
}

/* The name behind the last slash or backslash of the path at @addr: compilers of any system write it. */
static int read_name(struct code_memory *m, uint64_t addr, char name[static CODE_NEED_NAME])
{
	char path[MAX_PATH_BYTES], *from = path;
	int error = code_read_text(m, addr, path, sizeof(path));

	if (error)
		return error;
	for (char *at = path; *at; at++)
		if (*at == '/' || *at == '\\')
			from = at + 1;
	if (!*from || strlen(from) >= CODE_NEED_NAME)
		return -ENOENT;
	memcpy(name, from, strlen(from) + 1);
	return 0;
}

/* An entry of the debug directory. */
struct debug {
	uint32_t stamp, kind, bytes; /* of its data */
	uint16_t minor;
	uint64_t data;
};

/* The next entry of @kind whose data begin with @signature, from number *@i on, which goes behind it. False: there is none.
 */
static bool next_debug(const struct dotnet_image *im, uint32_t *i, uint32_t kind, uint32_t signature, struct debug *ret)
{
	uint32_t rva = code_read_u32(im->m, im->directories + 8 * DIRECTORY_DEBUG);
	uint32_t count = code_read_u32(im->m, im->directories + 8 * DIRECTORY_DEBUG + 4) / DEBUG_ENTRY_BYTES;

	while (rva && *i < count && *i < MAX_DEBUG_ENTRIES) {
		uint64_t at = dotnet_image_at(im, rva + (*i)++ * DEBUG_ENTRY_BYTES);

		ret->stamp = code_read_u32(im->m, at + 4);
		ret->minor = code_read_u16(im->m, at + 10);
		ret->kind = code_read_u32(im->m, at + 12);
		ret->bytes = code_read_u32(im->m, at + 16);
		ret->data = dotnet_image_at(im, code_read_u32(im->m, at + 20));
		if (ret->kind == kind && code_read_u32(im->m, ret->data) == signature)
			return true;
	}
	return false;
}

int dotnet_image_pdb(const struct dotnet_image *im, struct code_need *ret)
{
	struct debug d;

	memset(ret, 0, sizeof(*ret));
	ret->base = im->base;
	for (uint32_t i = 0; next_debug(im, &i, DEBUG_CODEVIEW, CODEVIEW, &d);) {
		if (d.minor != PORTABLE)
			continue;
		/* the id is the GUID, and the entry's stamp behind it */
		if (code_read(im->m, d.data + 4, ret->id, 16))
			break;
		memcpy(ret->id + 16, &d.stamp, sizeof(d.stamp));
		return read_name(im->m, d.data + 24, ret->name);
	}
	return dotnet_unreadable(im->m, -ENOENT);
}

int dotnet_image_embedded(const struct dotnet_image *im, struct dotnet_embedded *ret)
{
	struct debug d;
	uint32_t i = 0;

	if (!next_debug(im, &i, DEBUG_EMBEDDED, EMBEDDED, &d) || d.bytes <= EMBEDDED_HEAD)
		return dotnet_unreadable(im->m, -ENOENT);
	ret->at = d.data + EMBEDDED_HEAD;
	ret->packed_bytes = d.bytes - EMBEDDED_HEAD;
	ret->bytes = code_read_u32(im->m, d.data + 4);
	return dotnet_unreadable(im->m, 0);
}
