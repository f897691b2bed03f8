/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of users and senders that would like to be SQL, in every question and every row: the statement is the same whatever
 * they are, byte by byte, and the server gets each of them back as it was, as a value bound to a place in the statement.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/clickhouse/clickhouse.h"
#include "base/cleanup.h"
#include "tests/unit/backend/store/clickhouse/fake_clickhouse.h"

static const char *const texts[] = {
	"x",
	"'",
	"''",
	"\\",
	"\\'",
	"\"",
	"`",
	"x\\",
	"' OR 1 = 1 --",
	"'; DROP TABLE hearth_samples; --",
	"x') UNION ALL SELECT * FROM system.users --",
	"/* */",
	"#",
	"{p0:String}",
	"{p1:Identifier}",
	"{}",
	"$$",
	"\\N",
	"\\0",
	"\\x27",
	"a\nb\r\nc\td",
	"\n",
	"&param_p0=y&query=DROP TABLE hearth_samples",
	"%27%0A%00?#&=+",
	"\xff\xfe",
	"\xc0\xa7",
	"\xe2\x80\x99\x01\x7f",
	")|(.*",
	"\\Q'\\E$^",
	"",
};

static struct fake_clickhouse fake;
static struct store *store;

static int begin(void **state)
{
	(void)state;
	return fake_store(&fake, &store);
}

static int end(void **state)
{
	(void)state;
	store->close(store);
	fake_end(&fake);
	return 0;
}

/* --- what the server reads --- */

/* Appends the value that "%XX" at @at stands for, to where a parameter ends; returns that. */
static const char *read_percent(const char *at, struct buf *ret)
{
	for (; *at && *at != '&' && *at != ' '; at++) {
		char hex[3] = { 0 };

		if (*at == '%') {
			memcpy(hex, at + 1, 2);
			at += 2;
		}
		buf_putc(ret, hex[0] ? (char)strtoul(hex, NULL, 16) : *at);
	}
	return at;
}

/* The value of a field of TabSeparated, as bound values are read; a tab or the end of a line would end it. */
static void read_field(struct buf *field, struct buf *ret)
{
	for (const char *at = buf_text(field); *at; at++) {
		char c = *at;

		assert_true(c != '\t' && c != '\n');
		if (c == '\\') {
			c = *++at;
			assert_true(c && strchr("\\tnr", c));
			c = c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
		}
		buf_putc(ret, c);
	}
}

/* How many of the parameters of the last request are @text, or @text as a whole as a pattern. Each other parameter is one of
 * ours. */
static unsigned count_bound(const char *text)
{
	AUTO(buf_fini) struct buf pattern = BUF_EMPTY;
	unsigned count = 0;

	buf_printf(&pattern, "^(?:%s)$", text);
	for (const char *at = buf_text(&fake.line); (at = strchr(at, '&'));) {
		AUTO(buf_fini) struct buf value = BUF_EMPTY, field = BUF_EMPTY;
		const char *name = ++at;

		at += strcspn(at, "=");
		assert_int_equal(*at, '=');
		read_percent(at + 1, &value);
		if (strncmp(name, "param_p", 7) != 0)
			continue;
		read_field(&value, &field);
		count += !strcmp(buf_text(&field), text) || !strcmp(buf_text(&field), buf_text(&pattern));
	}
	return count;
}

/* --- questions --- */

static int take_sum(void *arg, const char *group, uint32_t number, int64_t weight, uint64_t events)
{
	(void)arg, (void)group, (void)number, (void)weight, (void)events;
	return 0;
}

static int take_label(void *arg, const char *label)
{
	(void)arg, (void)label;
	return 0;
}

static int take_value(void *arg, const char *value, int64_t weight, uint64_t events)
{
	(void)arg, (void)value, (void)weight, (void)events;
	return 0;
}

static int take_series(void *arg, const struct key_values *labels, int64_t weight, uint64_t events)
{
	(void)arg, (void)labels, (void)weight, (void)events;
	return 0;
}

static int take_kind(void *arg, const struct store_kind *kind)
{
	(void)arg, (void)kind;
	return 0;
}

