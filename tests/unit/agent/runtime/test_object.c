/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects of CPython as the kernel copies them: whole, cut, and with lengths that lie. Each record ends where its
 * memory ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/object.h"
#include "base/cleanup.h"
#include "bpf/runtime/python_state.h"

enum { HEAD_BYTES = 224, FIRSTLINE_AT = 68, NO_CUT = 0 };

struct part {
	const void *bytes;
	uint16_t len;
	uint32_t state;
};

static const uint8_t head[HEAD_BYTES] = { [FIRSTLINE_AT] = 0x39, [FIRSTLINE_AT + 1] = 0x30 }; /* line 12345 */

static const struct part whole[OBJECT_PARTS] = {
	[PYTHON_PART_HEAD] = { head, sizeof(head), 0 },
	[PYTHON_PART_NAME] = { "Class.method", 12, 1 },
	[PYTHON_PART_FILE] = { "/srv/app.py", 11, 1 },
	[PYTHON_PART_LINES] = { "\x02\x05", 2, 0 },
};

static struct chain_state layout_of(uint16_t version, uint16_t bytecode)
{
	struct chain_state layout = { .runtime = RUNTIME_PYTHON };

	layout.offset[PYTHON_CODE_VERSION] = version;
	layout.offset[PYTHON_CODE_FIRSTLINE] = FIRSTLINE_AT;
	layout.offset[PYTHON_CODE_BYTECODE] = bytecode;
	return layout;
}

/* A record of @parts in a block of its length. */
static struct object_record *record_of(const struct part parts[OBJECT_PARTS], uint8_t is_cut)
{
	struct object_record *r;
	size_t bytes = sizeof(*r);
	uint8_t *at;

	for (int i = 0; i < OBJECT_PARTS; i++)
		bytes += parts[i].len;
	r = calloc(1, bytes);
	assert_non_null(r);
	r->hdr.size = (uint32_t)bytes;
	r->runtime = RUNTIME_PYTHON;
	r->is_cut = is_cut;
	at = (uint8_t *)(r + 1);
	for (int i = 0; i < OBJECT_PARTS; i++) {
		r->part_bytes[i] = parts[i].len;
		r->part_state[i] = parts[i].state;
		if (parts[i].len)
			memcpy(at, parts[i].bytes, parts[i].len);
		at += parts[i].len;
	}
	return r;
}

/* Reads @parts into @out, and opens what came of it. */
static void read_parts(const struct part parts[OBJECT_PARTS], uint8_t is_cut, uint16_t version, struct buf *out,
		       struct script *ret)
{
	AUTO_FREE struct object_record *r = record_of(parts, is_cut);
	struct chain_state layout = layout_of(version, version > 0x030a ? 192 : 0);

	buf_reset(out);
	buf_puts(out, "before");
	assert_int_equal(object_read(r, &layout, out), 0);
	assert_memory_equal(out->data, "before", 6);
	assert_int_equal(script_open(out->data + 6, out->len - 6, ret), 0);
}

static void check_texts(const struct script *s, const char *name, const char *file)
{
	assert_int_equal(s->head.name_bytes, strlen(name));
	assert_memory_equal(s->name, name, strlen(name));
	assert_int_equal(s->head.file_bytes, strlen(file));
	assert_memory_equal(s->file, file, strlen(file));
}

static void test_whole(void **state)
{
	struct buf out = BUF_EMPTY;
	struct script s;

	(void)state;
	read_parts(whole, NO_CUT, 0x030c, &out, &s);
	check_texts(&s, "Class.method", "/srv/app.py");
	assert_int_equal(s.head.first_line, 12345);
	assert_int_equal(s.head.line_bytes, 2);
	assert_memory_equal(s.line_table, "\x02\x05", 2);
	assert_false(s.head.is_cut);
	assert_string_equal(object_frame_type(RUNTIME_PYTHON), "cpython");
	assert_string_equal(object_frame_type(RUNTIME_ID_MAX), "");
	assert_string_equal(object_frame_type(UINT32_MAX), "");
	buf_fini(&out);
}

