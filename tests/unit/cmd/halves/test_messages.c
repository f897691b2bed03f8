/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of messages: order, bytes and the link to the last one, from any place that a message is taken from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cmd/halves/messages.h"

static struct message_entry *entry(uint64_t number)
{
	struct message_entry *e = message_entry_new(WIRE_LOG, number);

	assert_non_null(e);
	assert_int_equal(e->head.kind, WIRE_LOG);
	assert_int_equal(e->head.number, number);
	assert_int_equal(e->head.total_bytes + e->head.offset + e->head.zero, 0);
	for (uint64_t i = 0; i < number; i++)
		buf_putc(&e->body, 'x');
	return e;
}

/* @l has exactly the messages whose numbers are @digits. */
static void assert_list(const struct message_list *l, const char *digits)
{
	const struct message_entry *e = l->first;
	size_t bytes = 0;

	for (; *digits; digits++, e = e->next) {
		assert_non_null(e);
		assert_int_equal(e->head.number, *digits - '0');
		bytes += e->body.len;
		if (!e->next)
			assert_ptr_equal(l->last, &e->next);
	}
	assert_null(e);
	assert_int_equal(l->bytes, bytes);
	if (!l->first)
		assert_ptr_equal(l->last, &l->first);
}

static void fill(struct message_list *l, const char *digits)
{
	message_list_init(l);
	for (; *digits; digits++)
		message_list_put(l, entry((uint64_t)(*digits - '0')));
}

static void test_taken(void **state)
{
	static const char *const rests[] = { "23", "13", "12" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct message_list l;
		struct message_entry **link = &l.first, *e;
		char all[8];

		fill(&l, "123");
		assert_list(&l, "123");
		for (size_t j = 0; j < i; j++)
			link = &(*link)->next;
		e = message_list_take(&l, link);
		assert_int_equal(e->head.number, i + 1);
		assert_list(&l, rests[i]);
		message_list_put(&l, e);
		snprintf(all, sizeof(all), "%s%zu", rests[i], i + 1);
		assert_list(&l, all);
		message_list_clear(&l);
		assert_list(&l, "");
		message_list_put(&l, entry(4));
		assert_list(&l, "4");
		message_list_clear(&l);
	}
	message_entry_free(NULL);
}

/* Those that were under way are in front again, and begin anew. */
static void test_taken_back(void **state)
{
	struct message_list to, from;

	(void)state;
	fill(&to, "12");
	fill(&from, "345");
	from.first->sent = 3;
	from.first->next->sent = 1;
	to.first->sent = 1;
	message_list_take_back(&to, &from);
	assert_list(&from, "");
	assert_list(&to, "12345");
	assert_int_equal(to.first->sent, 1); /* it stays under way */
	for (const struct message_entry *e = to.first->next; e; e = e->next)
		assert_int_equal(e->sent, 0);
	message_list_take_back(&to, &from);
	assert_list(&to, "12345");
	message_list_clear(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_taken), cmocka_unit_test(test_taken_back) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
