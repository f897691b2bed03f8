/* SPDX-License-Identifier: Apache-2.0 */
/* The dir sink: its files byte for byte, their names, and where the numbers go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "sinks/sinks.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/sinks/vectors.h"

static char dir[] = "/tmp/hearth-dir-XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void assert_file(const char *name, const char *want)
{
	AUTO(buf_fini) struct buf got = BUF_EMPTY;
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s is not there", path);
	assert_int_equal(buf_reserve(&got, 65536), 0);
	got.len = fread(got.data, 1, 65535, f);
	fclose(f);
	assert_string_equal(buf_text(&got), want);
}

static bool is_there(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void write_once(struct resource_profiles *resources, uint32_t count, const struct dir_options *options)
{
	struct profiles *p = vector_new(resources, count);
	struct sink *s;

	assert_int_equal(sink_dir_new(dir, options, &s), 0);
	assert_int_equal(sink_consume(s, p, NULL), 0);
	sink_free(s);
	profiles_put(p);
}

#define T1_ID "6d7d5c336f79fbfae3e76c4a25b2c3805ffa74ab4c6145d4219ec2b92185fb6f"

static const char t1_text[] = "{\n"
			      "  \"container_id\": \"" T1_ID "\",\n"
			      "  \"profile_id\": \"00000000000000000000000000000000\",\n"
			      "  \"sample_type\": \"samples\",\n"
			      "  \"timestamps_unix_nano\": [\n"
			      "    1758603335517877230\n"
			      "  ],\n"
			      "  \"attributes\": {\n"
			      "    \"process.executable.name\": \"etcd\",\n"
			      "    \"process.executable.path\": \"/usr/local/bin/etcd\",\n"
			      "    \"process.pid\": \"3086\",\n"
			      "    \"thread.id\": \"11322\",\n"
			      "    \"thread.name\": \"etcd\"\n"
			      "  },\n"
			      "  \"frames\": [\n"
			      "    {\n"
			      "      \"type\": \"kernel\",\n"
			      "      \"function\": \"do_syscall_64\"\n"
			      "    },\n"
			      "    {\n"
			      "      \"type\": \"go\",\n"
			      "      \"function\": \"runtime.futex\",\n"
			      "      \"file\": \"runtime/sys_linux_amd64.s\",\n"
			      "      \"line\": 558\n"
			      "    }\n"
			      "  ]\n"
			      "}";

static const char t2_text[] = "{\n"
			      "  \"container_id\": \"abc123\",\n"
			      "  \"profile_id\": \"00000000000000000000000000000000\",\n"
			      "  \"sample_type\": \"unknown\",\n"
			      "  \"frames\": null\n"
			      "}";

static void writes_samples(void **state)
{
	struct stat st;
	char path[256];

	(void)state;
	write_once(t1_resources, 1, NULL);
	assert_file(T1_ID "/samples/1.json", t1_text);
	write_once(t2_resources, ARRAY_LEN(t2_resources), NULL);
	assert_file("abc123/unknown/1.json", t2_text);
	snprintf(path, sizeof(path), "%s/abc123/unknown/1.json", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(st.st_nlink, 1);
}

/* Without container, with frames that have no lines. */
static void writes_addresses(void **state)
{
	static const char *const parts[] = {
		"\"address\": \"0xd4377\",\n      \"mapping\": \"libc.so.6\"\n",
		"\"address\": \"0xa\",",
		"\"address\": \"0x7f12345678\"\n    },",
		"\"type\": \"unknown\",\n      \"address\": \"0x1234\"",
		"\"cpu.logical_number\": \"5\",\n",
	};
	AUTO(buf_fini) struct buf got = BUF_EMPTY;
	char path[256];
	FILE *f;

	(void)state;
	write_once(t3_resources, 1, NULL);
	snprintf(path, sizeof(path), "%s/unknown/events/1.json", dir);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(buf_reserve(&got, 65536), 0);
	got.len = fread(got.data, 1, 65535, f);
	fclose(f);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (!strstr(buf_text(&got), parts[i]))
			fail_msg("no %s in %s", parts[i], buf_text(&got));
}

static void numbers_go_on(void **state)
{
	char path[256];

	(void)state;
	write_once(t1_resources, 1, NULL);
	write_once(t1_resources, 1, NULL);
	assert_true(is_there(T1_ID "/samples/2.json") && !is_there(T1_ID "/samples/3.json"));
	snprintf(path, sizeof(path), "mkdir -p %s/abc123/unknown && cd %s/abc123/unknown && touch 41.json x9.json 99.jsonl",
		 dir, dir);
	assert_int_equal(system(path), 0);
	write_once(t2_resources, 1, NULL);
	assert_file("abc123/unknown/42.json", t2_text);
	snprintf(path, sizeof(path), "[ -z \"$(find %s -name '.new*')\" ]", dir);
	assert_int_equal(system(path), 0);
}

