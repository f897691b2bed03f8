/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts made of Perl's subs, evals and files, as the kernel copies them: what is shown of each, and records that lie. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/object.h"
#include "base/cleanup.h"
#include "bpf/runtime/perl_state.h"

enum { SOME_ADDR = 0x55d0c0ffee00, KEY_TAIL = 2 };

static const struct chain_state layout = { .runtime = RUNTIME_PERL };

struct key {
	const char *text;
	char flags; /* 1: UTF-8 */
};

static void add_part(struct buf *out, struct object_record *r, uint32_t part, const char *text, size_t len)
{
	buf_append(out, text, len);
	r->part_bytes[part] = (uint16_t)(r->part_bytes[part] + len);
}

static void add_key(struct buf *out, struct object_record *r, uint32_t part, struct key key)
{
	if (!key.text)
		return;
	add_part(out, r, part, key.text, strlen(key.text));
	if (!(r->is_cut >> part & 1))
		add_part(out, r, part, (const char[]){ 0, key.flags }, KEY_TAIL);
}

/* Appends the record of a frame to @out. @cut: bits of parts that end early. */
static void make(struct buf *out, enum perl_frame frame, struct key name, struct key package, const char *file, uint8_t cut)
{
	struct object_record r = { .addr = PERL_OBJECT(frame, SOME_ADDR), .runtime = RUNTIME_PERL, .is_cut = cut };
	AUTO(buf_fini) struct buf parts = BUF_EMPTY;

	add_key(&parts, &r, PERL_PART_NAME, name);
	add_key(&parts, &r, PERL_PART_PACKAGE, package);
	add_part(&parts, &r, PERL_PART_FILE, file, strlen(file));
	r.hdr.size = (uint32_t)(sizeof(r) + parts.len);
	buf_append(out, &r, sizeof(r));
	buf_append(out, parts.data, parts.len);
	assert_false(out->failed);
}

static void expect(const struct buf *record, const char *name, const char *file)
{
	AUTO(buf_fini) struct buf content = BUF_EMPTY;
	struct script s;

	assert_int_equal(object_read((const struct object_record *)record->data, &layout, &content), 0);
	assert_int_equal(script_open(content.data, content.len, &s), 0);
	assert_int_equal(s.head.name_bytes, strlen(name));
	assert_memory_equal(s.name, name, strlen(name));
	assert_int_equal(s.head.file_bytes, strlen(file));
	assert_memory_equal(s.file, file, strlen(file));
	assert_int_equal(s.head.first_line, 0);
	assert_int_equal(script_line(&s, 77), 77);
	assert_int_equal(script_line(&s, 0), 0);
}

static void test_frames(void **state)
{
	static const struct {
		enum perl_frame frame;
		struct key name, package;
		const char *file, *shown, *shown_file;
	} cases[] = {
		{ PERL_FRAME_SUB, { "f", 0 }, { "main", 0 }, "a.pl", "main::f", "a.pl" },
		{ PERL_FRAME_SUB, { "g", 0 }, { "My::Class", 0 }, "/a/My/Class.pm", "My::Class::g", "/a/My/Class.pm" },
		{ PERL_FRAME_SUB, { "__ANON__", 0 }, { "main", 0 }, "(eval 3)", "main::__ANON__", "(eval 3)" },
		{ PERL_FRAME_SUB, { "f", 0 }, { NULL, 0 }, "a.pl", "f", "a.pl" },
		{ PERL_FRAME_SUB, { NULL, 0 }, { "main", 0 }, "a.pl", "", "a.pl" },
		{ PERL_FRAME_SUB, { "gr\xfc\xdf", 0 }, { "main", 0 }, "a.pl", "main::gr\u00fc\u00df", "a.pl" },
		{ PERL_FRAME_SUB, { "gr\u00fc\u00df", 1 }, { "\u732b", 1 }, "a.pl", "\u732b::gr\u00fc\u00df", "a.pl" },
		{ PERL_FRAME_SUB, { "a\nb\x7f", 1 }, { "m\t", 0 }, "a\r.pl", "m?::a?b?", "a?.pl" },
		{ PERL_FRAME_MAIN, { NULL, 0 }, { NULL, 0 }, "/bin/a.pl", "/bin/a.pl", "/bin/a.pl" },
		{ PERL_FRAME_MAIN, { NULL, 0 }, { NULL, 0 }, "\xe4.pl", "\u00e4.pl", "\u00e4.pl" },
		{ PERL_FRAME_BLOCK, { NULL, 0 }, { NULL, 0 }, "a.pl", "eval {...}", "a.pl" },
		{ PERL_FRAME_TEXT, { NULL, 0 }, { NULL, 0 }, "(eval 7)", "eval '...'", "(eval 7)" },
		{ PERL_FRAME_FILE, { NULL, 0 }, { NULL, 0 }, "/a/B.pm", "require /a/B.pm", "/a/B.pm" },
		{ PERL_FRAME_BLOCK, { NULL, 0 }, { NULL, 0 }, "", "eval {...}", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf record = BUF_EMPTY;

		make(&record, cases[i].frame, cases[i].name, cases[i].package, cases[i].file, 0);
		expect(&record, cases[i].shown, cases[i].shown_file);
	}
}

/* Of a name that is too long there are no flags: it is UTF-8 as far as it can be. */
static void test_cut(void **state)
{
	AUTO(buf_fini) struct buf latin = BUF_EMPTY;
	AUTO(buf_fini) struct buf utf8 = BUF_EMPTY;

	(void)state;
	make(&latin, PERL_FRAME_SUB, (struct key){ "\xfc!", 0 }, (struct key){ "main", 0 }, "a.pl", 1 << PERL_PART_NAME);
	expect(&latin, "main::\u00fc!", "a.pl");
	make(&utf8, PERL_FRAME_SUB, (struct key){ "\u00fc\u732b", 1 }, (struct key){ "m", 0 }, "a.pl", 1 << PERL_PART_NAME);
	expect(&utf8, "m::\u00fc\u732b", "a.pl");
}

static int read_status(const struct buf *record)
{
	AUTO(buf_fini) struct buf content = BUF_EMPTY;
	int status = object_read((const struct object_record *)record->data, &layout, &content);

	assert_true(!status || !content.len);
	return status;
}

static void test_lies(void **state)
{
	(void)state;
	for (uint32_t part = PERL_PART_NAME; part <= PERL_PART_FILE; part++) {
		AUTO(buf_fini) struct buf record = BUF_EMPTY;
		struct object_record *r;

		make(&record, PERL_FRAME_SUB, (struct key){ "f", 0 }, (struct key){ "main", 0 }, "a.pl", 0);
		r = (struct object_record *)record.data;
		assert_int_equal(read_status(&record), 0);
		r->part_bytes[part]++; /* one byte more than the record has */
		assert_int_equal(read_status(&record), -EBADMSG);
		r->part_bytes[part]--;
		r->addr = PERL_OBJECT(PERL_FRAME_MAX, SOME_ADDR);
		assert_int_equal(read_status(&record), -EBADMSG);
	}
}

/* A key shorter than its tail is all text. */
static void test_short_key(void **state)
{
	AUTO(buf_fini) struct buf record = BUF_EMPTY;
	struct object_record *r;

	(void)state;
	make(&record, PERL_FRAME_SUB, (struct key){ NULL, 0 }, (struct key){ NULL, 0 }, "xa.pl", 0);
	r = (struct object_record *)record.data;
	r->part_bytes[PERL_PART_NAME] = 1;
	r->part_bytes[PERL_PART_FILE]--;
	expect(&record, "x", "a.pl");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_short_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
