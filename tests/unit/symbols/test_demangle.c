/* SPDX-License-Identifier: Apache-2.0 */
/* Readable names: chosen ones, every name of the C++ library against c++filt, and names made to hurt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/symbols.h"

static void check(const char *name, const char *expected)
{
	struct buf out = BUF_EMPTY;

	buf_puts(&out, "kept ");
	symbols_demangle(name, strlen(name), &out);
	assert_string_equal(buf_text(&out) + 5, expected);
	buf_fini(&out);
}

static void test_names(void **state)
{
	static const char *const cases[][2] = {
		{ "main", "main" },
		{ "_start", "_start" },
		{ "_Z", "_Z" },
		{ "_Znonsense", "_Znonsense" },
		{ "_ZN3foo3barEv", "foo::bar" },
		{ "_ZN3foo3barEi", "foo::bar" }, /* overloads share a name, as with perf */
		{ "_ZNKSt6vectorIiSaIiEE4sizeEv", "std::vector<int, std::allocator<int> >::size" },
		{ "_ZN3foo3barEv.cold", "foo::bar [clone .cold]" },
		{ "_ZN3foo3barEv.part.0.constprop.1", "foo::bar [clone .part.0] [clone .constprop.1]" },
		{ "_ZN3foo3barEv.llvm.1234567890", "foo::bar [clone .llvm.1234567890]" },
		{ "_ZN4core3fmt9Formatter3pad17h6e0c9e8f3a1b2c4dE.llvm.123", "core::fmt::Formatter::pad" },
		{ "leaf.constprop.0", "leaf.constprop.0" },
		{ "_ZN4core3fmt9Formatter3pad17h6e0c9e8f3a1b2c4dE", "core::fmt::Formatter::pad" },
		{ "_ZN50_$LT$T$u20$as$u20$core..convert..From$LT$T$GT$$GT$4from17h0123456789abcdefE",
		  "<T as core::convert::From<T>>::from" },
		{ "_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function" },
		{ "_RNvMCs1234_7mycrateNtB2_7Example3foo", "<mycrate::Example>::foo" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check(cases[i][0], cases[i][1]);
}

/* Not terminated by a NUL, and with one inside. */
static void test_length(void **state)
{
	struct buf out = BUF_EMPTY;

	(void)state;
	symbols_demangle("_ZN3foo3barEvXYZ", 13, &out);
	assert_string_equal(buf_text(&out), "foo::bar");
	buf_reset(&out);
	symbols_demangle("", 0, &out);
	assert_int_equal(out.len, 0);
	symbols_demangle("_ZN3f\0o3barEv", 13, &out);
	assert_int_equal(out.len, 13);
	buf_fini(&out);
}

static void test_against_cxxfilt(void **state)
{
	static const char *const paths[] = { "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib64/libstdc++.so.6" };
	const char *path = access(paths[0], R_OK) == 0 ? paths[0] : paths[1];
	AUTO_FREE char *name = NULL, *expected = NULL;
	size_t name_cap = 0, expected_cap = 0, count = 0;
	char list[512], filter[600];
	FILE *names, *truth;

	(void)state;
	if (access(path, R_OK))
		skip();
	snprintf(list, sizeof(list), "nm -D --defined-only %s | awk '{print $NF}' | sed 's/@.*//' | grep ^_Z", path);
	snprintf(filter, sizeof(filter), "%s | c++filt -p -i", list);
	names = popen(list, "r");
	truth = popen(filter, "r");
	assert_non_null(names);
	assert_non_null(truth);
	while (getline(&name, &name_cap, names) > 0) {
		assert_true(getline(&expected, &expected_cap, truth) > 0);
		name[strcspn(name, "\n")] = '\0';
		expected[strcspn(expected, "\n")] = '\0';
		check(name, expected);
		count++;
	}
	pclose(names);
	pclose(truth);
	assert_true(count > 1000);
}

/* Each S<n>_ doubles what the one before stands for: some hundred characters of name, 2^60 of text. */
static void test_exponential(void **state)
{
	struct buf name = BUF_EMPTY, out = BUF_EMPTY;

	(void)state;
	buf_puts(&name, "_Z1fIN1aE");
	for (int i = 0; i < 60; i++)
		buf_printf(&name, "1bIS%.*s_S%.*s_E", i > 0, &"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36], i > 0,
			   &"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36]);
	buf_puts(&name, "EvT_");
	symbols_demangle((char *)name.data, name.len, &out);
	assert_true(out.len > 0 && out.len <= 64 << 10);
	buf_fini(&out);
	buf_fini(&name);
}

static void test_deep_and_long(void **state)
{
	size_t sizes[] = { 1000, 60000, 65536, 1 << 20 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		AUTO_FREE char *name = malloc(sizes[i]);
		struct buf out = BUF_EMPTY;

		assert_non_null(name);
		for (int kind = 0; kind < 2; kind++) {
			memset(name, kind ? 'R' : 'P', sizes[i]);
			memcpy(name, kind ? "_RY" : "_Z1f", kind ? 3 : 4);
			buf_reset(&out);
			symbols_demangle(name, sizes[i], &out);
			if (out.len == 1 && kind == 0) /* "f" and rubbish behind it, where parameters stand */
				continue;
			assert_int_equal(out.len, sizes[i]); /* no such name: as it is */
			assert_memory_equal(out.data, name, sizes[i]);
		}
		buf_fini(&out);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),		cmocka_unit_test(test_length),
		cmocka_unit_test(test_against_cxxfilt), cmocka_unit_test(test_exponential),
		cmocka_unit_test(test_deep_and_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
