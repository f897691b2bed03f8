/* SPDX-License-Identifier: Apache-2.0 */
/* Compares text with a file under tests/golden. HEARTH_GOLDEN_WRITE=1 writes the file instead: read the diff before keeping
 * it. */
#ifndef HEARTH_TESTS_GOLDEN_H
#define HEARTH_TESTS_GOLDEN_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Appends to @out what @text has from its first @from up to the next @to, in lines that a diff can show. */
static inline void golden_part(struct buf *text, const char *from, const char *to, struct buf *out)
{
	const char *at = strstr(buf_text(text), from), *end = at ? strstr(at, to) : NULL;

	if (!end)
		fail_msg("no %s before a %s", from, to);
	for (; at && at < end; at++) {
		buf_putc(out, *at);
		if (*at == ',' && (at[-1] == ']' || at[-1] == '}'))
			buf_putc(out, '\n');
	}
	buf_putc(out, '\n');
}

/* Numbers with a point get six digits: the last ones are another C library's to choose. */
static inline void golden_rounded(struct buf *text)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	const char *at = buf_text(text);

	while (*at) {
		size_t len = isdigit((unsigned char)*at) ? strspn(at, "0123456789.e-") : 0;

		if (memchr(at, '.', len)) {
			char *end;
			double value = strtod(at, &end);

			buf_printf(&out, "%.6g", value);
			at = end;
		} else {
			len = len ? len : 1;
			buf_append(&out, at, len);
			at += len;
		}
	}
	buf_reset(text);
	buf_append(text, out.data, out.len);
}

#endif
