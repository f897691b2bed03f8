/* SPDX-License-Identifier: Apache-2.0 */
/* Compares text with a file under tests/golden. HEARTH_GOLDEN_WRITE=1 writes the file instead: read the diff before keeping
 * it. */
#ifndef HEARTH_TESTS_GOLDEN_H
#define HEARTH_TESTS_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"

static inline void assert_golden(struct buf *text, const char *name)
{
	bool writing = getenv("HEARTH_GOLDEN_WRITE") != NULL;
	AUTO(buf_fini) struct buf expected = BUF_EMPTY;
	char path[256], chunk[4096];
	AUTO_FCLOSE FILE *f = NULL;
	size_t n;

	snprintf(path, sizeof(path), "%s/golden/%s", TEST_DATA, name);
	f = fopen(path, writing ? "w" : "r");
	if (!f)
		fail_msg("cannot open %s", path);
	if (writing) {
		assert_int_equal(fwrite(text->data, 1, text->len, f), text->len);
		return;
	}
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_append(&expected, chunk, n);
	assert_string_equal(buf_text(text), buf_text(&expected));
}

#endif
