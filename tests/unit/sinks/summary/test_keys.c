/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of the summary, one at a time: what each changes, and where it stops. The table is never looked at but by what it
 * holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "sinks/summary/state.h"
#include "tests/unit/proto/text_profiles.h"

/* Ten functions; by self weight f0 comes first. */
static const char ten_functions[] = "app;main@app;f0@a.so 20\napp;main@app;f1@a.so 18\napp;main@app;f2@b.so 16\n"
				    "app;main@app;f3@b.so 14\napp;main@app;f4@c.so 12\napp;main@app;f5@c.so 10\n"
				    "other;start@x;f6@d.so 8\nother;start@x;f7@d.so 6\nother;start@x;f8@e.so 4\n";
enum { TEN = 11 /* with main and start, which have no weight of their own */ };

static const char *const all_kinds[] = { "samples", "off_cpu", "memory", NULL };

struct fixture {
	char *text;
	size_t len;
	FILE *out;
	struct sink *sink;
	struct summary *s;
};

static void setup_kinds(struct fixture *f, const char *const *kinds, const char *kind)
{
	struct summary_options options = {
		.live = true, .keys = true, .rows = 9, .columns = 60, .kinds = kinds, .kind = kind
	};
	struct profiles *p = text_profiles(ten_functions, 0);

	*f = (struct fixture){ .text = NULL };
	f->out = options.out = open_memstream(&f->text, &f->len);
	assert_non_null(f->out);
	assert_int_equal(sink_summary_new(&options, &f->sink), 0);
	f->s = (struct summary *)f->sink;
	assert_int_equal(sink_consume(f->sink, p, NULL), 0);
	profiles_put(p);
}

static void setup(struct fixture *f)
{
	setup_kinds(f, NULL, NULL);
}

static void finish(struct fixture *f)
{
	sink_free(f->sink);
	fclose(f->out);
	free(f->text);
}

/* Whether the keys ask for the end. */
static bool press(struct fixture *f, const char *keys)
{
	bool quit = true;

	assert_int_equal(sink_summary_keys(f->sink, keys, strlen(keys), &quit), 0);
	return quit;
}

static const char *selected(const struct fixture *f)
{
	return f->s->rows[f->s->selected].name;
}

static void test_down_and_up(void **state)
{
	static const char *const down[] = { "j", "\x1b[B", "\x1bOB" }, *const up[] = { "k", "\x1b[A", "\x1bOA" };
	struct fixture f;

	(void)state;
	setup(&f);
	assert_int_equal(f.s->row_cnt, TEN);
	for (size_t i = 0; i < ARRAY_LEN(down); i++) {
		assert_int_equal(f.s->selected, 0);
		press(&f, down[i]);
		assert_int_equal(f.s->selected, 1);
		press(&f, up[i]);
	}
	assert_int_equal(f.s->selected, 0);
	finish(&f);
}

static void test_stops_at_both_ends(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "k");
	assert_int_equal(f.s->selected, 0);
	press(&f, "jjjjjjjjjj");
	assert_int_equal(f.s->selected, TEN - 1);
	press(&f, "j");
	assert_int_equal(f.s->selected, TEN - 1);
	press(&f, "k");
	assert_int_equal(f.s->selected, TEN - 2);
	finish(&f);
}

static void test_first_and_last(void **state)
{
	static const char *const last[] = { "G", "\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~" }, *const first[] = {
		"g", "\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~"
	};
	struct fixture f;

	(void)state;
	setup(&f);
	for (size_t i = 0; i < ARRAY_LEN(last); i++) {
		press(&f, last[i]);
		assert_int_equal(f.s->selected, TEN - 1);
		press(&f, first[i]);
		assert_int_equal(f.s->selected, 0);
	}
	finish(&f);
}

/* A page is as many rows as stood on the screen. */
static void test_pages(void **state)
{
	struct fixture f;
	uint32_t page;

	(void)state;
	setup(&f);
	page = f.s->page;
	assert_in_range(page, 2, TEN - 2);
	press(&f, "\x1b[6~");
	assert_int_equal(f.s->selected, page);
	press(&f, "j\x1b[5~");
	assert_int_equal(f.s->selected, 1);
	press(&f, "\x1b[5~");
	assert_int_equal(f.s->selected, 0);
	press(&f, "G\x1b[6~");
	assert_int_equal(f.s->selected, TEN - 1);
	finish(&f);
}

