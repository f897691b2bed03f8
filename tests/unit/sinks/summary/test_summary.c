/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal summary. The drawing is played on a small screen of the test's own, which knows the few control
 * sequences a drawing may use, and the screen is compared with golden text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sinks/sinks.h"
#include "tests/unit/proto/golden.h"
#include "tests/unit/proto/text_profiles.h"

enum { MAX_ROWS = 40, MAX_COLUMNS = 120 };

static const char first_interval[] = "cc1plus;main@cc1plus;parse@cc1plus;lex@cc1plus 50\n"
				     "cc1plus;main@cc1plus;optimize_everything_that_can_be_optimized@cc1plus 30\n"
				     "cc1plus;main@cc1plus;vfs_read@[kernel] 10\n"
				     "dockerd;runtime.goexit@dockerd.go;runtime.mallocgc@dockerd.go 6\n"
				     "odd;\x1b[2Jname@m 4\n";
static const char second_interval[] = "cc1plus;main@cc1plus;optimize_everything_that_can_be_optimized@cc1plus 9\n"
				      "cc1plus;main@cc1plus;parse@cc1plus 1\n";

struct screen {
	char cells[MAX_ROWS][MAX_COLUMNS][5]; /* a UTF-8 character each, "" is blank */
	unsigned rows, columns, row, column;
	bool alternate, cursor_hidden, scrolled;
	unsigned colours;
};

struct fixture {
	char *text;
	size_t len, seen;
	FILE *out;
	struct sink *sink;
	struct screen screen;
};

static void status(void *arg, struct buf *line)
{
	buf_puts(line, arg);
}

static void setup_keys(struct fixture *f, bool live, bool keys, bool colour, unsigned rows, unsigned columns)
{
	struct summary_options options = {
		.live = live,
		.colour = colour,
		.rows = rows,
		.columns = columns,
		.keys = keys,
		.status = status,
		.status_arg = "hearth  20 Hz x 2 CPUs · 40 samples/s · nothing lost",
	};

	memset(f, 0, sizeof(*f));
	f->out = options.out = open_memstream(&f->text, &f->len);
	f->screen.rows = rows;
	f->screen.columns = columns;
	assert_non_null(f->out);
	assert_int_equal(sink_summary_new(&options, &f->sink), 0);
}

static void setup(struct fixture *f, bool live, bool colour, unsigned rows, unsigned columns)
{
	setup_keys(f, live, false, colour, rows, columns);
}

static void finish(struct fixture *f)
{
	sink_free(f->sink);
	fclose(f->out);
	free(f->text);
}

static void consume(struct fixture *f, const char *text, unsigned interval)
{
	struct profiles *p = text_profiles(text, interval);

	assert_int_equal(sink_consume(f->sink, p, NULL), 0);
	profiles_put(p);
}

static void erase(struct screen *s, unsigned row, unsigned column, unsigned to_row)
{
	for (; row <= to_row && row < s->rows; row++, column = 0) {
		for (; column < s->columns; column++)
			s->cells[row][column][0] = '\0';
	}
}

/* Obeys the control sequence behind ESC [ and returns its end. */
static const char *control(struct screen *s, const char *at)
{
	const char *end = at + strspn(at, "?0123456789;");
	size_t len = (size_t)(end - at) + 1;

	if (*end == 'm') {
		s->colours++;
	} else if (!strncmp(at, "H", len)) {
		s->row = s->column = 0;
	} else if (!strncmp(at, "K", len)) {
		erase(s, s->row, s->column, s->row);
	} else if (!strncmp(at, "J", len)) {
		erase(s, s->row, s->column, s->rows);
	} else if (!strncmp(at, "2J", len)) {
		erase(s, 0, 0, s->rows);
	} else if (!strncmp(at, "?1049h", len) || !strncmp(at, "?1049l", len)) {
		s->alternate = *end == 'h';
	} else if (!strncmp(at, "?25l", len) || !strncmp(at, "?25h", len)) {
		s->cursor_hidden = *end == 'l';
	} else if (strncmp(at, "?7l", len) != 0 && strncmp(at, "?7h", len) != 0) {
		fail_msg("unknown control sequence ESC[%.*s", (int)len, at);
	}
	return end + 1;
}

