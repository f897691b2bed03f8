/* SPDX-License-Identifier: Apache-2.0 */
/* PHP's functions (zend_function), as the kernel copied them. */
#include <errno.h>
#include <string.h>

#include "agent/runtime/object.h"
#include "bpf/runtime/php_state.h"

/* Adds a part's text up to its first NUL, behind which the name of a class without a name has an address. */
static void add_text(const struct object_record *r, const uint8_t *const *parts, int part, struct buf *text)
{
	script_utf8(parts[part], strnlen((const char *)parts[part], r->part_bytes[part]), text);
}

/* A script's own code has no name: it is called by its file. */
static void add_file_name(const struct object_record *r, const uint8_t *const *parts, struct buf *text)
{
	const uint8_t *file = parts[PHP_PART_FILE], *slash = memrchr(file, '/', r->part_bytes[PHP_PART_FILE]);
	size_t from = slash ? (size_t)(slash + 1 - file) : 0;

	script_utf8(file + from, r->part_bytes[PHP_PART_FILE] - from, text);
}

static void add_name(const struct object_record *r, const uint8_t *const *parts, struct buf *text)
{
	if (!r->part_bytes[PHP_PART_NAME]) {
		add_file_name(r, parts, text);
		return;
	}
	if (r->part_bytes[PHP_PART_CLASS]) {
		add_text(r, parts, PHP_PART_CLASS, text);
		buf_puts(text, "::");
	}
	add_text(r, parts, PHP_PART_NAME, text);
}

int php_object_read(const struct object_record *r, const struct chain_state *layout, struct buf *out)
{
	const uint8_t *parts[OBJECT_PARTS];
	struct script s = { 0 };
	struct buf text = BUF_EMPTY;
	uint32_t name_bytes;
	bool is_internal;

	if (object_parts(r, parts) || !r->part_bytes[PHP_PART_HEAD])
		return -EBADMSG;
	is_internal = (object_word(r, parts, PHP_PART_HEAD, PHP_FUNCTION_TYPE) & 0xff) == PHP_INTERNAL_FUNCTION;
	add_name(r, parts, &text);
	name_bytes = (uint32_t)text.len;
	script_utf8(parts[PHP_PART_FILE], r->part_bytes[PHP_PART_FILE], &text);
	s.head = (struct script_head){
		.first_line = is_internal ? 0 : object_word(r, parts, PHP_PART_HEAD, layout->offset[PHP_FUNCTION_LINE]),
		.name_bytes = name_bytes,
		.file_bytes = (uint32_t)text.len - name_bytes,
		.lines = SCRIPT_LINES_NONE,
	};
	s.name = (const char *)text.data;
	s.file = text.len ? s.name + name_bytes : NULL;
	if (!text.failed)
		script_write(&s, out);
	out->failed |= text.failed;
	buf_fini(&text);
	return out->failed ? -ENOMEM : 0;
}