static void test_views(void **state)
{
	static const struct {
		const char *key;
		enum summary_show show;
	} keys[] = {
		{ "m", SHOW_MODULES },	{ "p", SHOW_PROCESSES },  { "f", SHOW_FUNCTIONS },
		{ "\t", SHOW_MODULES }, { "\t", SHOW_PROCESSES }, { "\t", SHOW_FUNCTIONS },
	};
	struct fixture f;

	(void)state;
	setup(&f);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		press(&f, "j");
		assert_int_equal(f.s->selected, 1);
		press(&f, keys[i].key);
		assert_int_equal(f.s->show, keys[i].show);
		assert_int_equal(f.s->selected, 0);
		assert_int_equal(f.s->first, 0);
	}
	finish(&f);
}

static void test_orders(void **state)
{
	static const struct {
		const char *key;
		enum summary_sort sort;
		const char *first; /* row */
	} keys[] = {
		{ "t", SORT_TOTAL, "main" }, { "n", SORT_NAME, "f0" }, { "o", SORT_OVERALL, "f0" }, { "s", SORT_SELF, "f0" }
	};
	struct fixture f;

	(void)state;
	setup(&f);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		press(&f, "G");
		press(&f, keys[i].key);
		assert_int_equal(f.s->sort, keys[i].sort);
		assert_string_equal(selected(&f), keys[i].first);
	}
	finish(&f);
}

static void test_reversed(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "n");
	press(&f, "r");
	assert_true(f.s->is_reversed);
	assert_string_equal(f.s->rows[0].name, "start");
	press(&f, "r");
	assert_false(f.s->is_reversed);
	assert_string_equal(f.s->rows[0].name, "f0");
	finish(&f);
}

static void test_help(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "?");
	assert_true(f.s->shows_help);
	press(&f, "h");
	assert_false(f.s->shows_help);
	press(&f, "h\x1b");
	assert_false(f.s->shows_help);
	finish(&f);
}

static void test_the_end(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	assert_true(press(&f, "q"));
	assert_true(press(&f, "\x04"));
	assert_false(press(&f, "x"));
	assert_false(press(&f, "/q\x04"));
	assert_string_equal(f.s->filter, "q");
	assert_true(press(&f, "\rq"));
	finish(&f);
}

/* --- the filter --- */

static void test_filter(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "j/B.SO");
	assert_true(f.s->is_typing);
	assert_int_equal(f.s->row_cnt, 2);
	assert_int_equal(f.s->selected, 0);
	assert_string_equal(selected(&f), "f2");
	press(&f, "\r");
	assert_false(f.s->is_typing);
	assert_int_equal(f.s->row_cnt, 2);
	press(&f, "\x1b");
	assert_int_equal(f.s->row_cnt, TEN);
	finish(&f);
}

/* Its end: the line feed as well keeps it, Escape drops it. */
static void test_filter_ends(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "/f1\n");
	assert_false(f.s->is_typing);
	assert_string_equal(f.s->filter, "f1");
	press(&f, "/\x1b");
	assert_false(f.s->is_typing);
	assert_string_equal(f.s->filter, "");
	finish(&f);
}

static void test_filter_goes_on_where_it_was(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "/ma\r/in");
	assert_string_equal(f.s->filter, "main");
	press(&f, "\x7f\b");
	assert_string_equal(f.s->filter, "ma");
	press(&f, "\x15");
	assert_string_equal(f.s->filter, "");
	assert_true(f.s->is_typing);
	press(&f, "\x7f");
	assert_string_equal(f.s->filter, "");
	finish(&f);
}

