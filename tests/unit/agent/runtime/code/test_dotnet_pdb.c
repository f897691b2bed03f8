/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up portable PDB: its id, documents, and sequence points in every form that they have; and files that end, lie, or
 * are another one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"

enum { BYTES = 4096, PDB = 0x100, TABLES = 0x140, BLOBS = 0x200, BIG_BLOBS = 4 };

static uint8_t bytes[BYTES];
static struct code_memory memory;
static struct dotnet_pdb pdb;
static uint32_t blob_end;
static const uint8_t id[CODE_NEED_ID] = { 1, 2, 3, 4, 5, [19] = 9 };

#include "tests/unit/agent/runtime/code/made_bytes.h"

static uint32_t blob(const void *content, uint32_t len)
{
	uint32_t at = blob_end;

	bytes[BLOBS + blob_end++] = (uint8_t)len;
	memcpy(bytes + BLOBS + blob_end, content, len);
	blob_end += len;
	return at;
}

/* Documents /src/a.cs, b and one with a backslash; methods with @points, none, and of document 2 by the blob. */
static void make(const void *points, uint32_t points_bytes, uint8_t heaps)
{
	static const uint8_t by_blob[] = { 0, 2, 0, 0, 1, 5, 1 };
	uint32_t size = heaps & BIG_BLOBS ? 4 : 2, at = TABLES + 24 + 12, src, a;
	uint8_t name[4];

	memset(bytes, 0, sizeof(bytes));
	memory = (struct code_memory){ .read = read_made, .reads_left = 10000, .bytes_left = 1 << 20, .end_ns = UINT64_MAX };
	blob_end = 1;
	put(0, 0x424a5342, 4);
	put(12, 12, 4);
	put(30, 3, 2);
	put(32, PDB, 4);
	memcpy(bytes + 40, "#Pdb\0\0\0\0", 8);
	put(48, TABLES, 4);
	memcpy(bytes + 56, "#~\0\0", 4);
	put(60, BLOBS, 4);
	memcpy(bytes + 68, "#Blob\0\0\0", 8);
	memcpy(bytes + PDB, id, sizeof(id));
	put(TABLES + 6, heaps, 1);
	put(TABLES + 8, 1ull << 0x30 | 1ull << 0x31 | 1ull << 0x36, 8);
	put(TABLES + 24, 3, 4), put(TABLES + 28, 3, 4), put(TABLES + 32, 5, 4);
	src = blob("src", 3);
	a = blob("a.cs", 4);
	for (int i = 0; i < 3; i++) {
		name[0] = (uint8_t[]){ '/', 0, '\\' }[i];
		name[1] = (uint8_t)(i == 1 ? src : 0);
		name[2] = (uint8_t)(i == 1 ? a : src);
		name[3] = (uint8_t)a;
		put(at, blob(name, i == 1 ? 3 : 4), size);
		at += 2 * size + 4;
	}
	put(at, 1, 2), put(at + 2, blob(points, points_bytes), size);
	put(at + 2 + size, 1, 2);
	put(at + 2 * (2 + size), 0, 2), put(at + 2 * (2 + size) + 2, blob(by_blob, sizeof(by_blob)), size);
}

static void are_points(uint32_t method, uint32_t count, const struct dotnet_point *wanted)
{
	struct dotnet_points points;

	assert_int_equal(dotnet_pdb_open(&memory, id, &pdb), 0);
	assert_int_equal(dotnet_pdb_points(&pdb, method, &points), 0);
	assert_int_equal(points.count, count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(points.points[i].il, wanted[i].il);
		assert_int_equal(points.points[i].line, wanted[i].line);
		assert_int_equal(points.points[i].document, wanted[i].document);
	}
	free(points.points);
}

static int points_error(const void *content, uint32_t len)
{
	struct dotnet_points points = { 0 };
	int error;

	make(content, len, 0);
	assert_int_equal(dotnet_pdb_open(&memory, id, &pdb), 0);
	error = dotnet_pdb_points(&pdb, 1, &points);
	free(points.points);
	return error;
}

/* Locals; IL 0 line 300 (2 bytes); IL 4 hidden; IL 6 two lines before; document 3; IL 7 one line of many more. */
static const uint8_t all[] = { 0, 0, 0, 5, 0x81, 0x2c, 1, 4, 0, 0, 2, 1, 0x7e, 0x7d, 0, 0, 3, 1, 0, 1, 0x80, 0xc8, 2 };