/* The table's kind, and what the place of a frame counts, by version. */
static void test_versions(void **state)
{
	static const struct {
		uint16_t version;
		enum script_lines lines;
		uint32_t scale, code_offset;
	} cases[] = {
		{ 0x0307, SCRIPT_LINES_LNOTAB, 1, 0 },	    { 0x0308, SCRIPT_LINES_LNOTAB, 1, 0 },
		{ 0x0309, SCRIPT_LINES_LNOTAB, 1, 0 },	    { 0x030a, SCRIPT_LINES_LINETABLE, 2, 0 },
		{ 0x030b, SCRIPT_LINES_LOCATIONS, 1, 192 }, { 0x030c, SCRIPT_LINES_LOCATIONS, 1, 192 },
		{ 0x030d, SCRIPT_LINES_LOCATIONS, 1, 192 }, { 0x030e, SCRIPT_LINES_LOCATIONS, 1, 192 },
	};
	struct buf out = BUF_EMPTY;
	struct script s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		read_parts(whole, NO_CUT, cases[i].version, &out, &s);
		assert_int_equal(s.head.lines, cases[i].lines);
		assert_int_equal(s.head.scale, cases[i].scale);
		assert_int_equal(s.head.code_offset, cases[i].code_offset);
	}
	/* { 2 bytes of code, 5 lines on } */
	read_parts(whole, NO_CUT, 0x0309, &out, &s);
	assert_int_equal(script_line(&s, 0), 12345);
	assert_int_equal(script_line(&s, 2), 12350);
	read_parts(whole, NO_CUT, 0x030a, &out, &s);
	assert_int_equal(script_line(&s, 0), 12350);
	assert_int_equal(script_line(&s, 1), 0);
	buf_fini(&out);
}

static void test_texts(void **state)
{
	static const uint16_t two[] = { 'f', 0x20ac };
	static const uint32_t four[] = { 'f', 0x1f600 };
	struct part parts[OBJECT_PARTS];
	struct buf out = BUF_EMPTY;
	struct script s;

	(void)state;
	memcpy(parts, whole, sizeof(parts));
	parts[PYTHON_PART_NAME] = (struct part){ two, sizeof(two), 2 };
	parts[PYTHON_PART_FILE] = (struct part){ four, sizeof(four), 4 };
	read_parts(parts, NO_CUT, 0x030b, &out, &s);
	check_texts(&s, "f\xe2\x82\xac", "f\xf0\x9f\x98\x80");
	parts[PYTHON_PART_NAME] = (struct part){ "\xe9t\xe9", 3, 1 };
	parts[PYTHON_PART_FILE] = (struct part){ "cut", 3, 2 };
	read_parts(parts, NO_CUT, 0x030b, &out, &s);
	check_texts(&s, "\xc3\xa9t\xc3\xa9", "\xe7\x95\xa3");
	for (uint32_t width = 5; width; width = width == 5 ? UINT32_MAX : 0) { /* none that there is */
		parts[PYTHON_PART_NAME] = (struct part){ "name", 4, width };
		parts[PYTHON_PART_FILE] = (struct part){ "file", 4, 0 };
		read_parts(parts, NO_CUT, 0x030b, &out, &s);
		check_texts(&s, "", "");
	}
	buf_fini(&out);
}

