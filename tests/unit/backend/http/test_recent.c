/* SPDX-License-Identifier: Apache-2.0 */
/* The last requests, and what is shown of their headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "backend/http/recent.h"
#include "base/cleanup.h"

static const char *text_of(struct recent_headers *h, const char *name, const char *value)
{
	memset(h, 0, sizeof(*h));
	recent_header(h, name, strlen(name), value, strlen(value));
	assert_true(h->len < sizeof(h->text));
	h->text[h->len] = '\0';
	return h->text;
}

static void test_header(void **state)
{
	static const struct {
		const char *name, *value, *text;
	} headers[] = {
		{ "User-Agent", "curl/7.88.1", "User-Agent: curl/7.88.1\n" },
		{ "x-team", "", "x-team: \n" },
		{ ":path", "/a", "" },
		{ "", "a", "" },
		{ "x-a", "one\ntwo\x7f\x01", "x-a: one?two??\n" },
		{ "Authorization", "Bearer s3cret", "Authorization: (not shown)\n" },
		{ "COOKIE", "a=s3cret", "COOKIE: (not shown)\n" },
		{ "x-api-key", "s3cret", "x-api-key: (not shown)\n" },
		{ "x-auth-token", "s3cret", "x-auth-token: (not shown)\n" },
		{ "my-Password", "s3cret", "my-Password: (not shown)\n" },
	};
	struct recent_headers h;
	char name[300], value[300], wanted[320];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		assert_string_equal(text_of(&h, headers[i].name, headers[i].value), headers[i].text);
	memset(value, 'v', 161);
	value[161] = '\0';
	snprintf(wanted, sizeof(wanted), "n: %.160s...\n", value);
	assert_string_equal(text_of(&h, "n", value), wanted);
	value[160] = '\0';
	snprintf(wanted, sizeof(wanted), "n: %s\n", value);
	assert_string_equal(text_of(&h, "n", value), wanted);
	memset(name, 'n', 299);
	name[299] = '\0';
	snprintf(wanted, sizeof(wanted), "%.64s: v\n", name);
	assert_string_equal(text_of(&h, name, "v"), wanted);
}

/* A header that does not fit is left out, and smaller ones behind it come in. */
static void test_many_headers(void **state)
{
	struct recent_headers h = { 0 };
	char value[100];

	(void)state;
	memset(value, 'v', sizeof(value));
	for (int i = 0; i < 100; i++)
		recent_header(&h, "name", 4, value, sizeof(value));
	assert_int_equal(h.len, sizeof(h.text) / (sizeof(value) + 7) * (sizeof(value) + 7));
	recent_header(&h, "a", 1, "b", 1);
	assert_memory_equal(h.text + h.len - 5, "a: b\n", 5);
}

static void test_last(void **state)
{
	static struct recent_request found[60];
	struct recent_headers h = { 0 };

	(void)state;
	for (unsigned i = 0; i < 53; i++) {
		char path[16];

		snprintf(path, sizeof(path), "/%u", i);
		text_of(&h, "n", path);
		recent_add(path, 200 + i, i, &h);
	}
	assert_int_equal(recent_list(found, ARRAY_LEN(found)), 50);
	assert_string_equal(found[0].path, "/3");
	assert_true(found[49].status == 252 && found[49].bytes == 52 && found[49].unix_ns >= found[0].unix_ns);
	assert_memory_equal(found[49].headers.text, "n: /52\n", found[49].headers.len);
	assert_int_equal(recent_list(found, 2), 2);
	assert_string_equal(found[0].path, "/51");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_many_headers),
		cmocka_unit_test(test_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