/* Plays what was written since the last time. */
static void play(struct fixture *f)
{
	struct screen *s = &f->screen;
	const char *at;

	fflush(f->out);
	for (at = f->text + f->seen; at < f->text + f->len;) {
		size_t len = 1;

		if (*at == '\033') {
			assert_int_equal(at[1], '[');
			at = control(s, at + 2);
			continue;
		}
		if (*at == '\n') {
			s->column = 0;
			s->scrolled |= ++s->row >= s->rows;
			at++;
			continue;
		}
		while ((at[len] & 0xc0) == 0x80)
			len++;
		assert_in_range(len, 1, 4);
		assert_in_range((unsigned char)*at, 0x20, 0xff);
		if (s->alternate && s->row < s->rows) {
			/* The last column is never written: erasing from there would take its character. */
			assert_true(s->column + 1 < s->columns);
			memcpy(s->cells[s->row][s->column], at, len);
			s->cells[s->row][s->column][len] = '\0';
		}
		s->column++;
		at += len;
	}
	f->seen = f->len;
}

static void screen_text(const struct screen *s, struct buf *out)
{
	for (unsigned row = 0; row < s->rows; row++) {
		unsigned end = s->columns;

		while (end && (!s->cells[row][end - 1][0] || !strcmp(s->cells[row][end - 1], " ")))
			end--;
		for (unsigned column = 0; column < end; column++)
			buf_puts(out, s->cells[row][column][0] ? s->cells[row][column] : " ");
		buf_putc(out, '\n');
	}
}

static void test_live(void **state)
{
	static const struct {
		unsigned rows, columns;
		const char *first, *second;
	} cases[] = {
		{ 16, 100, "summary_live_1.txt", "summary_live_2.txt" },
		{ 8, 50, "summary_live_small_1.txt", "summary_live_small_2.txt" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf first = BUF_EMPTY, second = BUF_EMPTY;
		struct fixture f;

		setup(&f, true, i == 0, cases[i].rows, cases[i].columns);
		consume(&f, first_interval, 0);
		play(&f);
		screen_text(&f.screen, &first);
		assert_golden(&first, cases[i].first);
		assert_true(f.screen.alternate && f.screen.cursor_hidden);
		consume(&f, second_interval, 1);
		play(&f);
		screen_text(&f.screen, &second);
		assert_golden(&second, cases[i].second);
		assert_false(f.screen.scrolled);
		assert_int_equal(f.screen.colours != 0, i == 0);
		assert_int_equal(sink_flush(f.sink, UINT64_MAX), 0);
		play(&f);
		assert_false(f.screen.alternate || f.screen.cursor_hidden);
		finish(&f);
	}
}

static void press(struct fixture *f, const char *keys)
{
	bool quit;

	assert_int_equal(sink_summary_keys(f->sink, keys, strlen(keys), &quit), 0);
	assert_false(quit);
	play(f);
}

/* What stands on the screen after @keys, which are also its heading. */
static void show(struct fixture *f, const char *keys, const char *heading, struct buf *out)
{
	press(f, keys);
	buf_printf(out, "--- %s\n", heading);
	screen_text(&f->screen, out);
}

static void test_keys(void **state)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct fixture f;
	bool quit;

	(void)state;
	setup_keys(&f, true, true, false, 18, 80);
	consume(&f, first_interval, 0);
	show(&f, "", "as it begins", &text);
	show(&f, "jj\r", "down, down, Enter: callers", &text);
	consume(&f, second_interval, 1);
	show(&f, "", "another interval, without the expanded row: rows stay where they were", &text);
	show(&f, "\x1b[B\x1bOA\r", "Down, Up, Enter: closed", &text);
	show(&f, "g\r", "g, Enter: callers of the first", &text);
	show(&f, "z", "frozen", &text);
	consume(&f, first_interval, 2);
	show(&f, "tr", "still, but by total and reversed", &text);
	show(&f, "rsz", "as it was and going on", &text);
	show(&f, "m", "modules", &text);
	show(&f, "\x1b[C", "Right: functions of the first", &text);
	show(&f, "\x1b[D", "Left", &text);
	show(&f, "p\r", "processes, and functions of the first", &text);
	show(&f,
	     "f/LE\x7f"
	     "ex",
	     "a filter being typed: /LEx", &text);
	show(&f, "\r", "done", &text);
	show(&f, "\x1b", "Escape: no filter", &text);
	show(&f, "on?", "help", &text);
	show(&f, "?c", "counting anew", &text);
	press(&f, "/q\x1b");									 /* q is a letter there */
	assert_int_equal(sink_summary_keys(f.sink, "\x1b[5;3~\x1b[<0;1;1M\x1b[", 15, &quit), 0); /* others do nothing */
	assert_false(quit);
	assert_int_equal(sink_summary_keys(f.sink, "q", 1, &quit), 0);
	assert_true(quit);
	play(&f);
	assert_int_equal(sink_summary_leave(f.sink), 0);
	play(&f);
	assert_false(f.screen.alternate || f.screen.cursor_hidden);
	assert_golden(&text, "summary_keys.txt");
	finish(&f);
}

