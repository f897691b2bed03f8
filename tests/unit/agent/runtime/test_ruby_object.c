/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts made of Ruby's code and methods, as the kernel copies them: what is shown of each, its lines, and records that
 * lie. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/object.h"
#include "base/cleanup.h"
#include "bpf/runtime/ruby_state.h"

enum { LINE_BYTES = 12, FIRST_LINE = 3 };
#define CODE 0xfffffff0u /* where the instructions begin: places wrap around */

static const struct chain_state layout = { .runtime = RUNTIME_RUBY,
					   .offset = { [RUBY_LINES_INDEX] = 136, [RUBY_LINE_BYTES] = LINE_BYTES } };
static const struct chain_state placed = { .runtime = RUNTIME_RUBY, .offset = { [RUBY_LINE_BYTES] = LINE_BYTES } };

static void add_part(struct buf *out, struct object_record *r, uint32_t part, const void *text, size_t len)
{
	buf_append(out, text, len);
	r->part_bytes[part] = (uint16_t)(r->part_bytes[part] + len);
}

struct made {
	const char *label, *base, *class;
	bool is_singleton;
	const char *file;
	uint32_t words; /* of instructions */
	const struct buf *lines;
	uint8_t cut;
};

static void make(struct buf *out, const struct made *m)
{
	struct object_record r = { .addr = 0x7f0000001000, .runtime = RUNTIME_RUBY, .is_cut = m->cut };
	AUTO(buf_fini) struct buf parts = BUF_EMPTY;

	add_part(&parts, &r, RUBY_PART_NAME, m->label, strlen(m->label));
	r.part_state[RUBY_PART_NAME] = (uint32_t)strlen(m->base) | (m->is_singleton ? RUBY_IS_SINGLETON : 0);
	if (m->class)
		add_part(&parts, &r, RUBY_PART_CLASS, m->class, strlen(m->class));
	r.part_state[RUBY_PART_CLASS] = CODE;
	add_part(&parts, &r, RUBY_PART_FILE, m->file, strlen(m->file));
	r.part_state[RUBY_PART_FILE] = FIRST_LINE;
	if (m->lines)
		add_part(&parts, &r, RUBY_PART_LINES, m->lines->data, m->lines->len);
	r.part_state[RUBY_PART_LINES] = m->words;
	r.hdr.size = (uint32_t)(sizeof(r) + parts.len);
	buf_append(out, &r, sizeof(r));
	buf_append(out, parts.data, parts.len);
	assert_false(out->failed);
}

static void open_script(const struct buf *record, const struct chain_state *as, struct buf *content, struct script *ret)
{
	assert_int_equal(object_read((const struct object_record *)record->data, as, content), 0);
	assert_int_equal(script_open(content->data, content->len, ret), 0);
}

