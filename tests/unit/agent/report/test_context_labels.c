/* SPDX-License-Identifier: Apache-2.0 */
/* From labels and contexts of threads to attributes and links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/report/context_labels.h"
#include "base/cleanup.h"

static void test_links(void **state)
{
	static const uint8_t none[16];
	struct span_info s = { 0 };

	(void)state;
	assert_true(context_label_link(STR("span_id"), STR("00ff00000000ab01"), &s));
	assert_memory_equal(s.span, "\x00\xff\x00\x00\x00\x00\xab\x01", 8);
	assert_true(context_label_link(STR("trace_id"), STR("0123456789abcdef0123456789abcde0"), &s));
	assert_memory_equal(s.trace, "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xe0", 16);
	assert_true(context_label_link(STR("span id"), STR("18446744073709551615"), &s));
	assert_memory_equal(s.span, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	assert_true(context_label_link(STR("span id"), STR("258"), &s));
	assert_memory_equal(s.span, "\0\0\0\0\0\0\1\2", 8);
	assert_false(context_label_link(STR("span id"), STR("18446744073709551616"), &s));
	assert_false(context_label_link(STR("span id"), STR("2x"), &s));
	assert_false(context_label_link(STR("span id"), STR(""), &s));
	assert_false(context_label_link(STR("span_id"), STR("258"), &s));
	assert_false(context_label_link(STR("trace_id"), STR("258"), &s));
	assert_false(context_label_link(STR("route"), STR("258"), &s));
	assert_memory_equal(s.span, "\0\0\0\0\0\0\1\2", 8);
	s = (struct span_info){ 0 };
	assert_true(context_label_link(STR("trace id"), STR("1"), &s));
	assert_memory_equal(s.trace, none, 15);
	assert_int_equal(s.trace[15], 1);
}

static size_t put_label(uint64_t *words, size_t at, const char *key, const char *value)
{
	size_t k = strlen(key), v = strlen(value);

	words[at] = LABEL_HEAD(k, v);
	memcpy(&words[at + 1], key, k);
	memcpy(&words[at + 1 + (k + 7) / 8], value, v);
	return at + 1 + (k + 7) / 8 + (v + 7) / 8;
}

static void add(struct traces *t, struct process *p, const uint64_t *labels, size_t words, const struct span_info *span)
{
	struct sample_record record = { .hdr = { .time_ns = 1000 }, .tid = 5 };
	const struct pending_sample s = {
		.record = &record, .value = 1, .labels = labels, .label_words = (uint32_t)words, .span = span
	};

	assert_int_equal(traces_add(t, p, &s, NULL, 0, END_NONE), 0);
}

/* Equal ones are one; what has nothing has none. */
static void test_build(void **state)
{
	struct process *p = calloc(1, sizeof(*p));
	const struct span_info span = { .span = { 1 } };
	int32_t attributes[CONTEXT_LABELS], link;
	struct context_labels *c = NULL;
	struct builder *b = builder_new();
	const struct trace_event *e;
	uint64_t words[64] = { 0 };
	struct traces *t;
	size_t n = put_label(words, 0, "route", "/cart");

	(void)state;
	assert_non_null(p);
	p->refs = 1;
	p->as = address_space_new();
	n = put_label(words, n, "empty", "");
	n = put_label(words, n, "bad\xff", "value");
	n = put_label(words, n, "route", "/buy");
	n = put_label(words, n, "span id", "258");
	n = put_label(words, n, "thread.name", "as it says");
	assert_int_equal(traces_new(NULL, &t), 0);
	add(t, p, words, n, NULL);
	add(t, p, NULL, 0, NULL);
	add(t, p, words, n, NULL);
	add(t, p, NULL, 0, &span);
	assert_int_equal(traces_context_count(t), 2);
	assert_int_equal(context_labels_build(&c, b, t), 0);
	e = traces_events(t);
	assert_int_equal(context_labels_of(c, &e[0], attributes, &link), 2);
	assert_int_equal(link, builder_link(b, (const uint8_t[16]){ 0 }, (const uint8_t *)"\0\0\0\0\0\0\1\2"));
	assert_int_equal(attributes[0], builder_attribute_string(b, "process.context.label.route", STR("/buy")));
	assert_int_equal(attributes[1], builder_attribute_string(b, "process.context.label.thread.name", STR("as it says")));
	assert_int_equal(context_labels_of(c, &e[1], attributes, &link), 0);
	assert_int_equal(link, 0);
	assert_int_equal(context_labels_of(c, &e[2], attributes, &link), 2);
	assert_int_equal(context_labels_of(c, &e[3], attributes, &link), 0);
	assert_int_equal(link, builder_link(b, (const uint8_t[16]){ 0 }, span.span));
	context_labels_free(c);
	builder_free(b);
	traces_free(t);
	process_put(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_build),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
