/* SPDX-License-Identifier: Apache-2.0 */
/* ${...} in values: what stands in its place, what stays, what is read as YAML, and what ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/tree.h"
#include "cmd/pipeline/expand.h"

static char path[64];

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/hearth-expand-XXXXXX");
	fd = mkstemp(path);
	setenv("HEARTH_T_ONE", "one", 1);
	setenv("HEARTH_T_EMPTY", "", 1);
	setenv("HEARTH_T_NUMBER", "42", 1);
	setenv("HEARTH_T_LIST", "[a, b]", 1);
	setenv("HEARTH_T_AGAIN", "${env:HEARTH_T_ONE}!", 1);
	setenv("HEARTH_T_SELF", "${HEARTH_T_SELF}", 1);
	setenv("HEARTH_T_ODD", "{a: [", 1);
	setenv("HEARTH_T_PATH", path, 1);
	unsetenv("HEARTH_T_NONE");
	return fd < 0 || close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* The YAML @yaml becomes. */
static struct tree expanded(const char *yaml)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct tree t = TREE_EMPTY;

	assert_int_equal(tree_parse("c", yaml, strlen(yaml), &t, &error), 0);
	if (expand_tree(&t, &error))
		fail_msg("%s: %s", yaml, buf_text(&error));
	return t;
}

/* The value v of "v: @value" is this text. */
static void is_text(const char *value, const char *wanted)
{
	AUTO(buf_fini) struct buf yaml = BUF_EMPTY;
	AUTO(tree_fini) struct tree t = TREE_EMPTY;
	const struct tree *v;

	buf_printf(&yaml, "v: %s\n", value);
	t = expanded(buf_text(&yaml));
	v = tree_find(&t, "v");
	assert_non_null(v);
	assert_int_equal(v->kind, TREE_TEXT);
	assert_string_equal(v->text, wanted);
}

static void refuses(const char *yaml, const char *wanted)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO(tree_fini) struct tree t = TREE_EMPTY;

	assert_int_equal(tree_parse("c", yaml, strlen(yaml), &t, &error), 0);
	assert_int_equal(expand_tree(&t, &error), -EINVAL);
	assert_string_equal(buf_text(&error), wanted);
}

static void test_variables(void **state)
{
	(void)state;
	is_text("${env:HEARTH_T_ONE}", "one");
	is_text("${HEARTH_T_ONE}", "one");
	is_text("a${HEARTH_T_ONE}b${env:HEARTH_T_ONE}", "aonebone");
	is_text("'${HEARTH_T_NONE}'", "");
	is_text("x${HEARTH_T_EMPTY}y", "xy");
}

/* Without a value, or with an empty one, the default counts. */
static void test_defaults(void **state)
{
	(void)state;
	is_text("'${env:HEARTH_T_NONE:-two}'", "two");
	is_text("'${HEARTH_T_EMPTY:-two}'", "two");
	is_text("'${HEARTH_T_ONE:-two}'", "one");
	is_text("'${HEARTH_T_NONE:-}'", "");
	is_text("'${HEARTH_T_NONE:-a:-b}'", "a:-b");
}

static void test_dollars(void **state)
{
	(void)state;
	is_text("a$$b", "a$b");
	is_text("$$$$", "$$");
	is_text("a$b", "a$b");
	is_text("5$", "5$");
	is_text("$${HEARTH_T_ONE}", "${HEARTH_T_ONE}");
	is_text("'${HEARTH_T_ONE'", "${HEARTH_T_ONE");
	is_text("$HEARTH_T_ONE", "$HEARTH_T_ONE");
}

static void test_no_names(void **state)
{
	(void)state;
	refuses("v: '${}'\n", "c:1: '${}' names no variable; give one such as ${env:NAME}");
	refuses("a: 1\nv: '${env:}'\n", "c:2: '${}' names no variable; give one such as ${env:NAME}");
	refuses("v: '${1A}'\n", "c:1: '${1A}' names no variable; give one such as ${env:NAME}");
	refuses("v: '${a-b}'\n", "c:1: '${a-b}' names no variable; give one such as ${env:NAME}");
	refuses("v: '${:-x}'\n", "c:1: '${:-x}' names no variable; give one such as ${env:NAME}");
	is_text("'${_A1}'", "");
}

/* A value that is nothing else is YAML, but for one in quotes. */
static void test_read_as_yaml(void **state)
{
	AUTO(tree_fini)
	struct tree t = expanded("v: ${HEARTH_T_LIST}\nq: '${HEARTH_T_LIST}'\nn: ${HEARTH_T_NONE}\n"
				 "m: x${HEARTH_T_LIST}\n");
	const struct tree *v = tree_find(&t, "v");

	(void)state;
	assert_int_equal(v->kind, TREE_LIST);
	assert_int_equal(v->count, 2);
	assert_string_equal(v->items[1].text, "b");
	assert_int_equal(tree_find(&t, "q")->kind, TREE_TEXT);
	assert_string_equal(tree_find(&t, "q")->text, "[a, b]");
	assert_int_equal(tree_find(&t, "n")->kind, TREE_NULL);
	assert_string_equal(tree_find(&t, "m")->text, "x[a, b]");
}

