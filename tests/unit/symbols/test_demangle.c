/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readable names: chosen ones in every style, every name of the C++ library against c++filt, what is left out of long ones,
 * and names made to hurt. tests/symbols/names.py compares those of whole programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <malloc.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/demangle.h"
#include "symbols/shorten.h"

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

static int set_short(void **state)
{
	(void)state;
	symbols_set_demangling(DEMANGLE_SHORT, false);
	return 0;
}

static void test_styles(void **state)
{
	static const char cxx[] = "_ZN3foo3barISsEEiT_.cold", legacy[] = "_ZN3foo3bar17h6e0c9e8f3a1b2c4dE",
			  v0[] = "_RNvCskwGfYPst2Cb_3foo16example_function";

	(void)state;
	symbols_set_demangling(DEMANGLE_FULL, false);
	check(cxx, "int foo::bar<std::basic_string<char, std::char_traits<char>, std::allocator<char> > >"
		   "(std::basic_string<char, std::char_traits<char>, std::allocator<char> >) [clone .cold]");
	check(legacy, "foo::bar");
	check(v0, "foo::example_function");
	symbols_set_demangling(DEMANGLE_FULL, true);
	check(legacy, "foo::bar::h6e0c9e8f3a1b2c4d");
	check(v0, "foo[ef17931c9e9b4641]::example_function");
	symbols_set_demangling(DEMANGLE_SHORT, true);
	check(cxx, "foo::bar<std::string> [clone .cold]");
	check(legacy, "foo::bar::h6e0c9e8f3a1b2c4d");
	symbols_set_demangling(DEMANGLE_NONE, true);
	check(cxx, cxx);
	check(legacy, legacy);
	check(v0, v0);
}

