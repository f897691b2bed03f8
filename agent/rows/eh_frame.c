/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder over .eh_frame. libdw finds the section by the section headers, or without them by PT_GNU_EH_FRAME; a function
 * by .eh_frame_hdr's table, or without it by reading the section up to it. The same table tells where a gap ends. The state
 * owns libdw's handle. One thread.
 */
#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/cfi.h"

struct eh_frame {
	Dwarf_CFI *cfi;
	struct cfi_starts starts;
};

/* The header of .eh_frame_hdr in the form that linkers write: Linux Standard Base, "Exception Frames". */
struct eh_frame_hdr {
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	int32_t frame;
	uint32_t count;
};

/* The segment that @addr is in. */
static struct cfi_bytes find_bytes(const struct row_image *image, size_t headers, uint64_t addr)
{
	GElf_Phdr ph;

	for (size_t i = 0; i < headers; i++)
		if (gelf_getphdr(image->elf, (int)i, &ph) && ph.p_type == PT_LOAD && addr - ph.p_vaddr < ph.p_filesz &&
		    ph.p_offset <= image->len && ph.p_filesz <= image->len - ph.p_offset)
			return (struct cfi_bytes){ image->data + ph.p_offset, ph.p_vaddr, ph.p_filesz };
	return (struct cfi_bytes){ 0 };
}

static void find_starts(const struct row_image *image, struct cfi_starts *ret)
{
	struct eh_frame_hdr head;
	size_t count;
	GElf_Phdr ph;

	if (elf_getphdrnum(image->elf, &count))
		return;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(image->elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME)
			continue;
		if (ph.p_offset > image->len || image->len - ph.p_offset < sizeof(head))
			return;
		memcpy(&head, image->data + ph.p_offset, sizeof(head));
		if (head.version != 1 || head.frame_encoding != (DW_EH_PE_pcrel | DW_EH_PE_sdata4) ||
		    head.count_encoding != DW_EH_PE_udata4 || head.table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4) ||
		    head.count > (image->len - ph.p_offset - sizeof(head)) / CFI_START_BYTES)
			return;
		*ret = (struct cfi_starts){ image->data + ph.p_offset + sizeof(head), head.count, ph.p_vaddr,
					    find_bytes(image, count, ph.p_vaddr) };
		return;
	}
}

static int eh_frame_open(const struct row_image *image, void **ret)
{
	struct eh_frame *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->cfi = dwarf_getcfi_elf(image->elf);
	if (!e->cfi) {
		free(e);
		return -ENODATA;
	}
	find_starts(image, &e->starts);
	*ret = e;
	return 0;
}

static int eh_frame_build(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret)
{
	const struct eh_frame *e = state;

	return rows_cfi_build(e->cfi, &e->starts, start, end, rows, max, count_ret);
}

static int eh_frame_eval(void *state, uint64_t addr, const struct row_regs *in, row_read_fn read, void *arg,
			 struct row_regs *out)
{
	const struct eh_frame *e = state;

	return rows_cfi_eval(e->cfi, addr, in, read, arg, out);
}

static void eh_frame_close(void *state)
{
	struct eh_frame *e = state;

	dwarf_cfi_end(e->cfi);
	free(e);
}

const struct row_builder rows_eh_frame = {
	.name = ".eh_frame",
	.open = eh_frame_open,
	.build = eh_frame_build,
	.eval = eh_frame_eval,
	.close = eh_frame_close,
};