static void points_are_read(void **state)
{
	(void)state;
	for (int is_big = 0; is_big < 2; is_big++) {
		make(all, sizeof(all), is_big ? BIG_BLOBS : 0);
		are_points(1, 4, (struct dotnet_point[]){ { 0, 300, 1 }, { 4, 0, 1 }, { 6, 298, 1 }, { 7, 398, 3 } });
		are_points(3, 1, (struct dotnet_point[]){ { 0, 5, 2 } });
	}
}

static void numbers_have_up_to_four_bytes(void **state)
{
	/* IL 0x4000, line 0x10000; then 65,535 lines less */
	static const uint8_t far[] = { 0, 0xc0, 0, 0x40, 0, 0, 1, 0xc0, 1, 0, 0, 1, 1, 0, 1, 0xc0 | 0x1f, 0xfe, 0, 3, 2 };

	(void)state;
	make(far, sizeof(far), 0);
	are_points(1, 2, (struct dotnet_point[]){ { 0x4000, 0x10000, 1 }, { 0x4001, 1, 1 } });
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const uint8_t cut[] = { 0, 0, 0 }, line_0[] = { 0, 0, 0, 1, 0, 1 },
			     before[] = { 0, 0, 0, 1, 2, 1, 1, 0, 1, 0x77, 2 },
			     document[] = { 0, 0, 0, 1, 5, 1, 0, 4, 1, 0, 1, 2, 2 }, number[] = { 0, 0xff, 0, 1, 5, 1 };
	struct dotnet_points points;

	(void)state;
	assert_int_equal(points_error(cut, sizeof(cut)), -EBADMSG);
	assert_int_equal(points_error(line_0, sizeof(line_0)), -EBADMSG);
	assert_int_equal(points_error(before, sizeof(before)), -EBADMSG);
	assert_int_equal(points_error(document, sizeof(document)), -EBADMSG);
	assert_int_equal(points_error(number, sizeof(number)), -EBADMSG);
	assert_int_equal(points_error(all, 1), -ENODATA);
	make(all, sizeof(all), 0);
	assert_int_equal(dotnet_pdb_open(&memory, id, &pdb), 0);
	assert_int_equal(dotnet_pdb_points(&pdb, 0, &points), -EBADMSG);
	assert_int_equal(dotnet_pdb_points(&pdb, 4, &points), -EBADMSG);
	assert_int_equal(dotnet_pdb_points(&pdb, 2, &points), -ENODATA);
	memory.reads_left = 1;
	assert_int_equal(dotnet_pdb_points(&pdb, 2, &points), -EDQUOT);
}

static void documents_are_paths(void **state)
{
	char path[DOTNET_MAX_PATH];

	(void)state;
	make(all, sizeof(all), 0);
	assert_int_equal(dotnet_pdb_open(&memory, id, &pdb), 0);
	assert_int_equal(dotnet_pdb_document(&pdb, 1, path), 0);
	assert_string_equal(path, "/src/a.cs");
	assert_int_equal(dotnet_pdb_document(&pdb, 2, path), 0);
	assert_string_equal(path, "srca.cs");
	assert_int_equal(dotnet_pdb_document(&pdb, 3, path), 0);
	assert_string_equal(path, "\\src\\a.cs");
	assert_int_equal(dotnet_pdb_document(&pdb, 0, path), -EBADMSG);
	assert_int_equal(dotnet_pdb_document(&pdb, 4, path), -EBADMSG);
	bytes[BLOBS + 1] = 0xff; /* a part without a length */
	assert_int_equal(dotnet_pdb_document(&pdb, 1, path), -EBADMSG);
}

static void another_file_is_told(void **state)
{
	(void)state;
	make(all, sizeof(all), 0);
	bytes[PDB + 19]++;
	assert_int_equal(dotnet_pdb_open(&memory, id, &pdb), -ESTALE);
	make(all, sizeof(all), 0);
	bytes[0]++;
	assert_int_equal(dotnet_pdb_open(&memory, id, &pdb), -EBADMSG);
	make(all, sizeof(all), 0);
	bytes[41]++; /* no #Pdb */
	assert_int_equal(dotnet_pdb_open(&memory, id, &pdb), -EBADMSG);
	make(all, sizeof(all), 0);
	put(TABLES + 8, 1ull << 6 | 1ull << 0x30 | 1ull << 0x31, 8); /* tables of an image */
	assert_int_equal(dotnet_pdb_open(&memory, id, &pdb), -EBADMSG);
	make(all, sizeof(all), 0);
	put(TABLES + 28, 1 << 24, 4);
	assert_int_equal(dotnet_pdb_open(&memory, id, &pdb), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_are_read),
		cmocka_unit_test(numbers_have_up_to_four_bytes),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(documents_are_paths),
		cmocka_unit_test(another_file_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