/* Two that write to one folder leave each other's files alone. */
static void shares_a_folder(void **state)
{
	struct profiles *p = vector_new(t1_resources, 1);
	struct sink *a, *b;

	(void)state;
	assert_int_equal(sink_dir_new(dir, NULL, &a), 0);
	assert_int_equal(sink_dir_new(dir, NULL, &b), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sink_consume(a, p, NULL), 0);
		assert_int_equal(sink_consume(b, p, NULL), 0);
	}
	assert_file(T1_ID "/samples/6.json", t1_text);
	assert_false(is_there(T1_ID "/samples/7.json"));
	sink_free(a);
	sink_free(b);
	profiles_put(p);
}

static void names_are_safe(void **state)
{
	static const struct {
		struct str id;
		const char *folder;
	} cases[] = {
		{ TEXT("../../etc"), "%2E.%2F..%2Fetc" },
		{ TEXT("/"), "%2F" },
		{ TEXT(".."), "%2E." },
		{ TEXT("a\0b"), "a%00b" },
		{ TEXT("a%2Fb"), "a%252Fb" },
		{ TEXT("docker://1.2-3_x"), "docker%3A%2F%2F1.2-3_x" },
		{ TEXT("\xc3\xa9\n"), "%C3%A9%0A" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct key_value kv = { .key = TEXT("container.id"),
					.value = { .kind = VALUE_STRING, .string = cases[i].id } };
		struct resource_profiles resource = t1_resources[0];
		char path[256];

		resource.resource.attributes = (struct key_values){ &kv, 1 };
		write_once(&resource, 1, NULL);
		snprintf(path, sizeof(path), "%s/samples/1.json", cases[i].folder);
		if (!is_there(path))
			fail_msg("no %s", path);
	}
}

/* Long names are cut, and stay apart. */
static void long_names_stay_apart(void **state)
{
	char text[4096], command[256];
	struct key_value kv = { .key = TEXT("container.id"),
				.value = { .kind = VALUE_STRING, .string = { text, sizeof(text) } } };
	struct resource_profiles resource = t1_resources[0];

	(void)state;
	memset(text, '/', sizeof(text));
	resource.resource.attributes = (struct key_values){ &kv, 1 };
	write_once(&resource, 1, NULL);
	text[4095] = '.';
	write_once(&resource, 1, NULL);
	snprintf(command, sizeof(command), "[ $(ls %s | wc -l) = 2 ] && [ $(ls %s | head -1 | wc -c) = 201 ]", dir, dir);
	assert_int_equal(system(command), 0);
}

static void selects(void **state)
{
	static const char *const types[] = { "events", NULL };
	const struct dir_options other = { .container_id = "abc123" }, events = { .sample_types = types };

	(void)state;
	write_once(t1_resources, 1, &other);
	write_once(t1_resources, 1, &events);
	assert_false(is_there(T1_ID));
	write_once(t2_resources, 1, &other);
	assert_true(is_there("abc123/unknown/1.json"));
	write_once(t3_resources, 1, &events);
	assert_true(is_there("unknown/events/1.json"));
}

static void follows_no_links(void **state)
{
	struct profiles *p = vector_new(t1_resources, 1);
	char command[256];
	struct sink *s;

	(void)state;
	snprintf(command, sizeof(command), "mkdir %s/elsewhere && ln -s elsewhere %s/" T1_ID, dir, dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(sink_dir_new(dir, NULL, &s), 0);
	assert_true(sink_consume(s, p, NULL) < 0);
	assert_false(is_there("elsewhere/samples"));
	sink_free(s);
	assert_int_equal(sink_dir_new("/dev/null", NULL, &s), -ENOTDIR);
	assert_int_equal(sink_dir_new("/nowhere/at/all", NULL, &s), -ENOENT);
	profiles_put(p);
}

/* The number that the next descriptor gets. */
static rlim_t next_descriptor(void)
{
	int fd = dup(STDIN_FILENO);

	assert_true(fd >= 0);
	close(fd);
	return (rlim_t)fd;
}

/* Whichever descriptor is lacking, none of those that were had stays open. */
static void lacks_descriptors(void **state)
{
	enum { MOST = 12 };
	struct rlimit usual;
	int failed = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	for (rlim_t more = 0; more < MOST; more++) {
		struct profiles *p = vector_new(t1_resources, 1);
		const int before = open_descriptors();
		struct sink *s;

		assert_int_equal(sink_dir_new(dir, NULL, &s), 0);
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ next_descriptor() + more, usual.rlim_max });
		failed += sink_consume(s, p, NULL) != 0;
		setrlimit(RLIMIT_NOFILE, &usual);
		sink_free(s);
		profiles_put(p);
		assert_int_equal(open_descriptors(), before);
	}
	assert_in_range(failed, 1, MOST - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(writes_samples, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(writes_addresses, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(numbers_go_on, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(shares_a_folder, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(names_are_safe, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(long_names_stay_apart, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(selects, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(follows_no_links, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(lacks_descriptors, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
