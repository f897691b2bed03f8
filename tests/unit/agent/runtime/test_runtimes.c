/* SPDX-License-Identifier: Apache-2.0 */
/* Two runtimes that note what they are asked: the set asks each in turn, and each process's slot is freed by its owner. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/choice.h"
#include "agent/runtime/runtimes.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "tests/unit/descriptors.h"

struct probe {
	char letter;
	uint32_t slot;
	uint64_t knows; /* the address it has a name of */
	bool varies;
};

struct probe_slot {
	struct process_slot slot;
	char letter;
};

static char calls[64]; /* a letter of the runtime and one of the operation, each */
static int refuses;    /* the runtime of that number, from 1, cannot be created */

static void note(char letter, char operation)
{
	size_t len = strlen(calls);

	assert_true(len + 2 < sizeof(calls));
	calls[len] = letter;
	calls[len + 1] = operation;
}

static void expect_calls(const char *want)
{
	assert_string_equal(calls, want);
	memset(calls, 0, sizeof(calls));
}

static int create(const struct runtime_context *context, void **ret)
{
	struct probe *probe = calloc(1, sizeof(*probe));

	if (!probe || (int)context->slot + 1 == refuses) {
		free(probe);
		return -ENOMEM;
	}
	*probe = (struct probe){ .letter = (char)('a' + context->slot), .slot = context->slot };
	note(probe->letter, 'c');
	*ret = probe;
	return 0;
}

static void destroy(void *runtime)
{
	note(((struct probe *)runtime)->letter, 'd');
	free(runtime);
}

static void free_slot(struct process_slot *slot)
{
	note(((struct probe_slot *)slot)->letter, 'f');
	free(slot);
}

static void map(void *runtime, struct process *p, struct file *file, const char *path, uint32_t task)
{
	(void)p;
	assert_true(!file && task == 5);
	assert_string_equal(path, "/x");
	note(((struct probe *)runtime)->letter, 'm');
}

static void see(void *runtime, struct process *p)
{
	const struct probe *probe = runtime;
	struct probe_slot *slot = calloc(1, sizeof(*slot));

	assert_non_null(slot);
	*slot = (struct probe_slot){ { free_slot }, probe->letter };
	p->slots[probe->slot] = &slot->slot;
	note(probe->letter, 's');
}

static const struct wait_hook nothing;

static void update(void *runtime, const struct traces *t, const struct wait_hook *hook)
{
	assert_true(!t && hook == &nothing);
	note(((struct probe *)runtime)->letter, 'u');
}

static bool find(void *runtime, const struct process *p, uint64_t addr, uint64_t time_ns, struct runtime_name *ret)
{
	const struct probe *probe = runtime;

	assert_true(p && time_ns == 9);
	ret->type = probe->letter == 'a' ? "a" : "b";
	note(probe->letter, 'n');
	return probe->knows == addr;
}

static bool varies(void *runtime, const struct process *p)
{
	(void)p;
	return ((const struct probe *)runtime)->varies;
}

static void settle(void *runtime, const struct traces *t, uint64_t end_ns)
{
	assert_true(!t && end_ns == 77);
	note(((struct probe *)runtime)->letter, 't');
}

static size_t memory_bytes(const void *runtime)
{
	return 1000 + ((const struct probe *)runtime)->slot;
}

#define PROBE(name)                                                                            \
	{                                                                                      \
		0, name, create, destroy, map, see, update, find, varies, settle, memory_bytes \
	}
static const struct runtime first = PROBE("first names"), second = PROBE("second names");
static const struct runtime *const table[] = { &first, &second };

static void test_each_is_asked(void **state)
{
	struct process *p = calloc(1, sizeof(*p));
	struct metrics *metrics = metrics_new();
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct runtime_name name;
	struct runtimes *r;

	(void)state;
	assert_true(p && metrics);
	p->refs = 1;
	p->as = address_space_new();
	assert_int_equal(runtimes_new_of(table, 2, 0, NULL, metrics, &r), 0);
	expect_calls("acbc");
	runtimes_map(r, p, NULL, "/x", 5);
	runtimes_see(r, p);
	runtimes_update(r, NULL, &nothing);
	runtimes_settle(r, NULL, 77);
	expect_calls("ambmasbsaubuatbt");
	assert_false(runtimes_find(r, p, 4, 9, &name));
	expect_calls("anbn");
	assert_true(runtimes_find(r, p, 0, 9, &name)); /* both know it: the first answer counts */
	assert_string_equal(name.type, "a");
	expect_calls("an");
	assert_false(runtimes_vary(r, p));
	runtimes_tell_memory(r, metrics);
	metrics_write(metrics, &text);
	assert_non_null(strstr(buf_text(&text), "\"first names\"} 1000\n"));
	assert_non_null(strstr(buf_text(&text), "\"second names\"} 1001\n"));
	process_put(p);
	expect_calls("afbf");
	runtimes_free(r);
	expect_calls("bdad");
	metrics_free(metrics);
}

/* Only the last knows. */
static int create_knowing(const struct runtime_context *context, void **ret)
{
	int error = create(context, ret);

	if (!error)
		*(struct probe *)*ret = (struct probe){ 'b', context->slot, 4, true };
	return error;
}

static void test_the_last_knows(void **state)
{
	static const struct runtime knowing = { 0,	"",   create_knowing, destroy, map,	    see,
						update, find, varies,	      settle,  memory_bytes };
	static const struct runtime *const two[] = { &first, &knowing };
	struct process p = { 0 };
	struct runtime_name name;
	struct runtimes *r;

	(void)state;
	assert_int_equal(runtimes_new_of(two, 2, 0, NULL, NULL, &r), 0);
	assert_true(runtimes_find(r, &p, 4, 9, &name));
	assert_string_equal(name.type, "b");
	assert_true(runtimes_vary(r, &p));
	expect_calls("acbcanbn");
	runtimes_free(r);
	expect_calls("bdad");
}

/* One that is not wanted is not made; the slots of the others have no gap. */
static void test_one_is_off(void **state)
{
	static const struct runtime away = { .id = 3, .create = create };
	static const struct runtime *const both[] = { &away, &first };
	struct runtimes *r;

	(void)state;
	assert_int_equal(runtimes_new_of(both, 2, RUNTIME_BIT(3), NULL, NULL, &r), 0);
	expect_calls("ac");
	runtimes_settle(r, NULL, 77);
	runtimes_free(r);
	expect_calls("atad");
}

static void test_one_fails(void **state)
{
	struct runtimes *r = NULL;

	(void)state;
	refuses = 2;
	assert_int_equal(runtimes_new_of(table, 2, 0, NULL, NULL, &r), -ENOMEM);
	expect_calls("acad");
	refuses = 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_is_asked),
		cmocka_unit_test(test_the_last_knows),
		cmocka_unit_test(test_one_is_off),
		cmocka_unit_test(test_one_fails),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
