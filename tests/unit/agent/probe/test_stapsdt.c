/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of USDT events: addresses, also of a file that was moved, texts, and notes that are broken. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/probe/stapsdt.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"
#include "tests/unit/agent/probe/notes_file.h"

struct seen {
	struct stapsdt_note notes[4];
	int count;
};

static void note(void *arg, const struct stapsdt_note *n)
{
	struct seen *seen = arg;

	assert_in_range(seen->count, 0, 3);
	seen->notes[seen->count++] = *n;
}

/* Reads @notes out of a file that is @file then. */
static int read_notes(struct buf *notes, size_t len, uint64_t base, struct buf *file, struct seen *ret)
{
	struct elf_image image;

	buf_reset(file);
	notes_file(file, notes->data, len, base);
	assert_int_equal(elf_image_open(file->data, file->len, &image), 0);
	ret->count = 0;
	return stapsdt_each(&image, note, ret);
}

static void test_notes(void **state)
{
	AUTO(buf_fini) struct buf notes = BUF_EMPTY, file = BUF_EMPTY;
	static const char first[] = "py\0gc__start\0"
				    "8@%rdi -4@-12(%rbp)",
			  second[] = "py\0line\0";
	struct seen seen;

	(void)state;
	notes_add(&notes, 0x1100, 0x2000, 0x3008, first, sizeof(first));
	notes_add(&notes, 0x1200, 0x2000, 0, second, sizeof(second));
	assert_int_equal(read_notes(&notes, notes.len, 0x2000, &file, &seen), 2);
	assert_int_equal(seen.notes[0].addr, 0x1100);
	assert_int_equal(seen.notes[0].semaphore, 0x3008);
	assert_string_equal(seen.notes[0].provider, "py");
	assert_string_equal(seen.notes[0].name, "gc__start");
	assert_string_equal(seen.notes[0].arguments, "8@%rdi -4@-12(%rbp)");
	assert_int_equal(seen.notes[1].semaphore, 0);
	assert_string_equal(seen.notes[1].arguments, "");
	/* the file was moved by 0x500 */
	assert_int_equal(read_notes(&notes, notes.len, 0x2500, &file, &seen), 2);
	assert_int_equal(seen.notes[0].addr, 0x1600);
	assert_int_equal(seen.notes[0].semaphore, 0x3508);
	assert_int_equal(seen.notes[1].semaphore, 0);
	/* no such section: nobody knows that */
	assert_int_equal(read_notes(&notes, notes.len, 0, &file, &seen), 2);
	assert_int_equal(seen.notes[0].addr, 0x1100);
}

static void test_broken(void **state)
{
	AUTO(buf_fini) struct buf notes = BUF_EMPTY, file = BUF_EMPTY;
	static const char texts[] = "p\0n\0"
				    "8@%rax";
	struct seen seen;

	(void)state;
	notes_add(&notes, 1, 2, 3, texts, sizeof(texts));
	for (size_t len = 0; len < notes.len; len++) {
		int n = read_notes(&notes, len, 0, &file, &seen);

		assert_true(n == -EBADMSG || n == 0 || (n == 1 && len + 4 > notes.len));
		assert_int_equal(seen.count, n > 0 ? n : 0);
	}
	buf_reset(&notes);
	notes_add(&notes, 1, 2, 3, "p\0n\0x", 5); /* the last text has no end */
	assert_int_equal(read_notes(&notes, notes.len, 0, &file, &seen), -EBADMSG);
	assert_int_equal(seen.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
