/* SPDX-License-Identifier: Apache-2.0 */
/* Probes as users write them: what they mean, and what is said of those that mean nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/config.h"
#include "agent/probe/probe_text.h"
#include "base/cleanup.h"

static const struct {
	const char *text;
	enum probe_type type;
	const char *file, *provider, *name;
	uint64_t offset;
} sound[] = {
	{ "uprobe:/bin/x:main", PROBE_UPROBE, "/bin/x", "", "main", 0 },
	{ "uprobe:libc:malloc+4", PROBE_UPROBE, "libc", "", "malloc", 4 },
	{ "uprobe:libc:malloc+0x1f", PROBE_UPROBE, "libc", "", "malloc", 0x1f },
	{ "uprobe:/bin/x:0x4010", PROBE_UPROBE, "/bin/x", "", "", 0x4010 },
	{ "uprobe:/proc/1/root/lib/x.so:a*", PROBE_UPROBE, "/proc/1/root/lib/x.so", "", "a*", 0 },
	{ "uprobe:x:std::vector<int>::push_back(int&&)", PROBE_UPROBE, "x", "", "std::vector<int>::push_back(int&&)", 0 },
	{ "uprobe:x:a::operator+", PROBE_UPROBE, "x", "", "a::operator+", 0 },
	{ "uprobe:x:a::operator*+8", PROBE_UPROBE, "x", "", "a::operator*", 8 },
	{ "uprobe:x:main.(*T).work", PROBE_UPROBE, "x", "", "main.(*T).work", 0 },
	{ "uretprobe:x:f", PROBE_URETPROBE, "x", "", "f", 0 },
	{ "usdt:x:python:gc__start", PROBE_USDT, "x", "python", "gc__start", 0 },
	{ "usdt:x:gc__*", PROBE_USDT, "x", "", "gc__*", 0 },
	{ "kprobe:vfs_read", PROBE_KPROBE, "", "", "vfs_read", 0 },
	{ "kprobe:vfs_read+12", PROBE_KPROBE, "", "", "vfs_read", 12 },
	{ "kprobe:tcp_*", PROBE_KPROBE, "", "", "tcp_*", 0 },
	{ "kretprobe:vfs_read", PROBE_KRETPROBE, "", "", "vfs_read", 0 },
	{ "fentry:vfs_read", PROBE_FENTRY, "", "", "vfs_read", 0 },
	{ "fexit:vfs_read", PROBE_FEXIT, "", "", "vfs_read", 0 },
};

static void test_sound(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sound); i++) {
		struct agent_error err = { "" };
		struct probe_text t;

		print_message("%s\n", sound[i].text);
		assert_true(probe_is_text(sound[i].text));
		assert_int_equal(probe_text_parse(sound[i].text, &t, &err), 0);
		assert_int_equal(t.type, sound[i].type);
		assert_string_equal(t.file, sound[i].file);
		assert_string_equal(t.provider, sound[i].provider);
		assert_string_equal(t.name, sound[i].name);
		assert_int_equal(t.offset, sound[i].offset);
	}
}

static void test_wrong(void **state)
{
	static const char *const texts[] = {
		"uprobe:",	    "uprobe:x",	     "uprobe:x:",  "uprobe::f",	  "uprobe:x:f*+8", "uretprobe:x:f+8",
		"uretprobe:x:0x10", "usdt:x",	     "usdt:x:",	   "usdt:x:p:",	  "usdt:x::n",	   "kprobe:",
		"kprobe:0x10",	    "kretprobe:f+1", "fentry:f+1", "fexit:f+0x1",
	};
	struct agent_error err;
	struct probe_text t;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		err.message[0] = '\0';
		print_message("%s\n", texts[i]);
		assert_int_equal(probe_text_parse(texts[i], &t, &err), -EINVAL);
		assert_non_null(strstr(err.message, texts[i]));
		assert_non_null(strstr(err.message, "it is written "));
	}
	assert_false(probe_is_text("cpu-clock"));
	assert_false(probe_is_text("uprobes:x"));
	assert_false(probe_is_text("sched:sched_switch"));
	assert_false(probe_is_text("uprobe"));
}

static void test_arguments(void **state)
{
	static const char *const texts[] = { "uprobe:x:f:ret", "uretprobe:x:f:arg0", "fentry:f:arg0", "fexit:f:ret",
					     "uprobe:x:f:arg0:arg1:arg2:arg3:arg4" };
	struct agent_error err = { "" };
	struct probe_text t;

	(void)state;
	assert_int_equal(probe_text_parse("usdt:x:p:n:arg3:arg0", &t, &err), 0);
	assert_string_equal(t.name, "n");
	assert_string_equal(t.provider, "p");
	assert_true(t.arg_cnt == 2 && t.args[0] == 3 && t.args[1] == 0);
	assert_int_equal(probe_text_parse("uretprobe:x:a::f:ret", &t, &err), 0);
	assert_string_equal(t.name, "a::f");
	assert_true(t.arg_cnt == 1 && t.args[0] == PROBE_ARG_RETURN);
	assert_int_equal(probe_text_parse("uprobe:x:a::arg0", &t, &err), 0);
	assert_string_equal(t.name, "a::arg0");
	assert_int_equal(t.arg_cnt, 0);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(probe_text_parse(texts[i], &t, &err), -EINVAL);
}

static void test_long(void **state)
{
	char text[PROBE_FILE_BYTES + PROBE_NAME_BYTES + 64] = "uprobe:x:";
	struct agent_error err = { "" };
	struct probe_text t;

	(void)state;
	memset(text + strlen(text), 'a', PROBE_NAME_BYTES - 1);
	assert_int_equal(probe_text_parse(text, &t, &err), 0);
	strcat(text, "a");
	assert_int_equal(probe_text_parse(text, &t, &err), -EINVAL);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(probe_name_matches("malloc", "malloc"));
	assert_false(probe_name_matches("malloc", "mallocx"));
	assert_true(probe_name_matches("m?lloc*", "mallocx"));
	assert_true(probe_name_matches("vfs_[rw]*", "vfs_read"));
	assert_false(probe_name_matches("vfs_[rw]*", "vfs_open"));
	assert_true(probe_name_matches("a::operator[]", "a::operator[]"));
	assert_true(probe_name_matches("f(char*)", "f(char*)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound), cmocka_unit_test(test_wrong), cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_long),  cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