static void test_names(void **state)
{
	static const struct {
		struct made made;
		const char *shown;
	} cases[] = {
		{ { .label = "f", .base = "f", .class = "Foo", .file = "a.rb" }, "Foo#f" },
		{ { .label = "f", .base = "f", .class = "A::Foo", .is_singleton = true, .file = "a.rb" }, "A::Foo.f" },
		{ { .label = "f", .base = "f", .file = "a.rb" }, "f" },
		{ { .label = "block in f", .base = "f", .class = "Foo", .file = "a.rb" }, "block in Foo#f" },
		{ { .label = "<compiled>", .base = "f", .class = "Foo", .file = "a.rb" }, "<compiled>" },
		{ { .label = "", .base = "<main>", .file = "a.rb", .cut = 1 << RUBY_PART_NAME }, "<main>" },
		{ { .label = "", .base = "method", .class = "Foo", .file = "a.rb", .cut = 1 << RUBY_PART_NAME }, "" },
		{ { .label = "block (2 levels) in f", .base = "f", .class = "Foo", .is_singleton = true, .file = "a.rb" },
		  "block (2 levels) in Foo.f" },
		{ { .label = "rescue in block in f", .base = "f", .class = "Foo", .file = "a.rb" },
		  "rescue in block in Foo#f" },
		{ { .label = "<main>", .base = "<main>", .class = "Foo", .file = "a.rb" }, "<main>" },
		{ { .label = "block in <class:Foo>", .base = "<class:Foo>", .class = "Foo", .file = "a.rb" },
		  "block in <class:Foo>" },
		{ { .label = "<=>", .base = "<=>", .class = "Foo", .file = "a.rb" }, "Foo#<=>" },
		{ { .label = "<", .base = "<", .class = "Foo", .file = "a.rb" }, "Foo#<" },
		{ { .label = "f", .base = "", .class = "Foo", .file = "a.rb" }, "f" },
		{ { .label = "f", .base = "longer", .class = "Foo", .file = "a.rb" }, "f" },
		{ { .label = "f\n\xff", .base = "f\n\xff", .class = "\u732b\x01", .file = "a.rb" },
		  "\u732b?#f?\xef\xbf\xbd" },
		{ { .label = "block in f", .base = "f", .class = "Foo", .file = "a.rb", .cut = 1 << RUBY_PART_NAME },
		  "block in f" },
		{ { .label = "", .base = "", .file = "" }, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf record = BUF_EMPTY;
		AUTO(buf_fini) struct buf content = BUF_EMPTY;
		struct script s;

		make(&record, &cases[i].made);
		open_script(&record, &layout, &content, &s);
		assert_int_equal(s.head.name_bytes, strlen(cases[i].shown));
		assert_memory_equal(s.name, cases[i].shown, s.head.name_bytes);
		assert_int_equal(s.head.file_bytes, strlen(cases[i].made.file));
		assert_memory_equal(s.file, cases[i].made.file, s.head.file_bytes);
		assert_int_equal(s.head.first_line, FIRST_LINE);
		assert_int_equal(script_line(&s, CODE), 0);
	}
}

/* --- lines --- */

/* Makes Ruby's index of the @cnt places @places: iseq.c, succ_index_table_create(). */
static void put_index(struct buf *out, const uint32_t *places, uint32_t cnt, uint32_t words)
{
	uint64_t first[6] = { 0 };
	uint32_t blocks = words > 54 ? (words - 54 + 511) / 512 : 0, rank = 0;

	for (uint32_t place = 0; place < 54; place++) {
		while (rank < cnt && places[rank] <= place)
			rank++;
		first[place / 9] |= (uint64_t)rank << place % 9 * 7;
	}
	buf_append(out, first, sizeof(first));
	for (uint32_t b = 0; b < blocks; b++) {
		struct {
			uint32_t rank, pad;
			uint64_t ranks, bits[8];
		} block = { .rank = rank };
		uint32_t inside = 0;

		for (uint32_t w = 0; w < 8; w++) {
			if (w)
				block.ranks |= (uint64_t)inside << (w - 1) * 9;
			for (uint32_t k = 0; k < 64; k++) {
				if (rank < cnt && places[rank] == 54 + b * 512 + w * 64 + k) {
					block.bits[w] |= 1ull << k;
					rank++;
					inside++;
				}
			}
		}
		buf_append(out, &block, sizeof(block));
	}
}

static void put_entry(struct buf *out, uint32_t first, uint32_t second)
{
	const uint32_t words[LINE_BYTES / 4] = { first, second };

	buf_append(out, words, sizeof(words));
}

static uint32_t line_at(const struct made *m, const struct chain_state *as, uint32_t place)
{
	AUTO(buf_fini) struct buf record = BUF_EMPTY;
	AUTO(buf_fini) struct buf content = BUF_EMPTY;
	struct script s;

	make(&record, m);
	open_script(&record, as, &content, &s);
	return script_line(&s, CODE + place);
}

static void test_lines(void **state)
{
	static const uint32_t places[] = { 0, 2, 9, 53, 54, 55, 117, 118, 565, 566, 1000 };
	enum { WORDS = 1100, COUNT = ARRAY_LEN(places) };
	AUTO(buf_fini) struct buf lines = BUF_EMPTY;
	struct made m = { .label = "f", .base = "f", .file = "a.rb", .words = WORDS, .lines = &lines };

	(void)state;
	put_index(&lines, places, COUNT, WORDS);
	for (uint32_t i = 0; i < COUNT; i++)
		put_entry(&lines, 100 + i, 7);
	for (uint32_t place = 0, i = 0; place < WORDS; place++) {
		while (i + 1 < COUNT && places[i + 1] <= place)
			i++;
		if (place < 130 || (place > 560 && place < 570) || place > 995)
			assert_int_equal(line_at(&m, &layout, place), 100 + i);
	}
	assert_int_equal(line_at(&m, &layout, WORDS), 0);	 /* behind the end */
	assert_int_equal(line_at(&m, &layout, UINT32_MAX), 100); /* the word before the first instruction */
	assert_int_equal(line_at(&m, &layout, UINT32_MAX - 1), 0);
	assert_int_equal(line_at(&m, &layout, INT32_MAX), 0);
	/* entries are missing: nothing is known behind the last */
	lines.len -= 2 * LINE_BYTES;
	assert_int_equal(line_at(&m, &layout, 565), 100 + 8);
	assert_int_equal(line_at(&m, &layout, 566), 0);
	assert_int_equal(line_at(&m, &layout, 1099), 0);
}

/* One entry has no index; entries with places have none either. */
static void test_other_lines(void **state)
{
	AUTO(buf_fini) struct buf one = BUF_EMPTY;
	AUTO(buf_fini) struct buf three = BUF_EMPTY;
	struct made m = { .label = "f", .base = "f", .file = "a.rb", .words = 20, .lines = &one };

	(void)state;
	put_entry(&one, 12, 0);
	assert_int_equal(line_at(&m, &layout, 0), 12);
	assert_int_equal(line_at(&m, &layout, 19), 12);
	assert_int_equal(line_at(&m, &layout, 20), 0);
	m.lines = &three;
	put_entry(&three, 0, 5);
	put_entry(&three, 4, 6);
	put_entry(&three, 9, 6);
	put_entry(&three, 3, 8); /* makes no sense */
	assert_int_equal(line_at(&m, &placed, 0), 5);
	assert_int_equal(line_at(&m, &placed, 3), 5);
	assert_int_equal(line_at(&m, &placed, 4), 6);
	assert_int_equal(line_at(&m, &placed, 19), 6);
	assert_int_equal(line_at(&m, &placed, 20), 0);
}

static void test_lies(void **state)
{
	AUTO(buf_fini) struct buf lines = BUF_EMPTY;
	struct made m = { .label = "f", .base = "f", .class = "Foo", .file = "a.rb", .words = UINT32_MAX, .lines = &lines };

	(void)state;
	put_index(&lines, (const uint32_t[]){ 0 }, 1, 54);
	lines.len = 1; /* too short for anything */
	assert_int_equal(line_at(&m, &layout, 0), 0);
	lines.len = 48;
	assert_int_equal(line_at(&m, &layout, 0), 0);
	for (uint32_t part = RUBY_PART_NAME; part <= RUBY_PART_LINES; part++) {
		AUTO(buf_fini) struct buf record = BUF_EMPTY;
		AUTO(buf_fini) struct buf content = BUF_EMPTY;
		struct object_record *r;

		make(&record, &m);
		r = (struct object_record *)record.data;
		r->part_bytes[part]++; /* one byte more than the record has */
		assert_int_equal(object_read(r, &layout, &content), -EBADMSG);
		assert_int_equal(content.len, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_other_lines),
		cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
