/* SPDX-License-Identifier: Apache-2.0 */
/* Files and lines of a made-up method: an image that names its PDB, what the compiler kept of the method's code, and the PDB
 * itself, in a file or in the image. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

#ifdef __x86_64__
enum {
	BASE = 0x1000,
	BYTES = 0x3000,
	HEAD = 0x80,
	CLR = 0x200,
	ROOT = 0x300,
	ENTRIES = 0x400,
	VIEW = 0x500,
	EMBEDDED = 0x600,
	DEBUG = 0x2000
};
enum { PDB = 0x100, TABLES = 0x140, BLOBS = 0x200, CODE = 0x9000 };

static uint8_t bytes[BYTES], pdb[0x400];
static struct code_files files;
static struct code_memory memory;
static struct dotnet dotnet;
static int pdb_fd = -1;

#include "tests/unit/agent/runtime/code/made_bytes.h"

static void put_in(uint8_t *in, uint32_t at, uint64_t value, uint32_t size)
{
	memcpy(in + at, &value, size);
}

/* The second entry of the debug directory is the one of the PDB. */
static void put_image(const char *path)
{
	put_in(bytes, BASE, 0x5a4d, 2);
	put_in(bytes, BASE + 0x3c, HEAD, 4);
	put_in(bytes, BASE + HEAD, 0x4550, 4);
	put_in(bytes, BASE + HEAD + 24, 0x20b, 2);
	put_in(bytes, BASE + HEAD + 24 + 112 + 8 * 6, ENTRIES, 4);
	put_in(bytes, BASE + HEAD + 24 + 112 + 8 * 6 + 4, 2 * 28, 4);
	put_in(bytes, BASE + HEAD + 24 + 112 + 8 * 14, CLR, 4);
	put_in(bytes, BASE + CLR + 8, ROOT, 4);
	put_in(bytes, BASE + ROOT, 0x424a5342, 4);
	put_in(bytes, BASE + ENTRIES + 12, 19, 4);
	put_in(bytes, BASE + ENTRIES + 28 + 4, 0x44332211, 4);
	put_in(bytes, BASE + ENTRIES + 28 + 10, 0x504d, 2);
	put_in(bytes, BASE + ENTRIES + 28 + 12, 2, 4);
	put_in(bytes, BASE + ENTRIES + 28 + 20, VIEW, 4);
	put_in(bytes, BASE + VIEW, 0x53445352, 4);
	memset(bytes + BASE + VIEW + 4, 7, 16);
	strcpy((char *)bytes + BASE + VIEW + 24, path);
}

/* One method of /a and /b: IL 0 line 10, 5 line 12, 9 hidden, 12 line 3 of the other document. */
static void put_pdb(void)
{
	static const uint8_t blobs[] = { 0,  1, 'a', 1, 'b', 3, '/', 0, 1, 3, '/', 0, 3, 21, 0, 0,   0, 1,
					 10, 1, 5,   0, 1,   4, 0,   4, 0, 0, 0,   2, 3, 0,  1, 111, 0 };

	memset(pdb, 0, sizeof(pdb));
	put_in(pdb, 0, 0x424a5342, 4);
	put_in(pdb, 12, 4, 4);
	put_in(pdb, 22, 3, 2);
	put_in(pdb, 24, PDB, 4);
	memcpy(pdb + 32, "#Pdb\0\0\0\0", 8);
	put_in(pdb, 40, TABLES, 4);
	memcpy(pdb + 48, "#~\0\0", 4);
	put_in(pdb, 52, BLOBS, 4);
	memcpy(pdb + 60, "#Blob\0\0\0", 8);
	memset(pdb + PDB, 7, 16);
	put_in(pdb, PDB + 16, 0x44332211, 4);
	put_in(pdb, TABLES + 8, 3ull << 0x30, 8);
	put_in(pdb, TABLES + 24, 2, 4), put_in(pdb, TABLES + 28, 1, 4);
	put_in(pdb, TABLES + 32, 5, 2), put_in(pdb, TABLES + 40, 9, 2);
	put_in(pdb, TABLES + 48, 1, 2), put_in(pdb, TABLES + 50, 13, 2);
	memcpy(pdb + BLOBS, blobs, sizeof(blobs));
}

