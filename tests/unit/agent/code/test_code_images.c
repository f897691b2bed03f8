/* SPDX-License-Identifier: Apache-2.0 */
/* Files beside images: where they are looked for, that each is looked for once, and that a block is asked for again only
 * when one was found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/agent/code/made_code.h"

enum { IMAGE = 0x6000 };

static struct file *file;

static int begin(void **state)
{
	made_begin(state);
	assert_true(code_spaces_meet(spaces, &process));
	file = address_space_find(process.as, CODE_AT)->file;
	for (uint32_t i = 0; i < 4; i++)
		made.blocks[i] = (struct made_block){ .start = CODE_AT + i * 0x100, .end = CODE_AT + (i + 1) * 0x100 };
	made.need = (struct code_need){ .base = IMAGE, .name = "Image.pdb" };
	made.brought = -2;
	return 0;
}

static bool read_piece(uint64_t va)
{
	return code_piece_read(code_range_of(file), va);
}

static void a_file_is_brought(void **state)
{
	AUTO_CLOSE int found = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	made.file = found;
	assert_true(read_piece(0x10));
	assert_string_equal(made.looked_beside, "/images/Image.dll");
	assert_string_equal(made.looked_for, "Image.pdb");
	assert_true(made.brought >= 0 && made.brought != found);
	assert_int_equal(fcntl(made.brought, F_GETFD), -1); /* it was the worker's to keep */
	assert_int_equal(made.brought_base, IMAGE);
	assert_int_equal(made.calls[CODE_OP_BLOCK], 2);
	assert_int_equal(made.calls[CODE_OP_FILE], 1);
	assert_true(read_piece(0x110));
	assert_int_equal(made.calls[CODE_OP_BLOCK], 3);
	assert_int_equal(made.calls[CODE_OP_FILE], 1);
}

/* Beside the runtime, where the image is of no file. */
static void images_in_memory_are_the_runtimes(void **state)
{
	AUTO_CLOSE int found = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	made.file = found;
	made.is_anonymous = true;
	runtime.fd = found;
	assert_true(read_piece(0x10));
	assert_string_equal(made.looked_beside, "/runtime");
	assert_int_equal(made.calls[CODE_OP_BLOCK], 2);
	runtime.fd = -1;
	made.need.base = IMAGE + 1;
	assert_true(read_piece(0x110));
	assert_int_equal(made.brought, -1);
	assert_int_equal(made.calls[CODE_OP_BLOCK], 3);
	runtime.fd = 0;
}

static void a_file_that_is_not_there_is_looked_for_once(void **state)
{
	(void)state;
	assert_true(read_piece(0x10)); /* with what came first */
	assert_int_equal(made.brought, -1);
	assert_int_equal(made.calls[CODE_OP_BLOCK], 1);
	made.need.base = IMAGE; /* another worker does not know that */
	made.looked_for[0] = '\0';
	assert_true(read_piece(0x110));
	assert_string_equal(made.looked_for, "");
	assert_int_equal(made.calls[CODE_OP_FILE], 2);
	assert_int_equal(made.brought, -1);
	made.need.base = 0x100; /* nothing is mapped there */
	assert_true(read_piece(0x210));
	assert_string_equal(made.looked_for, "");
	assert_int_equal(made.brought, -1);
	assert_int_equal(made.calls[CODE_OP_BLOCK], 3);
}

static void there_is_an_end_to_looking(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < CODE_ABSENT + 10; i++) {
		const struct code_need need = { .base = IMAGE + i, .name = "Image.pdb" };

		made.looked_for[0] = '\0';
		assert_false(code_bring(code_of_process(), &need));
		assert_int_equal(made.looked_for[0] != '\0', i < CODE_ABSENT);
	}
	assert_int_equal(code_of_process()->absent.count, CODE_ABSENT);
}

static void harm_on_asking(uint32_t op)
{
	made.status = op == CODE_OP_BLOCK && made.calls[CODE_OP_FILE] ? -EPROTO : 0;
}

/* The process itself is not to blame for what its file did. */
static void a_file_that_does_harm_is_not_brought_again(void **state)
{
	AUTO_CLOSE int found = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	made.file = found;
	made.on_ask = harm_on_asking;
	assert_false(read_piece(0x10));
	assert_int_equal(code_of_process()->harms, 0);
	made.on_ask = NULL;
	made.status = 0;
	made.need.base = IMAGE;
	assert_true(read_piece(0x10));
	assert_int_equal(made.brought, -1);
	made.status = -EPROTO;
	assert_false(read_piece(0x110));
	assert_int_equal(code_of_process()->harms, 1);
}

/* A worker that cannot keep it: there are names without lines. */
static void a_file_may_be_refused(void **state)
{
	AUTO_CLOSE int found = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	made.file = found;
	made.bring_status = -EMFILE;
	assert_true(read_piece(0x10));
	assert_int_equal(made.calls[CODE_OP_BLOCK], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_brought, begin, made_end),
		cmocka_unit_test_setup_teardown(images_in_memory_are_the_runtimes, begin, made_end),
		cmocka_unit_test_setup_teardown(a_file_that_is_not_there_is_looked_for_once, begin, made_end),
		cmocka_unit_test_setup_teardown(there_is_an_end_to_looking, begin, made_end),
		cmocka_unit_test_setup_teardown(a_file_that_does_harm_is_not_brought_again, begin, made_end),
		cmocka_unit_test_setup_teardown(a_file_may_be_refused, begin, made_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
