/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads ranges of code out of .eh_frame: a compiler describes each function's frame there, with its first address and its
 * length, whether the function has a name or not. A range has no name; its length stands for it, as "+d80", of which a file
 * has few different ones. Linux Standard Base, "Exception Frames", has the format.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "symbols/dwarf/bytes.h"
#include "symbols/elf_image.h"
#include "symbols/code/source.h"

enum { MAX_RANGE_BYTES = 16 << 20 /* the largest functions known have some 2 MB */ };

/* How far a part of the section is read. @failed: something went beyond its end. */
struct bytes {
	struct dwarf_cursor rest;
	bool failed;
};

static uint64_t take(struct bytes *b, unsigned len)
{
	uint64_t value = 0;

	b->failed |= !dwarf_take(&b->rest, len, &value);
	return value;
}

static void skip_leb(struct bytes *b)
{
	b->failed |= !dwarf_skip_leb(&b->rest);
}

/* A pointer's number by the form of @encoding; what it is relative to is not added. */
static uint64_t take_form(struct bytes *b, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return take(b, 8);
	case DW_EH_PE_udata2:
		return take(b, 2);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)(int16_t)take(b, 2);
	case DW_EH_PE_udata4:
		return take(b, 4);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int64_t)(int32_t)take(b, 4);
	default:
		b->failed = true;
		return 0;
	}
}

/* The encoding of the addresses of functions that belong to the CIE at @b. False: one that is not known. */
static bool read_cie(struct bytes b, uint8_t *encoding_ret)
{
	bool is_long = take(&b, 4) == UINT32_MAX;
	bool is_cie = (!is_long || take(&b, 8)) && !take(&b, 4);
	uint64_t version = take(&b, 1);
	const char *augmentation = (const char *)b.rest.at;

	*encoding_ret = DW_EH_PE_absptr;
	if (b.failed || !is_cie || (version != 1 && version != 3) || !dwarf_skip_string(&b.rest))
		return false;
	skip_leb(&b); /* code alignment */
	skip_leb(&b); /* data alignment */
	if (version == 1)
		take(&b, 1);
	else
		skip_leb(&b);
	if (*augmentation != 'z')
		return !*augmentation && !b.failed;
	skip_leb(&b);
	for (augmentation++; *augmentation && !b.failed; augmentation++) {
		if (*augmentation == 'R')
			*encoding_ret = (uint8_t)take(&b, 1);
		else if (*augmentation == 'L')
			take(&b, 1);
		else if (*augmentation == 'P')
			(void)take_form(&b, (uint8_t)take(&b, 1));
		else if (*augmentation != 'S' && *augmentation != 'B')
			return false;
	}
	return !b.failed && ((*encoding_ret & 0x70) == 0 || (*encoding_ret & 0x70) == DW_EH_PE_pcrel) &&
	       !(*encoding_ret & DW_EH_PE_indirect);
}

/* The node that stands for all ranges of @len bytes. */
static int node_of(struct map *nodes, uint64_t len, struct code_names *names, uint32_t *ret)
{
	uintptr_t known = (uintptr_t)map_get(nodes, len);
	char text[20];
	int text_len;

	if (known) {
		*ret = (uint32_t)(known - 1);
		return 0;
	}
	text_len = snprintf(text, sizeof(text), "+%llx", (unsigned long long)len);
	*ret = code_names_node(names, CODE_NONE, code_names_function(names, text, (size_t)text_len, 0), CODE_NONE, 0, 0);
	return *ret == CODE_NONE ? 0 : map_put(nodes, len, (void *)((uintptr_t)*ret + 1));
}

/* The function described at @b, which is behind the length and the distance to its CIE, and loaded to @addr. */
static int add_range(struct bytes b, uint64_t addr, uint8_t encoding, struct map *nodes, struct code_names *names)
{
	uint64_t base = (encoding & 0x70) == DW_EH_PE_pcrel ? addr : 0;
	uint64_t start = base + take_form(&b, encoding), len = take_form(&b, encoding & 0x07);
	uint32_t node;
	int error;

	/* what the linker dropped has the address 0 */
	if (b.failed || !start || start == base || !len || len > MAX_RANGE_BYTES || start > UINT64_MAX - len)
		return 0;
	error = node_of(nodes, len, names, &node);
	if (!error)
		code_names_range(names, start, start + len, node);
	return error;
}

static int add_section(const uint8_t *data, size_t len, uint64_t addr, struct code_names *names)
{
	AUTO(map_fini) struct map nodes = { 0 };
	struct bytes all = { { data, data + len }, false };
	const uint8_t *last_cie = NULL;
	uint8_t encoding = 0;
	bool is_known = false;
	int error = 0;

	while (!error && dwarf_left(&all.rest)) {
		uint64_t size = take(&all, 4), id;
		struct bytes entry;
		const uint8_t *id_at;

		if (size == UINT32_MAX)
			size = take(&all, 8);
		if (all.failed || !size)
			return all.failed ? -EBADMSG : 0; /* a terminator */
		id_at = all.rest.at;
		if (!dwarf_skip(&all.rest, size))
			return -EBADMSG;
		entry = (struct bytes){ { id_at, all.rest.at }, false };
		id = take(&entry, 4);
		if (!id || entry.failed)
			continue; /* a CIE is read when a function is of it */
		if (id > (uint64_t)(id_at - data))
			return -EBADMSG;
		if (id_at - id != last_cie) {
			last_cie = id_at - id;
			is_known = read_cie((struct bytes){ { last_cie, data + len }, false }, &encoding);
		}
		if (is_known)
			error = add_range(entry, addr + (uint64_t)(entry.rest.at - data), encoding, &nodes, names);
	}
	return error;
}

int source_unwind(const struct symbol_files *files, struct code_names *names)
{
	const uint8_t *data;
	struct elf_image im;
	Elf64_Shdr sh;
	size_t len;

	if (elf_image_open(files->program.data, files->program.len_bytes, &im) || !elf_image_find(&im, ".eh_frame", &sh))
		return -ENODATA;
	data = elf_image_bytes(&im, &sh, &len);
	if (!data)
		return -EBADMSG;
	code_names_begin(names, CODE_SOURCE_UNWIND);
	return add_section(data, len, sh.sh_addr, names);
}