/* Native 0 prologue, 4 IL 0, 8 IL 7, 12 made up, 16 IL 10, 20 IL 12, 24 epilogue, 28 IL 100: in a handler. */
static void put_bounds(void)
{
	static const uint8_t values[][2] = { { 0, 1 },	{ 4, 3 },  { 4, 10 }, { 4, 2 },
					     { 4, 13 }, { 4, 15 }, { 4, 0 },  { 4, 103 } };
	uint32_t at = 2 * (DEBUG + 3), first = at;
	uint8_t nibbles[64];
	uint32_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		for (int k = 0; k < 3; k++) {
			uint32_t value = k < 2 ? values[i][k] : 0;

			if (value > 63)
				nibbles[n++] = (uint8_t)(value >> 6 | 8);
			if (value > 7)
				nibbles[n++] = (uint8_t)((value >> 3 & 7) | 8);
			nibbles[n++] = value & 7;
		}
	memset(bytes + DEBUG, 0, 64);
	bytes[at++ / 2] = 8 | 1; /* 8 of them */
	bytes[at++ / 2] |= 0 << 4;
	for (uint32_t i = 0; i < n; i++, at++)
		bytes[at / 2] |= (uint8_t)(nibbles[i] << (at % 2 ? 4 : 0));
	n = (at - first + 1) / 2;
	bytes[DEBUG + 1] = (uint8_t)((8 | n >> 3) | (n & 7) << 4); /* their length, and that of variables */
}

static int setup(void **state)
{
	const struct code_facts facts = { .version = 9 << 16 };

	(void)state;
	dotnet.layout = (uint32_t)dotnet_layout_find(&facts);
	memset(bytes, 0, sizeof(bytes));
	put_image("C:\\obj\\x/Image.pdb");
	put_bounds();
	put_pdb();
	memory = (struct code_memory){
		.read = read_made, .reads_left = 10000, .bytes_left = 1 << 20, .end_ns = UINT64_MAX, .files = &files
	};
	code_files_begin(&files, 1);
	pdb_fd = memfd_create("pdb", MFD_CLOEXEC);
	return pdb_fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	code_files_fini(&files);
	close(pdb_fd);
	return 0;
}

static int tell(uint64_t start, uint64_t end, struct buf *out)
{
	AUTO(block_names_free_at) struct block_names *n = block_names_new();
	const struct code_block b = { .start = CODE + start,
				      .end = CODE + end,
				      .own = { [DOTNET_OWN_CODE] = CODE, [DOTNET_OWN_DEBUG] = DEBUG } };
	int error = dotnet_lines(&dotnet, &memory, &b, BASE, 1, "A.B", n);

	buf_reset(out);
	if (!error)
		assert_int_equal(block_names_write(n, out), 0);
	return error;
}

static void is_line(const struct buf *names, uint32_t place, const char *file, uint32_t line)
{
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];

	assert_int_equal(block_names_find(names->data, names->len, place, false, lines), 1);
	assert_memory_equal(lines[0].name, "A.B", lines[0].name_bytes);
	assert_int_equal(lines[0].file_bytes, strlen(file));
	assert_memory_equal(lines[0].file, file, strlen(file));
	assert_int_equal(lines[0].line, line);
	assert_false(lines[0].is_approximate);
}

static void bring(void)
{
	assert_int_equal(pwrite(pdb_fd, pdb, sizeof(pdb), 0), sizeof(pdb));
	assert_int_equal(code_files_put(&files, BASE, pdb_fd), 0);
}

static void each_place_has_its_line(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;

	(void)state;
	bring();
	assert_int_equal(tell(0, 40, &names), 0);
	is_line(&names, 0, "/a", 10); /* the prologue is of the first instruction */
	is_line(&names, 4, "/a", 10);
	is_line(&names, 7, "/a", 10);
	is_line(&names, 8, "/a", 12);
	is_line(&names, 12, "/a", 0); /* made up */
	is_line(&names, 16, "/a", 0); /* hidden */
	is_line(&names, 20, "/b", 3);
	is_line(&names, 24, "/a", 0); /* epilogue */
	is_line(&names, 28, "/b", 3);
	is_line(&names, 39, "/b", 3);
	assert_int_equal(tell(10, 14, &names), 0); /* a part of it, as handlers are */
	is_line(&names, 0, "/a", 12);
	is_line(&names, 1, "/a", 12);
	is_line(&names, 2, "/a", 0);
	assert_int_equal(tell(30, 34, &names), 0);
	is_line(&names, 0, "/b", 3);
}

static void a_missing_file_is_needed(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;

	(void)state;
	assert_int_equal(tell(0, 40, &names), -EAGAIN);
	assert_int_equal(files.need.base, BASE);
	assert_string_equal(files.need.name, "Image.pdb");
	assert_int_equal(files.need.id[0], 7);
	assert_int_equal(files.need.id[16], 0x11);
	assert_int_equal(code_files_put(&files, BASE, -1), 0);
	assert_int_equal(tell(0, 40, &names), -ENOENT);
}