/* What other languages have in their files can be read as it is. */
static void test_other_languages(void **state)
{
	static const char *const names[] = { "main.(*T).Run",
					     "runtime.mallocgc",
					     "$s4main3FooV3baryyF",
					     "_D3std5stdio4File5closeMFZv",
					     "Main_zdwloop_info",
					     "caml_main",
					     "_RbInt",
					     "_Zfoo" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		check(names[i], names[i]);
}

static void test_shorten(void **state)
{
	static const struct {
		const char *name;
		unsigned depth, bytes;
		const char *expected;
	} cases[] = {
		{ "f", 8, 16, "f" },
		{ "a<b<c<d> > >::f", 8, 512, "a<b<c<d> > >::f" },
		{ "a<b<c<d> > >::f", 2, 512, "a<b<c<...> > >::f" },
		{ "a<b<c<d> > >::f", 0, 512, "a<...>::f" },
		{ "a<b<ccccccccc>, d>::f", 8, 20, "a<b<...>, d>::f" },
		{ "a<b<ccccccccc>, dddddd>::f", 8, 16, "a<...>::f" },
		{ "operator<<<a<b>>", 0, 512, "operator<<<...>" },
		{ "n::operator< <int>", 0, 512, "n::operator< <...>" },
		{ "n::operator-><int>::f", 0, 512, "n::operator-><...>::f" },
		{ "n::operator()<int>::f", 0, 512, "n::operator()<...>::f" },
		{ "my_operator<int>::f", 0, 512, "my_operator<...>::f" },
		{ "<a::B<c> as d::E<f>>::g::<h>", 1, 512, "<a::B<...> as d::E<...>>::g::<h>" },
		{ "f::<fn(a<b>) -> c<d>>::g", 1, 512, "f::<fn(a<...>) -> c<...>>::g" },
		{ "e<((a)>(b)), c<d> >::f", 1, 512, "e<((a)>(b)), c<...> >::f" },
		{ "e<(a)<(b), c<d> >::f", 1, 512, "e<(a)<(b), c<...> >::f" },
		{ "e<(v<(b)), c<d> >::f", 1, 512, "e<(v<...), c<...> >::f" },
		{ "a)b(c", 8, 16, "a)b(c" },
		{ "a<b<c", 0, 16, "a<b<c" },
		{ "0123456789abcdefghij", 8, 16, "012345...defghij" },
		{ "01234\xc3\xa4"
		  "789abcd\xc3\xa4"
		  "efghijk",
		  8, 16, "01234...efghijk" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf out = BUF_EMPTY;

		shorten_name(cases[i].name, strlen(cases[i].name), cases[i].depth, cases[i].bytes, &out);
		assert_string_equal(buf_text(&out), cases[i].expected);
		buf_fini(&out);
	}
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

/* Every exported name of the C++ library as @filter says. */
static void check_library(const char *filter)
{
	static const char *const paths[] = { "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib64/libstdc++.so.6" };
	const char *path = access(paths[0], R_OK) == 0 ? paths[0] : paths[1];
	AUTO_FREE char *name = NULL, *expected = NULL;
	size_t name_cap = 0, expected_cap = 0, count = 0;
	char list[512], judge[600];
	FILE *names, *truth;

	if (access(path, R_OK))
		skip();
	snprintf(list, sizeof(list), "nm -D --defined-only %s | awk '{print $NF}' | sed 's/@.*//' | grep ^_Z", path);
	snprintf(judge, sizeof(judge), "%s | %s", list, filter);
	names = popen(list, "r");
	truth = popen(judge, "r");
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

static void test_against_cxxfilt(void **state)
{
	(void)state;
	check_library("c++filt -p -i");
	symbols_set_demangling(DEMANGLE_FULL, false);
	check_library("c++filt");
}

/* Each S<n>_ is twice what the one before stands for: some hundred characters of name, 2^60 of text. */
static void test_exponential(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	struct buf name = BUF_EMPTY;

	(void)state;
	buf_puts(&name, "_Z1fI1a");
	for (int i = 0; i < 60; i++) {
		char high = digits[2 * i / 36], low = digits[2 * i % 36];

		buf_printf(&name, "1bIS%.*s%c_S%.*s%c_E", 2 * i >= 36, &high, low, 2 * i >= 36, &high, low);
		if (i == 1)
			check("_Z1fI1a1bIS0_S0_E1bIS2_S2_EEvT_", "f<a, b<a, a>, b<b<a, a>, b<a, a> > >");
	}
	buf_puts(&name, "EvT_");
	check(buf_text(&name), buf_text(&name));
	buf_fini(&name);
}

/* The same of Rust: each pair is twice the one before. @ident is the innermost. */
static void print_pairs(const char *ident, struct buf *name)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t last;

	buf_puts(name, "_RINvC1a1fNtC1b");
	last = name->len - 2 - strlen("NtC1b");
	buf_puts(name, ident);
	for (int i = 0; i < 60; i++) {
		size_t at = name->len - 2;

		buf_putc(name, 'T');
		for (int k = 0; k < 2; k++) {
			size_t n = last - 1; /* "_" is 0, "0_" is 1 */

			buf_putc(name, 'B');
			if (n >= 62)
				buf_putc(name, digits[n / 62]);
			buf_putc(name, digits[n % 62]);
			buf_putc(name, '_');
		}
		buf_putc(name, 'E');
		last = at;
	}
	buf_putc(name, 'E');
}

/* And nothing is lost when the printer is left, also not what it had decoded. */
static void test_exponential_rust(void **state)
{
	static const char *const idents[] = { "3abc", "u43cafcafcafcafcafcafcafcafcafcafcafcafcaf_eqd" };
	struct buf name = BUF_EMPTY;
	size_t before = 0;

	(void)state;
	check("_RNvC1bu7caf_dma", "b::caf\xc3\xa9");
	check("_RNvC1bu7cu0cafd", "_RNvC1bu7cu0cafd"); /* punycode of no character */
	for (size_t i = 0; i < ARRAY_LEN(idents); i++) {
		buf_reset(&name);
		print_pairs(idents[i], &name);
		for (int k = 0; k < 100; k++) {
			check(buf_text(&name), buf_text(&name));
			if (k == 10) /* the allocator keeps a few blocks of each size */
				before = mallinfo2().uordblks;
		}
		assert_in_range(mallinfo2().uordblks, 0, before + 256);
	}
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
		cmocka_unit_test(test_names),		cmocka_unit_test_teardown(test_styles, set_short),
		cmocka_unit_test(test_other_languages), cmocka_unit_test(test_shorten),
		cmocka_unit_test(test_length),		cmocka_unit_test_teardown(test_against_cxxfilt, set_short),
		cmocka_unit_test(test_exponential),	cmocka_unit_test(test_exponential_rust),
		cmocka_unit_test(test_deep_and_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