static void link_to(void *arg, const char *name, const char *module, struct buf *url)
{
	buf_printf(url, "http://%s/#fn=%s", (const char *)arg, name);
	if (*module)
		buf_printf(url, "&mod=%s", module);
}

static const char many_processes[] = "nginx;main@nginx;memcpy@libc.so.6 40\n"
				     "redis;main@redis;memcpy@libc.so.6 20\n"
				     "odd;main@odd;memcpy@libc.so.6 10\n"
				     "redis;main@redis;lookup@redis 30\n";

/* From 120 columns on functions tell their process; callers tell the page's address. */
static void test_processes_and_links(void **state)
{
	static const unsigned columns[] = { 119, 120, 60 };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		char host[] = "127.0.0.1:4318";
		struct summary_options options = {
			.live = true,
			.keys = true,
			.rows = 12,
			.columns = columns[i],
			.link = link_to,
			.link_arg = host,
		};
		struct fixture f = { .screen = { .rows = 12, .columns = columns[i] } };

		f.out = options.out = open_memstream(&f.text, &f.len);
		assert_int_equal(sink_summary_new(&options, &f.sink), 0);
		consume(&f, many_processes, 0);
		buf_printf(&text, "%u columns\n", columns[i]);
		show(&f, "", "as it begins", &text);
		show(&f, "\r", "Enter", &text);
		consume(&f, many_processes, 1); /* callers are of both intervals */
		show(&f, "\r/redis\r\r", "functions that run in redis, Enter", &text);
		finish(&f);
	}
	assert_golden(&text, "summary_wide.txt");
}