static int take_profiles(void *arg, struct profiles *p)
{
	(void)arg, (void)p;
	return 0;
}

static int take_span(void *arg, const struct kept_span *span)
{
	(void)arg, (void)span;
	return 0;
}

static int take_log(void *arg, const struct kept_log *log)
{
	(void)arg, (void)log;
	return 0;
}

static int take_exemplar(void *arg, const struct kept_exemplar *e)
{
	(void)arg, (void)e;
	return 0;
}

enum { QUESTIONS = 10 };

/* Asks the one of that number, with @text in all places that are a user's. */
static int ask(int number, const struct store_selection *sel, const struct signals_question *q, const char *text)
{
	switch (number) {
	case 0:
		return click_sum_stacks(store, sel, text, take_sum, NULL);
	case 1:
		return click_sum_times(store, sel, 5, text, take_sum, NULL);
	case 2:
		return click_labels(store, sel, take_label, NULL);
	case 3:
		return click_label_values(store, sel, text, take_value, NULL);
	case 4:
		return click_series(store, sel, take_series, NULL);
	case 5:
		return click_kinds(store, sel, take_kind, NULL);
	case 6:
		return click_export(store, sel, take_profiles, NULL);
	case 7:
		return click_spans(store, q, take_span, NULL);
	case 8:
		return click_logs(store, q, take_log, NULL);
	default:
		return click_exemplars(store, q, take_exemplar, NULL);
	}
}

static void test_questions(void **state)
{
	static const uint8_t id[16] = { 1 };

	(void)state;
	for (int number = 0; number < QUESTIONS; number++) {
		AUTO(buf_fini) struct buf harmless = BUF_EMPTY;
		unsigned bound = 0;

		for (size_t i = 0; i < ARRAY_LEN(texts) - 1; i++) {
			const char *text = texts[i];
			const struct store_matcher matchers[] = {
				{ text, MATCH_EQUAL, text, NULL },
				{ text, MATCH_NOT_EQUAL, text, NULL },
				{ text, MATCH_REGEX, text, NULL },
				{ text, MATCH_NOT_REGEX, text, NULL },
				{ "service.name", MATCH_EQUAL, text, NULL },
				{ "trace_id", MATCH_EQUAL, text, NULL },
				{ "span_id", MATCH_REGEX, text, NULL },
				{ "cpu.logical_number", MATCH_EQUAL, text, NULL },
				{ "thread.name", MATCH_REGEX, text, NULL },
			};
			const struct store_selection sel = { .from_ns = 5,
							     .to_ns = 9,
							     .kind = text,
							     .matchers = matchers,
							     .matcher_count = ARRAY_LEN(matchers) };
			const struct signals_question q = { .to_ns = 9,
							    .trace = id,
							    .span = id,
							    .matchers = matchers,
							    .matcher_count = ARRAY_LEN(matchers),
							    .text = text };

			assert_int_equal(ask(number, &sel, &q, text), 0);
			if (i == 0) {
				buf_puts(&harmless, buf_text(&fake.asked));
				bound = count_bound(text);
				assert_true(bound >= 9);
			}
			if (strcmp(buf_text(&fake.asked), buf_text(&harmless)) != 0)
				fail_msg("'%s': %s", text, buf_text(&fake.asked));
			if (count_bound(text) != bound)
				fail_msg("'%s' is bound %u times, not %u: %s", text, count_bound(text), bound,
					 buf_text(&fake.line));
		}
	}
}

/* No value is a label's, and a process's and a thread's name are looked for in several places: other statements, that no
 * text gets into either. */
static void test_names_of_processes(void **state)
{
	AUTO(buf_fini) struct buf harmless = BUF_EMPTY;
	unsigned bound = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts) - 1; i++) {
		const struct store_matcher matcher = { STORE_COMM_LABEL, MATCH_NOT_EQUAL, texts[i], NULL };
		const struct store_selection sel = {
			.from_ns = 5, .to_ns = 9, .kind = texts[i], .matchers = &matcher, .matcher_count = 1
		};

		assert_int_equal(click_sum_stacks(store, &sel, STORE_COMM_LABEL, take_sum, NULL), 0);
		if (i == 0) {
			buf_puts(&harmless, buf_text(&fake.asked));
			bound = count_bound(texts[i]);
			assert_true(bound >= 3);
		}
		assert_string_equal(buf_text(&fake.asked), buf_text(&harmless));
		assert_int_equal(count_bound(texts[i]), bound);
	}
}

