/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perl's subs and files, as the kernel copied them. Names are those that Perl's own traces have (Carp): Package::sub, eval
 * {...}, eval '...', require FILE; the main program's name is its file's.
 */
#include <errno.h>

#include "agent/runtime/object.h"
#include "base/text/utf8.h"
#include "bpf/runtime/perl_state.h"

/* Appends @text without control characters; what is no UTF-8 is Latin-1. */
static void put_text(const uint8_t *text, size_t len, bool is_utf8, struct buf *out)
{
	size_t from = out->len;

	if (!is_utf8) {
		script_text(text, len, 1, out);
		return;
	}
	utf8_append_clean(out, text, len);
	for (; !out->failed && from < out->len; from++)
		if (out->data[from] < 0x20 || out->data[from] == 0x7f)
			out->data[from] = '?';
}

/* Appends the key @part of @bytes: its text, a zero and its flags; when it was cut only text. */
static void put_key(const struct object_record *r, uint32_t part, const uint8_t *text, struct buf *out)
{
	size_t len = r->part_bytes[part];
	bool is_utf8;

	if (r->is_cut >> part & 1 || len < 2) {
		is_utf8 = utf8_is_valid(text, utf8_cut(text, len, len));
	} else {
		is_utf8 = text[len - 1] & 1;
		len -= 2;
	}
	put_text(text, len, is_utf8, out);
}

static void put_file(const struct object_record *r, const uint8_t *text, struct buf *out)
{
	size_t len = r->part_bytes[PERL_PART_FILE];

	put_text(text, len, utf8_is_valid(text, len), out);
}

static void put_name(const struct object_record *r, const uint8_t *const *parts, struct buf *out)
{
	switch (PERL_FRAME_OF(r->addr)) {
	case PERL_FRAME_SUB:
		if (!r->part_bytes[PERL_PART_NAME])
			break; /* its name is lost, or in vain */
		if (r->part_bytes[PERL_PART_PACKAGE]) {
			put_key(r, PERL_PART_PACKAGE, parts[PERL_PART_PACKAGE], out);
			buf_puts(out, "::");
		}
		put_key(r, PERL_PART_NAME, parts[PERL_PART_NAME], out);
		break;
	case PERL_FRAME_MAIN:
		put_file(r, parts[PERL_PART_FILE], out);
		break;
	case PERL_FRAME_BLOCK:
		buf_puts(out, "eval {...}");
		break;
	case PERL_FRAME_TEXT:
		buf_puts(out, "eval '...'");
		break;
	default:
		buf_puts(out, "require ");
		put_file(r, parts[PERL_PART_FILE], out);
		break;
	}
}

int perl_object_read(const struct object_record *r, const struct chain_state *layout, struct buf *out)
{
	const uint8_t *parts[OBJECT_PARTS];
	struct script s = { .head = { .lines = SCRIPT_LINES_NONE, .scale = 1 } };
	struct buf text = BUF_EMPTY;

	(void)layout;
	if (object_parts(r, parts) || PERL_FRAME_OF(r->addr) >= PERL_FRAME_MAX)
		return -EBADMSG;
	put_name(r, parts, &text);
	s.head.name_bytes = (uint32_t)text.len;
	put_file(r, parts[PERL_PART_FILE], &text);
	s.head.file_bytes = (uint32_t)text.len - s.head.name_bytes;
	s.name = (const char *)text.data;
	s.file = text.len ? s.name + s.head.name_bytes : NULL;
	if (!text.failed)
		script_write(&s, out);
	out->failed |= text.failed;
	buf_fini(&text);
	return out->failed ? -ENOMEM : 0;
}