/* Backspace takes a character, however many bytes that has. */
static void test_filter_of_other_letters(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "/a\xc3\xbc\xe2\x82\xac");
	assert_string_equal(f.s->filter, "a\xc3\xbc\xe2\x82\xac");
	press(&f, "\x7f");
	assert_string_equal(f.s->filter, "a\xc3\xbc");
	press(&f, "\x7f");
	assert_string_equal(f.s->filter, "a");
	press(&f, "\x7f");
	assert_string_equal(f.s->filter, "");
	finish(&f);
}

/* Of control characters and keys that are no letters nothing comes into it; a space does. */
static void test_filter_takes_letters_alone(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "/a\x01\x1f\x1b[A\x1b[5~ b");
	assert_string_equal(f.s->filter, "a b");
	finish(&f);
}

static void test_filter_is_full(void **state)
{
	char keys[100];
	struct fixture f;

	(void)state;
	setup(&f);
	memset(keys, 'x', sizeof(keys) - 1);
	keys[0] = '/';
	keys[sizeof(keys) - 1] = '\0';
	press(&f, keys);
	assert_int_equal(strlen(f.s->filter), FILTER_BYTES - 1);
	assert_int_equal(f.s->row_cnt, 0);
	press(&f, "\r");
	press(&f, "j");
	assert_int_equal(f.s->selected, 0);
	press(&f, "G\r");
	assert_int_equal(f.s->selected, 0);
	assert_false(f.s->is_expanded);
	finish(&f);
}

/* --- sequences --- */

/* A key that is not known does nothing, whatever its parameters are; the one behind it counts. */
static void test_other_sequences(void **state)
{
	static const char *const sequences[] = {
		"\x1b[Zj", "\x1b[15~j", "\x1b[1;5Cj", "\x1b[<0;1;1Mj", "\x1bOPj", "\x1b[?j"
	};
	struct fixture f;

	(void)state;
	setup(&f);
	for (size_t i = 0; i < 5; i++) {
		press(&f, "g");
		press(&f, sequences[i]);
		if (f.s->selected != 1)
			fail_msg("%s: row %u", sequences[i] + 1, f.s->selected);
	}
	press(&f, "g");
	press(&f, sequences[5]); /* the letter that ends it is j */
	assert_int_equal(f.s->selected, 0);
	finish(&f);
}

/* A sequence whose rest has not come does nothing and is not read beyond its end. */
static void test_half_sequences(void **state)
{
	static const char *const halves[] = { "\x1b[", "\x1bO", "\x1b[5", "\x1b[1;" };
	struct fixture f;
	bool quit;

	(void)state;
	setup(&f);
	for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
		char *exact = strndup(halves[i], strlen(halves[i])), *bytes = malloc(strlen(halves[i]));

		memcpy(bytes, exact, strlen(exact)); /* without a NUL behind it */
		press(&f, "gj");
		assert_int_equal(sink_summary_keys(f.sink, bytes, strlen(exact), &quit), 0);
		assert_false(quit);
		assert_int_equal(f.s->selected, 1);
		free(exact);
		free(bytes);
	}
	finish(&f);
}

/* Escape before another character is Escape, and then that. */
static void test_escape_and_a_letter(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "/f1\r");
	assert_int_equal(f.s->row_cnt, 1);
	press(&f, "\x1bj");
	assert_int_equal(f.s->row_cnt, TEN);
	assert_int_equal(f.s->selected, 1);
	finish(&f);
}

/* --- rows that are expanded --- */

static void test_expanded(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "\r");
	assert_true(f.s->is_expanded);
	assert_true(f.s->line_cnt > 0);
	press(&f, "\x1b[C"); /* it is open already */
	assert_true(f.s->is_expanded);
	press(&f, "\r");
	assert_false(f.s->is_expanded);
	press(&f, "\x1b[D"); /* it is closed already */
	assert_false(f.s->is_expanded);
	press(&f, "\x1b[C");
	assert_true(f.s->is_expanded);
	press(&f, "\x1b[D");
	assert_false(f.s->is_expanded);
	press(&f, "\n");
	assert_true(f.s->is_expanded);
	finish(&f);
}