static void test_missing(void **state)
{
	struct chain_state layout = layout_of(0x030b, 192);
	struct part parts[OBJECT_PARTS];
	struct buf out = BUF_EMPTY;
	struct object_record *r;
	struct script s;

	(void)state;
	memcpy(parts, whole, sizeof(parts));
	parts[PYTHON_PART_NAME] = parts[PYTHON_PART_LINES] = (struct part){ NULL, 0, 1 };
	read_parts(parts, 1 << PYTHON_PART_NAME | 1 << PYTHON_PART_LINES, 0x0309, &out, &s);
	check_texts(&s, "", "/srv/app.py");
	assert_int_equal(s.head.line_bytes, 0);
	assert_int_equal(script_line(&s, 0), 0); /* a table that could not be read ... */
	read_parts(parts, 1 << PYTHON_PART_NAME, 0x0309, &out, &s);
	assert_int_equal(script_line(&s, 0), 12345); /* ... is none of a function of one line */
	parts[PYTHON_PART_FILE].len = 0;
	read_parts(parts, NO_CUT, 0x030b, &out, &s);
	check_texts(&s, "", "");
	assert_int_equal(s.head.first_line, 12345);
	/* a head that ends before the line is read */
	for (uint16_t len = FIRSTLINE_AT - 1; len <= FIRSTLINE_AT + 4; len++) {
		parts[PYTHON_PART_HEAD].len = len;
		read_parts(parts, 1 << PYTHON_PART_HEAD, 0x030b, &out, &s);
		assert_int_equal(s.head.first_line, len == FIRSTLINE_AT + 4 ? 12345 : 0);
	}
	parts[PYTHON_PART_HEAD].len = 1;
	read_parts(parts, 1 << PYTHON_PART_HEAD, 0x030b, &out, &s);
	assert_int_equal(s.head.first_line, 0);
	parts[PYTHON_PART_HEAD].len = 0;
	r = record_of(parts, 0xf);
	buf_reset(&out);
	assert_int_equal(object_read(r, &layout, &out), -EBADMSG);
	assert_int_equal(out.len, 0);
	free(r);
	buf_fini(&out);
}

/* Offsets that lead out of the head, from a file that says so. */
static void test_lying_layout(void **state)
{
	static const uint16_t offsets[] = { HEAD_BYTES - 3, HEAD_BYTES, 0x7fff, UINT16_MAX };
	AUTO_FREE struct object_record *r = record_of(whole, NO_CUT);
	struct chain_state layout = layout_of(UINT16_MAX, UINT16_MAX);
	struct buf out = BUF_EMPTY;
	struct script s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(offsets); i++) {
		layout.offset[PYTHON_CODE_FIRSTLINE] = offsets[i];
		buf_reset(&out);
		assert_int_equal(object_read(r, &layout, &out), 0);
		assert_int_equal(script_open(out.data, out.len, &s), 0);
		assert_int_equal(s.head.first_line, 0);
		assert_int_equal(script_line(&s, 0), 0);
	}
	buf_fini(&out);
}

static void test_lying_lengths(void **state)
{
	struct chain_state layout = layout_of(0x030b, 192);
	AUTO_FREE struct object_record *r = record_of(whole, NO_CUT);
	const struct object_record good = *r;
	struct buf out = BUF_EMPTY;

	(void)state;
	for (int i = 0; i < OBJECT_PARTS; i++) {
		r->part_bytes[i]++;
		assert_int_equal(object_read(r, &layout, &out), -EBADMSG);
		r->part_bytes[i] = UINT16_MAX;
		assert_int_equal(object_read(r, &layout, &out), -EBADMSG);
		*r = good;
	}
	for (uint32_t size = 0; size < good.hdr.size; size++) {
		r->hdr.size = size;
		assert_int_equal(object_read(r, &layout, &out), -EBADMSG);
	}
	*r = good;
	r->runtime = RUNTIME_ID_MAX;
	assert_int_equal(object_read(r, &layout, &out), -EBADMSG);
	r->runtime = UINT32_MAX;
	assert_int_equal(object_read(r, &layout, &out), -EBADMSG);
	assert_int_equal(out.len, 0);
	*r = good;
	assert_int_equal(object_read(r, &layout, &out), 0);
	out.failed = true; /* want of memory sticks */
	assert_int_equal(object_read(r, &layout, &out), -ENOMEM);
	buf_fini(&out);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	cmocka_unit_test(test_versions),     cmocka_unit_test(test_texts),
		cmocka_unit_test(test_missing), cmocka_unit_test(test_lying_layout), cmocka_unit_test(test_lying_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
