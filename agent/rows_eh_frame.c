/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder over .eh_frame. libdw finds the section by the section headers, or without them by PT_GNU_EH_FRAME; a function
 * by .eh_frame_hdr's table, or without it by reading the section up to it. The state is libdw's handle. One thread.
 */
#include <errno.h>

#include "agent/rows_cfi.h"

static int eh_frame_open(const struct row_image *image, void **ret)
{
	*ret = dwarf_getcfi_elf(image->elf);
	return *ret ? 0 : -ENODATA;
}

static void eh_frame_close(void *cfi)
{
	dwarf_cfi_end(cfi);
}

const struct row_builder rows_eh_frame = {
	.name = ".eh_frame",
	.open = eh_frame_open,
	.build = rows_cfi_build,
	.eval = rows_cfi_eval,
	.close = eh_frame_close,
};
