/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of files: known vectors, and what readelf says. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "symbols/symbols.h"

static int read_bytes(const void *data, size_t len, struct build_ids *ids)
{
	AUTO_CLOSE int fd = memfd_create("ids", MFD_CLOEXEC);

	assert_int_equal(write(fd, data, len), len);
	return build_ids_read(fd, ids);
}

static void test_htlhash(void **state)
{
	struct build_ids ids;
	uint8_t bytes[12345];

	(void)state;
	assert_int_equal(read_bytes("", 0, &ids), 0);
	assert_string_equal(ids.htlhash, "af5570f5a1810b7af78caf4bc70a660f");
	assert_int_equal(read_bytes("hello", 5, &ids), 0);
	assert_string_equal(ids.htlhash, "b2c90e0c61910efa8c079b70039694de");
	assert_string_equal(ids.gnu, "");
	assert_string_equal(ids.go, "");
	memset(bytes, 'A', 10000);
	assert_int_equal(read_bytes(bytes, 10000, &ids), 0);
	assert_string_equal(ids.htlhash, "e3c930f05cab455142e4177d57094fe6");
	memset(bytes, 0, 4096);
	assert_int_equal(read_bytes(bytes, 4096, &ids), 0);
	assert_string_equal(ids.htlhash, "0c629a4247c82cd3347322ee4e7f7d7f");
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(read_bytes(bytes, sizeof(bytes), &ids), 0);
	assert_string_equal(ids.htlhash, "e90f346665112718f4e26b5e62b97392");
}

/* The build id as readelf prints it; "" when there is none. */
static void readelf_id(const char *path, char id[128])
{
	AUTO_FREE char *line = NULL;
	char command[512];
	size_t cap = 0;
	FILE *f;

	id[0] = '\0';
	snprintf(command, sizeof(command), "LC_ALL=C readelf -n '%s' 2>/dev/null", path);
	f = popen(command, "r");
	assert_non_null(f);
	while (getline(&line, &cap, f) > 0)
		sscanf(line, " Build ID: %127s", id);
	pclose(f);
}

static void test_gnu(void **state)
{
	static const char *const paths[] = { "/bin/sh", "/bin/ls", "/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/readelf" };
	size_t checked = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		AUTO_CLOSE int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		struct build_ids ids;
		char expected[128];

		if (fd < 0)
			continue;
		readelf_id(paths[i], expected);
		assert_int_equal(build_ids_read(fd, &ids), 0);
		assert_string_equal(ids.gnu, expected);
		checked += expected[0] != '\0';
	}
	assert_true(checked > 0);
}

/* A program with notes of our choice, made by the assembler: nothing of it need run. */
static void test_notes(void **state)
{
	static const char source[] = ".section .note.go.buildid,\"a\",@note\n"
				     ".long 4, 11, 4\n.ascii \"Go\\0\\0\", \"abc/def/ghi\\0\"\n"
				     ".section .note.gnu.build-id,\"a\",@note\n"
				     ".long 4, 5, 3\n.ascii \"GNU\\0\"\n.byte 1, 2, 0xab, 0xcd, 0xef, 0, 0, 0\n";
	char path[] = "/tmp/test_build_ids.XXXXXX", command[256];
	int fd = mkstemp(path);
	struct build_ids ids;
	FILE *f;

	(void)state;
	close(fd);
	snprintf(command, sizeof(command), "gcc -c -x assembler -o %s -", path);
	f = popen(command, "w");
	assert_non_null(f);
	fputs(source, f);
	assert_int_equal(pclose(f), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(build_ids_read(fd, &ids), 0);
	assert_string_equal(ids.gnu, "0102abcdef");
	assert_string_equal(ids.go, "abc/def/ghi");
	close(fd);
	unlink(path);
}

/* Of a file without sections the segments tell. */
static void test_segments(void **state)
{
	char path[] = "/tmp/test_build_ids.XXXXXX", command[256];
	int fd = mkstemp(path);
	Elf64_Ehdr header;
	struct build_ids ids;

	(void)state;
	assert_true(fd >= 0);
	snprintf(command, sizeof(command),
		 "gcc -shared -nostdlib -Wl,--build-id=0x0102abcdef030405 -o %s -x c /dev/null -x none", path);
	assert_int_equal(system(command), 0);
	close(fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	assert_true(header.e_shnum > 0);
	header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(build_ids_read(fd, &ids), 0);
	assert_string_equal(ids.gnu, "0102abcdef030405");
	close(fd);
	unlink(path);
}

static void test_go_text(void **state)
{
	static const char text[] = "anything before\xff Go build ID: \"one/two/three\"\n \xff"
				   "after";
	static const char open_ended[] = "\xff Go build ID: \"one/two";
	struct build_ids ids;

	(void)state;
	assert_int_equal(read_bytes(text, sizeof(text), &ids), 0);
	assert_string_equal(ids.go, "one/two/three");
	assert_int_equal(read_bytes(open_ended, sizeof(open_ended), &ids), 0);
	assert_string_equal(ids.go, "");
}

static void test_errors(void **state)
{
	AUTO_CLOSE int dir = open("/", O_RDONLY | O_CLOEXEC);
	struct build_ids ids;

	(void)state;
	assert_int_equal(build_ids_read(-1, &ids), -EBADF);
	assert_int_equal(build_ids_read(dir, &ids), -EINVAL);
}

/* A note of another kind, then a build id of four bytes; little-endian. */
static const uint8_t made_notes[] = "\6\0\0\0\4\0\0\0\1\0\0\0Linux\0\0\0abcd"
				    "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\x12\xab\xcd\xef";

static void test_notes_in_memory(void **state)
{
	char id[BUILD_ID_CHARS] = "";

	(void)state;
	assert_true(build_id_of_notes(made_notes, sizeof(made_notes) - 1, id));
	assert_string_equal(id, "12abcdef");
	for (size_t len = 0; len < sizeof(made_notes) - 1; len++) {
		AUTO_FREE uint8_t *cut = malloc(len ? len : 1); /* so that reading past its end is seen by the sanitizers */

		assert_non_null(cut);
		memcpy(cut, made_notes, len);
		assert_false(build_id_of_notes(cut, len, id));
	}
	assert_false(build_id_of_notes((const uint8_t *)"\4\0\0\0\xff\xff\xff\xff\3\0\0\0GNU\0abcd", 20, id));
	assert_false(build_id_of_notes((const uint8_t *)"\xff\xff\xff\xff\4\0\0\0\3\0\0\0GNU\0abcd", 20, id));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_htlhash),		cmocka_unit_test(test_gnu),	cmocka_unit_test(test_notes),
		cmocka_unit_test(test_segments),	cmocka_unit_test(test_go_text), cmocka_unit_test(test_errors),
		cmocka_unit_test(test_notes_in_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