/* Puts the PDB, packed, into the image, by a third entry of the debug directory. Returns how long it is packed. */
static uint32_t embed(void)
{
	const uint32_t entry = BASE + ENTRIES + 2 * 28;
	z_stream z = { .next_in = pdb,
		       .avail_in = sizeof(pdb),
		       .next_out = bytes + BASE + EMBEDDED + 8,
		       .avail_out = DEBUG - BASE - EMBEDDED - 8 };

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	put_in(bytes, BASE + HEAD + 24 + 112 + 8 * 6 + 4, 3 * 28, 4);
	put_in(bytes, entry + 12, 17, 4);
	put_in(bytes, entry + 16, z.total_out + 8, 4);
	put_in(bytes, entry + 20, EMBEDDED, 4);
	put_in(bytes, BASE + EMBEDDED, 0x4244504d, 4);
	put_in(bytes, BASE + EMBEDDED + 4, sizeof(pdb), 4);
	return (uint32_t)z.total_out;
}

static void a_pdb_in_the_image_counts(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;

	(void)state;
	(void)embed();
	assert_int_equal(tell(0, 40, &names), 0);
	is_line(&names, 0, "/a", 10);
	is_line(&names, 20, "/b", 3);
	assert_int_equal(files.need.base, 0);
	memset(bytes + BASE + EMBEDDED, 0, 0x100); /* it is unpacked once */
	assert_int_equal(tell(0, 40, &names), 0);
	is_line(&names, 8, "/a", 12);
	code_files_forget(&files, 1);
	assert_int_equal(tell(0, 40, &names), -EAGAIN);
	pdb[PDB + 19]++; /* another one's */
	(void)embed();
	assert_int_equal(tell(0, 40, &names), -ESTALE);
}

/* What cannot be unpacked is as if it was not there. */
static void is_of_no_use(uint32_t at, uint64_t value)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	uint32_t before;

	(void)embed();
	memcpy(&before, bytes + at, 4);
	put_in(bytes, at, value, 4);
	code_files_begin(&files, 1);
	assert_int_equal(tell(0, 40, &names), -EAGAIN);
	assert_int_equal(files.need.base, BASE);
	assert_false(memory.is_spent);
	put_in(bytes, at, before, 4);
}

static void what_cannot_be_unpacked_is_none(void **state)
{
	const uint32_t entry = BASE + ENTRIES + 2 * 28;
	uint32_t packed = embed();
	AUTO(buf_fini) struct buf names = BUF_EMPTY;

	(void)state;
	is_of_no_use(entry + 12, 16);			    /* an entry of another kind */
	is_of_no_use(BASE + EMBEDDED, 0x4244504e);	    /* of another form */
	is_of_no_use(BASE + EMBEDDED + 4, sizeof(pdb) - 1); /* longer than it says, shorter, of nothing */
	is_of_no_use(BASE + EMBEDDED + 4, sizeof(pdb) + 1);
	is_of_no_use(BASE + EMBEDDED + 4, 0);
	is_of_no_use(BASE + EMBEDDED + 4, CODE_FILES_BYTES + 1);
	is_of_no_use(BASE + EMBEDDED + 4, UINT32_MAX);
	is_of_no_use(entry + 16, packed + 7); /* cut */
	is_of_no_use(entry + 16, 8);
	is_of_no_use(entry + 16, 7);
	is_of_no_use(entry + 16, UINT32_MAX);
	is_of_no_use(entry + 16, 0x10000);    /* not all of it is there */
	is_of_no_use(BASE + EMBEDDED + 8, 7); /* broken */
	bring();			      /* a file beside the image */
	put_in(bytes, BASE + EMBEDDED + 8, 7, 4);
	assert_int_equal(tell(0, 40, &names), 0);
	is_line(&names, 0, "/a", 10);
}

static void what_does_not_fit_has_no_lines(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;

	(void)state;
	pdb[PDB + 19]++; /* another one's */
	bring();
	assert_int_equal(tell(0, 40, &names), -ESTALE);
	pdb[PDB + 19]--;
	bring();
	bytes[DEBUG] = 0x80; /* a form that nobody knows */
	assert_int_equal(tell(0, 40, &names), -EBADMSG);
	bytes[DEBUG] = 0;
	assert_int_equal(tell(0, 40, &names), 0);
	put_in(bytes, BASE + ENTRIES + 28 + 10, 0, 2); /* a PDB of the older form */
	assert_int_equal(tell(0, 40, &names), -ENOENT);
	put_image("x/");
	assert_int_equal(tell(0, 40, &names), -ENOENT);
	put_image("C:\\obj\\x/Image.pdb");
	memory.files = NULL;
	assert_int_equal(tell(0, 40, &names), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_place_has_its_line, setup, teardown),
		cmocka_unit_test_setup_teardown(a_missing_file_is_needed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pdb_in_the_image_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_unpacked_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(what_does_not_fit_has_no_lines, setup, teardown),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
#else
int main(void)
{
	return 0;
}
#endif
