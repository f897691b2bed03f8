/* SPDX-License-Identifier: Apache-2.0 */
/* The model's memory, references and look-ups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "otlp_bytes.h"
#include "proto/arena.h"
#include "proto/otlp/otlp.h"

static void arena_blocks_are_zero_aligned_and_apart(void **state)
{
	static const size_t sizes[] = { 1, 0, 7, 8, 9, 100, 4096, 5000, 65536, 131072, 131073, 300000 };
	struct arena *a;

	(void)state;
	/* again and again, for what comes back from the pool must be zero too */
	for (int round = 0; round < 3; round++) {
		a = arena_new();
		assert_non_null(a);
		for (unsigned n = 0; n < 40 * ARRAY_LEN(sizes); n++) {
			size_t size = sizes[n % ARRAY_LEN(sizes)];
			uint8_t *block = arena_alloc(a, size);

			assert_non_null(block);
			assert_int_equal((uintptr_t)block % 8, 0);
			for (size_t i = 0; i < size; i++)
				assert_true(block[i] == 0);
			memset(block, 0xff, size);
		}
		assert_true(arena_memory_bytes(a) > 40 * 600000 && arena_memory_bytes(a) < 2 * 40 * 620000);
		arena_free(a);
	}
	arena_free(NULL);
}

/* Memory is all the arenas', then kept for the next ones, then nobody's. */
static void arenas_say_what_they_hold(void **state)
{
	size_t before = arenas_memory_bytes();
	struct arena *a = arena_new(), *b = arena_new();

	(void)state;
	arenas_give_back();
	assert_int_equal(arenas_spare_bytes(), 0);
	for (int i = 0; i < 1000; i++)
		assert_non_null(arena_alloc(i % 2 ? a : b, 10000));
	assert_int_equal(arenas_memory_bytes(), before + arena_memory_bytes(a) + arena_memory_bytes(b));
	arena_free(a);
	assert_int_equal(arenas_memory_bytes(), before + arena_memory_bytes(b));
	assert_true(arenas_spare_bytes() > 4 << 20);
	arena_free(b);
	assert_int_equal(arenas_memory_bytes(), before);
	arenas_give_back();
	assert_int_equal(arenas_spare_bytes(), 0);
}

static void arena_refuses_absurd_sizes(void **state)
{
	struct arena *a = arena_new();

	(void)state;
	assert_null(arena_alloc(a, SIZE_MAX));
	assert_null(arena_alloc(a, SIZE_MAX - 7));
	assert_non_null(arena_alloc(a, 1));
	arena_free(a);
}

static void *get_and_put(void *arg)
{
	struct profiles *p = arg;

	for (int i = 0; i < 10000; i++)
		profiles_put(profiles_get(p));
	profiles_put(p);
	return NULL;
}

static void last_reference_frees(void **state)
{
	struct profiles *p = profiles_new();
	pthread_t threads[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, get_and_put, profiles_get(p)), 0);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&p->refs), 1);
	profiles_put(p);
	profiles_put(NULL);
}

static void counts_its_memory(void **state)
{
	struct profiles *p = profiles_new();
	size_t before = profiles_memory_bytes(p);

	(void)state;
	assert_non_null(profiles_alloc(p, 1 << 20));
	assert_true(profiles_memory_bytes(p) >= before + (1 << 20));
	before = profiles_memory_bytes(p);
	p->source = malloc(1 << 20);
	assert_true(profiles_memory_bytes(p) >= before + (1 << 20));
	profiles_put(p);
}

static void finds_attributes_by_either_form(void **state)
{
	struct buf b = BUF_EMPTY;
	struct otlp_error err;
	struct profiles *p;
	const struct key_values *kvs;
	const struct sample *sample;
	const struct any_value *v;
	struct str s;

	(void)state;
	bytes_fields("1{1{1{1'plain' 2{1'x'}} 1{3:1 2{8:2}} 1{1'number' 2{3:5}} 1{1'plain' 2{1'second'}}}"
		     "2{2{2{2[2 1 3] 5=7}}}} 2{5'' 5'by index' 5'text' 6{} 6{1:1 2{8:2}} 6{1:2 2{3:9}} 6{1:1 2{1'later'}}}",
		     &b);
	assert_int_equal(otlp_decode(b.data, b.len, false, &p, &err), 0);
	buf_fini(&b); /* the strings were copied */
	kvs = &p->resources[0].resource.attributes;
	sample = &p->resources[0].scopes[0].profiles[0].samples[0];

	v = profiles_find_key(p, kvs, "plain");
	assert_true(v == &kvs->items[0].value && profiles_value_string(p, v, &s) && str_is(s, "x"));
	v = profiles_find_key(p, kvs, "by index");
	assert_true(v == &kvs->items[1].value && profiles_value_string(p, v, &s) && str_is(s, "text"));
	v = profiles_find_key(p, kvs, "number");
	assert_true(v && v->integer == 5 && !profiles_value_string(p, v, &s));
	assert_null(profiles_find_key(p, kvs, "plai"));
	assert_null(profiles_find_key(p, kvs, "plain "));

	v = profiles_find_attribute(p, &sample->attributes, "by index");
	assert_true(v == &p->dict.attributes[1].value && profiles_value_string(p, v, &s) && str_is(s, "text"));
	v = profiles_find_attribute(p, &sample->attributes, "text");
	assert_true(v && v->kind == VALUE_INT && v->integer == 9);
	assert_null(profiles_find_attribute(p, &sample->attributes, "none"));
	profiles_put(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_blocks_are_zero_aligned_and_apart),
		cmocka_unit_test(arenas_say_what_they_hold),
		cmocka_unit_test(arena_refuses_absurd_sizes),
		cmocka_unit_test(last_reference_frees),
		cmocka_unit_test(counts_its_memory),
		cmocka_unit_test(finds_attributes_by_either_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