/* Processes of one name are counted together whatever others are called, in whatever order they come. */
static void test_names_that_begin_alike(void **state)
{
	static const struct {
		const char *text, *label;
	} cases[] = {
		{ "ab (1);f@m 5\nabc (2);f@m 4\nab (3);f@m 3\n", "ab ×2 +1 " },
		{ "ab (1);f@m 6\nabc (2);f@m 5\nab (3);f@m 4\nab (4);f@m 3\n", "ab ×3 +1 " },
		{ "ab (4);f@m 3\nab (3);f@m 4\nabc (2);f@m 5\nab (1);f@m 6\n", "ab ×3 +1 " },
		{ "abc (1);f@m 5\nab (2);f@m 4\na (4);f@m 1\nab (3);f@m 3\n", "ab ×2 +2 " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf text = BUF_EMPTY;
		struct fixture f;

		setup_keys(&f, true, true, false, 12, 120);
		consume(&f, cases[i].text, 0);
		show(&f, "", "", &text);
		if (!strstr(buf_text(&text), cases[i].label))
			fail_msg("%s%s", cases[i].text, buf_text(&text));
		finish(&f);
	}
}

/* An address that does not fit leaves the module out, or goes on in the next line; none is shown cut. */
static void test_long_links(void **state)
{
	char host[400];
	static const struct {
		size_t host_len;
		unsigned lines;
		bool has_module;
	} cases[] = { { 10, 1, true }, { 40, 1, false }, { 100, 2, false }, { 200, 4, false }, { 300, 0, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf text = BUF_EMPTY;
		struct summary_options options = {
			.live = true,
			.keys = true,
			.rows = 20,
			.columns = 80,
			.link = link_to,
			.link_arg = host,
		};
		struct fixture f = { .screen = { .rows = 20, .columns = 80 } };
		unsigned lines = 0;

		memset(host, 'x', sizeof(host));
		host[cases[i].host_len] = '\0';
		f.out = options.out = open_memstream(&f.text, &f.len);
		assert_int_equal(sink_summary_new(&options, &f.sink), 0);
		consume(&f, many_processes, 0);
		show(&f, "\r", "", &text);
		for (const char *p = buf_text(&text); (p = strstr(p, "\n        ")); p++)
			lines += p[9] != ' ';
		assert_int_equal(lines, cases[i].lines);
		assert_int_equal(strstr(buf_text(&text), "&mod=libc.so.6\n") != NULL, cases[i].has_module);
		assert_int_equal(strstr(buf_text(&text), "memcpy\n") != NULL, true);
		finish(&f);
	}
}

static void test_lines_without_a_terminal(void **state)
{
	struct summary_options options = { .lines = true };
	struct fixture f = { 0 };

	(void)state;
	f.out = options.out = open_memstream(&f.text, &f.len);
	assert_int_equal(sink_summary_new(&options, &f.sink), 0);
	consume(&f, second_interval, 0);
	fflush(f.out);
	assert_non_null(strstr(
		f.text, " 90.00%  90.00%   90.00%  cc1plus               optimize_everything_that_can_be_optimized\n"));
	assert_null(strchr(f.text, '\033'));
	finish(&f);
}

static void test_free_gives_the_terminal_back(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f, true, true, 24, 80);
	consume(&f, first_interval, 0);
	play(&f);
	assert_true(f.screen.alternate);
	sink_free(f.sink);
	play(&f);
	assert_false(f.screen.alternate || f.screen.cursor_hidden);
	fclose(f.out);
	free(f.text);
}

static void test_silent_until_the_end(void **state)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct fixture f;

	(void)state;
	setup(&f, false, false, 0, 0);
	consume(&f, first_interval, 0);
	consume(&f, second_interval, 1);
	fflush(f.out);
	assert_int_equal(f.len, 0);
	assert_int_equal(sink_flush(f.sink, UINT64_MAX), 0);
	assert_int_equal(sink_flush(f.sink, UINT64_MAX), 0); /* once */
	buf_append(&text, f.text, f.len);
	assert_golden(&text, "summary_final.txt");
	finish(&f);
}

static void test_nothing_seen(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f, true, false, 24, 80);
	assert_int_equal(sink_flush(f.sink, UINT64_MAX), 0);
	fflush(f.out);
	assert_string_equal(f.text, "0 samples\n\n0 samples in 0 ms\n");
	finish(&f);
}

static void test_write_error_is_returned(void **state)
{
	struct summary_options options = { .out = fopen("/dev/full", "w"), .live = true, .rows = 24, .columns = 80 };
	struct profiles *p = text_profiles(first_interval, 0);
	struct sink *sink;

	(void)state;
	assert_non_null(options.out);
	assert_int_equal(sink_summary_new(&options, &sink), 0);
	assert_int_equal(sink_consume(sink, p, NULL), -ENOSPC);
	assert_int_equal(sink_flush(sink, UINT64_MAX), -ENOSPC);
	sink_free(sink);
	profiles_put(p);
	fclose(options.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_names_that_begin_alike),
		cmocka_unit_test(test_processes_and_links),
		cmocka_unit_test(test_long_links),
		cmocka_unit_test(test_lines_without_a_terminal),
		cmocka_unit_test(test_free_gives_the_terminal_back),
		cmocka_unit_test(test_silent_until_the_end),
		cmocka_unit_test(test_nothing_seen),
		cmocka_unit_test(test_write_error_is_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