/* Another row opens in place of the one that is open; Left closes it from any row. */
static void test_one_row_is_expanded(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "\rj\r");
	assert_true(f.s->is_expanded);
	assert_string_equal(f.s->expanded_name, "f1");
	assert_string_equal(f.s->expanded_module, "a.so");
	press(&f, "j\x1b[D");
	assert_false(f.s->is_expanded);
	finish(&f);
}

/* The selection goes with the row that was opened, until it is moved. */
static void test_selection_follows(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "j\r");
	assert_true(f.s->is_followed);
	press(&f, "r");
	assert_string_equal(selected(&f), "f1");
	press(&f, "r");
	press(&f, "j");
	assert_false(f.s->is_followed);
	press(&f, "r");
	assert_int_equal(f.s->selected, 2);
	finish(&f);
}

/* --- what is counted --- */

static void test_frozen(void **state)
{
	struct profiles *p = text_profiles("app;main@app;new@n.so 500\n", 1);
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "z");
	assert_true(f.s->is_frozen);
	assert_int_equal(sink_consume(f.sink, p, NULL), 0);
	press(&f, "x");
	assert_string_equal(f.s->rows[0].name, "f0");
	press(&f, " ");
	assert_false(f.s->is_frozen);
	assert_string_equal(f.s->rows[0].name, "new");
	profiles_put(p);
	finish(&f);
}

static void test_begun_anew(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	press(&f, "\rz");
	press(&f, "c");
	assert_false(f.s->is_frozen);
	assert_int_equal(f.s->row_cnt, 0);
	assert_int_equal(f.s->now.profile_cnt, 0);
	assert_int_equal(f.s->now.sum.events, 0);
	finish(&f);
}

/* Each press is the next kind; behind the last one comes the first. What was counted is of another kind and goes. */
static void test_kinds_in_a_circle(void **state)
{
	struct fixture f;

	(void)state;
	setup_kinds(&f, all_kinds, NULL);
	assert_true(f.s->row_cnt > 0);
	press(&f, "w");
	assert_string_equal(f.s->kind, "off_cpu");
	assert_int_equal(f.s->row_cnt, 0);
	press(&f, "w");
	assert_string_equal(f.s->kind, "memory");
	press(&f, "w");
	assert_string_equal(f.s->kind, "samples");
	press(&f, "w");
	assert_string_equal(f.s->kind, "off_cpu");
	finish(&f);
}

static void test_kind_that_it_began_with(void **state)
{
	struct fixture f;

	(void)state;
	setup_kinds(&f, all_kinds, "off_cpu");
	press(&f, "w");
	assert_string_equal(f.s->kind, "memory");
	finish(&f);
	setup_kinds(&f, all_kinds, "none of these");
	press(&f, "w");
	assert_string_equal(f.s->kind, "samples");
	finish(&f);
}

/* Where there is one kind only nothing is lost by the key. */
static void test_one_kind(void **state)
{
	static const char *const one[] = { "samples", NULL }, *const none[] = { NULL };
	const char *const *const few[] = { one, none, NULL };
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(few); i++) {
		setup_kinds(&f, few[i], NULL);
		press(&f, "w");
		assert_null(f.s->kind);
		assert_int_equal(f.s->row_cnt, TEN);
		finish(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_down_and_up),
		cmocka_unit_test(test_stops_at_both_ends),
		cmocka_unit_test(test_first_and_last),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_reversed),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_the_end),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_filter_ends),
		cmocka_unit_test(test_filter_goes_on_where_it_was),
		cmocka_unit_test(test_filter_of_other_letters),
		cmocka_unit_test(test_filter_takes_letters_alone),
		cmocka_unit_test(test_filter_is_full),
		cmocka_unit_test(test_other_sequences),
		cmocka_unit_test(test_half_sequences),
		cmocka_unit_test(test_escape_and_a_letter),
		cmocka_unit_test(test_expanded),
		cmocka_unit_test(test_one_row_is_expanded),
		cmocka_unit_test(test_selection_follows),
		cmocka_unit_test(test_frozen),
		cmocka_unit_test(test_begun_anew),
		cmocka_unit_test(test_kinds_in_a_circle),
		cmocka_unit_test(test_kind_that_it_began_with),
		cmocka_unit_test(test_one_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