/* What came from elsewhere stands where it was asked for. */
static void test_lines(void **state)
{
	AUTO(tree_fini) struct tree t = TREE_EMPTY;

	(void)state;
	t = expanded("one: 1\ntwo: ${env:HEARTH_T_LIST}\n");
	assert_int_equal(tree_find(&t, "two")->line, 2);
	assert_int_equal(tree_find(&t, "two")->items[1].line, 2);
	assert_string_equal(tree_find(&t, "two")->items[1].source, "c");
}

static void test_files(void **state)
{
	AUTO(buf_fini) struct buf yaml = BUF_EMPTY;
	AUTO(tree_fini) struct tree t = TREE_EMPTY;

	(void)state;
	write_file("a: 1\nb: ${HEARTH_T_ONE}\n\n");
	buf_printf(&yaml, "v: ${file:%s}\nq: 'is ${file:%s}'\n", path, path);
	t = expanded(buf_text(&yaml));
	assert_string_equal(tree_at(&t, "v.b")->text, "one");
	assert_string_equal(tree_find(&t, "q")->text, "is a: 1\nb: ${HEARTH_T_ONE}"); /* without the line feeds at its end */
}

static void test_yaml(void **state)
{
	(void)state;
	is_text("'${yaml:x y}'", "x y");
}

static void test_no_such_file(void **state)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO(tree_fini) struct tree t = TREE_EMPTY;
	static const char yaml[] = "a: 1\nv: ${file:/no/such/file}\n";

	(void)state;
	assert_int_equal(tree_parse("c", yaml, strlen(yaml), &t, &error), 0);
	assert_int_equal(expand_tree(&t, &error), -EINVAL);
	assert_memory_equal(buf_text(&error), "c:2: ", 5);
	assert_non_null(strstr(buf_text(&error), "/no/such/file"));
}

/* What came out is looked at again only where it is YAML. */
static void test_again(void **state)
{
	(void)state;
	is_text("${HEARTH_T_AGAIN}", "one!");
	is_text("'${HEARTH_T_AGAIN}'", "${env:HEARTH_T_ONE}!");
	refuses("a:\n  v: ${HEARTH_T_SELF}\n", "c:2: what stands for ${...} here names itself");
}

/* A text that only looks like YAML is a text. */
static void test_odd_yaml(void **state)
{
	(void)state;
	is_text("${HEARTH_T_ODD}", "{a: [");
}

static void test_in_lists_and_maps(void **state)
{
	AUTO(tree_fini) struct tree t = expanded("a:\n- x\n- ${HEARTH_T_ONE}\nb:\n  c:\n    d: ${HEARTH_T_NUMBER}\n");

	(void)state;
	assert_string_equal(tree_find(&t, "a")->items[1].text, "one");
	assert_string_equal(tree_at(&t, "b.c.d")->text, "42");
}

/* Keys stay as they are. */
static void test_keys(void **state)
{
	AUTO(tree_fini) struct tree t = expanded("${HEARTH_T_ONE}: x\n");

	(void)state;
	assert_non_null(tree_find(&t, "${HEARTH_T_ONE}"));
}

static void test_too_large(void **state)
{
	enum { MIB = 1 << 20 };
	AUTO_FREE char *value = malloc(MIB + 2);

	(void)state;
	memset(value, 'a', MIB + 1);
	value[MIB] = '\0';
	assert_int_equal(setenv("HEARTH_T_LARGE", value, 1), 0);
	{
		AUTO(tree_fini) struct tree t = expanded("v: '${HEARTH_T_LARGE}'\n");

		assert_int_equal(strlen(tree_find(&t, "v")->text), MIB);
	}
	refuses("v: '${HEARTH_T_LARGE}b'\n", "c:1: what stands for ${...} here is larger than 1 MiB");
	unsetenv("HEARTH_T_LARGE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variables),    cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_dollars),	     cmocka_unit_test(test_no_names),
		cmocka_unit_test(test_read_as_yaml), cmocka_unit_test(test_lines),
		cmocka_unit_test(test_files),	     cmocka_unit_test(test_yaml),
		cmocka_unit_test(test_no_such_file), cmocka_unit_test(test_again),
		cmocka_unit_test(test_odd_yaml),     cmocka_unit_test(test_in_lists_and_maps),
		cmocka_unit_test(test_keys),	     cmocka_unit_test(test_too_large),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