/* --- rows: texts are counted bytes behind a statement that has none of them --- */

static void test_rows(void **state)
{
	AUTO(buf_fini) struct buf lines = BUF_EMPTY, harmless = BUF_EMPTY;
	static _Atomic bool is_ending;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts) - 1; i++) {
		const char *t = texts[i];
		AUTO(buf_fini) struct buf labels = BUF_EMPTY;
		const struct store_name name = { .address = 5, .function = t, .system_name = t, .file = t };
		struct kept_resource r = { .service = t };

		for (int part = 0; part < 2; part++)
			buf_append(&labels, t, strlen(t) + 1);
		r.labels = buf_text(&labels);
		r.len = labels.len;
		assert_int_equal(click_name_frames(store, t, &name, 1), 0);
		buf_reset(&lines);
		buf_puts(&lines, buf_text(&fake.line));
		assert_int_equal(store->records->add_log(store, &(struct kept_log){ .body = t, .resource = r }), 0);
		assert_int_equal(store->records->commit(store, 0, &is_ending), 0);
		buf_puts(&lines, buf_text(&fake.line));
		assert_int_equal(
			store->records->add_span(store, &(struct kept_span){ .name = t, .thread_name = t, .resource = r }),
			0);
		assert_int_equal(store->records->commit(store, 0, &is_ending), 0);
		buf_puts(&lines, buf_text(&fake.line));
		assert_int_equal(store->records->add_exemplar(
					 store, &(struct kept_exemplar){ .metric = t, .unit = t, .resource = r }),
				 0);
		assert_int_equal(store->records->commit(store, 0, &is_ending), 0);
		buf_puts(&lines, buf_text(&fake.line));
		if (i == 0)
			buf_puts(&harmless, buf_text(&lines));
		assert_string_equal(buf_text(&lines), buf_text(&harmless));
	}
	assert_non_null(strstr(buf_text(&harmless), "hearth_names"));
	assert_non_null(strstr(buf_text(&harmless), "hearth_exemplars"));
}

/* --- the address: a database's name is quoted in the one statement that has it --- */

static void test_databases(void **state)
{
	static const struct {
		const char *path, *name; /* NULL: refused */
	} rows[] = {
		{ "x", "x" },
		{ "a%27b%22--%20%3B", "a'b\"-- ;" },
		{ "%7Bp0:Identifier%7D", "{p0:Identifier}" },
		{ "a%26query=DROP%3F%23", "a&query=DROP?#" },
		{ "%FF%C0%A7", "\xff\xc0\xa7" },
		{ "a%60b", NULL },
		{ "a%5Cb", NULL },
		{ "a%5C%60b", NULL },
		{ "a%2Fb", NULL },
		{ "a%0Ab", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct store_config config = { .keep_age_ns = UINT64_MAX };
		char place[160], want[160];
		struct store_error error;
		struct store *other;

		snprintf(place, sizeof(place), "%.*s/%s", (int)(strrchr(fake.place, '/') - fake.place), fake.place,
			 rows[i].path);
		config.place = place;
		buf_reset(&fake.created);
		assert_int_equal(store_clickhouse_open(&config, NULL, &other, &error), rows[i].name ? 0 : -EINVAL);
		if (!rows[i].name) {
			assert_int_equal(fake.created.len, 0);
			continue;
		}
		snprintf(want, sizeof(want), "CREATE DATABASE IF NOT EXISTS `%s`", rows[i].name);
		assert_string_equal(buf_text(&fake.created), want);
		other->close(other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_questions, begin, end),
		cmocka_unit_test_setup_teardown(test_names_of_processes, begin, end),
		cmocka_unit_test_setup_teardown(test_rows, begin, end),
		cmocka_unit_test_setup_teardown(test_databases, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
