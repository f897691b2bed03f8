/* SPDX-License-Identifier: Apache-2.0 */
/* The lazy backend's command lines, in hearth's words. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/seed_flags.h"

#define ANYWHERE "--grpc-address 0.0.0.0:4317 --http-address 0.0.0.0:4318 "

/* @words apart by spaces; one that is "''" is empty. */
static void rewritten(const char *words, int error, const char *want)
{
	char copy[256], *argv[32] = { 0 }, *save = NULL;
	AUTO(buf_fini) struct buf message = BUF_EMPTY, got = BUF_EMPTY;
	struct seed_flags f;
	int argc = 0;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = strcmp(word, "''") ? word : word + 2;
	assert_int_equal(seed_flags_rewrite(argc, argv, &f, &message), error);
	for (int i = 0; i < f.argc; i++)
		buf_printf(&got, "%s%s", i ? " " : "", f.argv[i]);
	if (error)
		assert_string_equal(buf_text(&message), want);
	else if (want)
		assert_string_equal(buf_text(&got), want);
	else
		assert_null(f.argv);
	seed_flags_fini(&f);
}

static void test_rewrites(void **state)
{
	(void)state;
	rewritten("serve -receiver stdout", 0, "serve " ANYWHERE "--print");
	rewritten("serve -receiver=stdout -stdout.sample-types a,b,,", 0,
		  "serve " ANYWHERE "--print --print-sample-type a --print-sample-type b");
	rewritten("serve -stdout.sample-types \ta\t,b\t\t,\t,", 0,
		  "serve " ANYWHERE "--print --print-sample-type a --print-sample-type b"); /* without blanks around them */
	rewritten("serve --stdout.sample-types=samples", 0, "serve " ANYWHERE "--print --print-sample-type samples");
	rewritten("serve -stdout.sample-types ''", 0, "serve " ANYWHERE "--print");
	rewritten("serve -receiver prometheus", 0, "serve " ANYWHERE "--sink prometheus --metrics-address 127.0.0.1:2112");
	rewritten("serve --receiver prometheus -prometheus.metrics 0.0.0.0:99 -q", 0,
		  "serve -q " ANYWHERE "--sink prometheus --metrics-address 0.0.0.0:99");
	rewritten("serve -receiver filesystem", 0, "serve " ANYWHERE "--sink dir=profiles");
	rewritten("serve -filesystem.dir=/d -filesystem.container-id c1 -receiver filesystem", 0,
		  "serve " ANYWHERE "--sink dir=/d --dir-container c1");
	rewritten("serve -grpc-address 127.0.0.1:1 --http-address 127.0.0.1:2", 0,
		  "serve --grpc-address 127.0.0.1:1 --http-address 127.0.0.1:2 --print");
	rewritten("serve -receiver prometheus -receiver stdout", 0, "serve " ANYWHERE "--print");
}

static void test_leaves_alone(void **state)
{
	(void)state;
	rewritten("serve", 0, NULL);
	rewritten("serve --grpc-address 127.0.0.1:1 --http-address=x --print -v", 0, NULL);
	rewritten("serve -- -receiver stdout", 0, NULL);
	rewritten("serve receiver stdout.sample-types - -- -h", 0, NULL);
}

static void test_refuses(void **state)
{
	(void)state;
	rewritten("serve -receiver x", -EINVAL, "unknown receiver \"x\" (supported: stdout, prometheus, filesystem)");
	rewritten("serve -receiver", -EINVAL, "-receiver needs a value");
	rewritten("serve -receiver= -v", -EINVAL, "unknown receiver \"\" (supported: stdout, prometheus, filesystem)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rewrites),
		cmocka_unit_test(test_leaves_alone),
		cmocka_unit_test(test_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
