/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder for a program's entry point: code there that no table covers (the dynamic linker's start code) is the
 * outermost frame. The builder is asked last, so it only sees code that the tables left; the state is the image itself. One
 * thread.
 */
#include <errno.h>

#include "agent/rows/row_builder.h"

enum { ENTRY_CODE_BYTES = 128 }; /* glibc's _start and _dl_start_user together are about 80 */

static int entry_open(const struct row_image *image, void **ret)
{
	*ret = (void *)image; /* only read */
	return image->entry_gap ? 0 : -ENODATA;
}

static int entry_build(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret)
{
	const struct row_image *image = state;
	uint64_t len = image->entry_gap < ENTRY_CODE_BYTES ? image->entry_gap : ENTRY_CODE_BYTES;

	if (start < image->entry)
		start = image->entry;
	if (end > image->entry + len)
		end = image->entry + len;
	*count_ret = 0;
	if (start >= end)
		return 0;
	if (!max)
		return -ENOSPC;
	rows[(*count_ret)++] = (struct row){ .start = start, .end = end, .cfa = ROW_CFA_ROOT };
	return 0;
}

static void entry_close(void *state)
{
	(void)state;
}

const struct row_builder rows_entry = {
	.name = "entry point",
	.open = entry_open,
	.build = entry_build,
	.close = entry_close,
};
