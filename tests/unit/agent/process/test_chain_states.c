/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes of an address space as the kernel is told of them, once for the mappings there are. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/kernel/sampler.h"
#include "agent/process/chain_states.h"

enum { CODE = 0x100000, BYTES = 0x10000, VADDR = 0x3000 };

static struct chain_state told, first_told; /* the latter of a program */
static unsigned told_cnt, program_cnt;
static struct program_key program_key;
static struct program_value program;
static int fails;

int sampler_set_chain(struct sampler *s, struct chain_state *state)
{
	assert_null(s);
	if (state->asid >> 31)
		first_told = *state;
	told = *state;
	told_cnt++;
	return fails;
}

int sampler_set_program(struct sampler *s, const struct program_key *key, const struct program_value *value)
{
	assert_null(s);
	program_key = *key;
	program = *value;
	program_cnt++;
	return 0;
}

static struct file python = { .id = 1 }, second = { .id = 2 }, unknown = { .id = 3 }, libc = { .id = 4 },
		   plain = { .id = 5 };
static struct address_space *as;

static int make(void **state)
{
	const struct elf_segment segment = { .vaddr = VADDR, .size_bytes = BYTES };

	(void)state;
	told_cnt = program_cnt = 0;
	fails = 0;
	python.info.segments[0] = second.info.segments[0] = segment;
	python.info.segment_count = second.info.segment_count = 1;
	python.info.runtime = (struct runtime_file){ .kind = RUNTIME_FILE_CHAIN,
						     .id = RUNTIME_PYTHON,
						     .state = { .runtime = RUNTIME_PYTHON,
								.style = 3,
								.type = VADDR + 0x100,
								.offset = { 11, 12 },
								.thread = { .place = THREAD_KEY, .addr = VADDR + 0x200 } } };
	second.info.runtime = python.info.runtime;
	second.info.runtime.state.style = 4;
	unknown.info.runtime = (struct runtime_file){ .kind = RUNTIME_FILE_CHAIN, .id = RUNTIME_PYTHON };
	libc.info.runtime = (struct runtime_file){ .kind = RUNTIME_FILE_LIBC,
						   .state = { .thread = { .place = THREAD_KEY, .offset = -784 } } };
	as = address_space_new();
	return !as;
}

static int destroy(void **state)
{
	(void)state;
	address_space_put(as);
	return 0;
}

static void map(uint64_t piece, struct file *file)
{
	assert_int_equal(address_space_map(&as, CODE + piece * BYTES, CODE + (piece + 1) * BYTES, 0, file), 0);
}

/* Which C library it is matters to how a thread waits, too, not only to the way to its state. */
static void test_libc_of_tls(void **state)
{
	(void)state;
	python.info.runtime.state.thread = (struct thread_locator){ .place = THREAD_TLS, .offset = -8 };
	libc.info.runtime.state.thread.libc = THREAD_MUSL;
	map(1, &python);
	map(2, &libc);
	assert_int_equal(chain_states_tell(as, NULL, NULL), 1u << RUNTIME_PYTHON);
	assert_int_equal(told.thread.libc, THREAD_MUSL);
	assert_int_equal(told.thread.offset, -8);
}

static void test_told(void **state)
{
	const uint32_t bit = 1u << RUNTIME_PYTHON;

	(void)state;
	assert_int_equal(chain_states_tell(as, NULL, NULL), 0);
	map(0, &plain);
	map(1, &python);
	assert_int_equal(chain_states_tell(as, NULL, NULL), 0); /* where keys are is not known */
	assert_int_equal(told_cnt, 0);
	map(2, &libc);
	assert_int_equal(chain_states_tell(as, NULL, NULL), bit);
	assert_int_equal(told_cnt, 1);
	assert_int_equal(told.asid, as->asid);
	assert_int_equal(told.runtime, RUNTIME_PYTHON);
	assert_int_equal(told.style, 3);
	assert_true(told.offset[0] == 11 && told.offset[1] == 12);
	assert_int_equal(told.type, CODE + BYTES + 0x100);
	assert_int_equal(told.thread.place, THREAD_KEY);
	assert_int_equal(told.thread.addr, CODE + BYTES + 0x200);
	assert_int_equal(told.thread.offset, -784);
	/* not twice */
	assert_int_equal(chain_states_tell(as, NULL, NULL), bit);
	map(3, &plain);
	assert_int_equal(chain_states_tell(as, NULL, NULL), bit);
	assert_int_equal(told_cnt, 1);
	/* of two the first is told, and once */
	map(4, &second);
	map(5, &python);
	assert_int_equal(chain_states_tell(as, NULL, NULL), bit);
	assert_int_equal(told_cnt, 2);
	assert_int_equal(told.style, 3);
	/* another took its place: a new asid */
	assert_int_equal(address_space_map(&as, CODE + BYTES, CODE + 2 * BYTES, 0, &plain), 1);
	assert_int_equal(chain_states_tell(as, NULL, NULL), bit);
	assert_int_equal(told_cnt, 3);
	assert_int_equal(told.asid, as->asid);
	assert_int_equal(told.style, 4);
}

static void test_unknown(void **state)
{
	(void)state;
	map(0, &libc);
	map(1, &unknown);
	assert_int_equal(chain_states_tell(as, NULL, NULL), 0);
	assert_int_equal(told_cnt, 0);
	map(2, &python);
	fails = -EINVAL; /* its program could not be loaded */
	assert_int_equal(chain_states_tell(as, NULL, NULL), 0);
	assert_int_equal(told_cnt, 1);
	assert_int_equal(chain_states_tell(as, NULL, NULL), 0); /* nor will it be */
	assert_int_equal(told_cnt, 1);
}

/* A runtime that is in the program itself: processes that run it are known by the file, before anything else of them is. */
static void test_program(void **state)
{
	static char path[] = "/usr/bin/python3", other[] = "/usr/bin/other";

	(void)state;
	python.path = path;
	python.key = (struct file_key){ .dev_major = 8, .dev_minor = 17, .inode = 4711 };
	map(1, &python);
	map(2, &libc);
	assert_int_equal(chain_states_tell(as, other, NULL), 1u << RUNTIME_PYTHON);
	assert_int_equal(told_cnt, 1);
	assert_int_equal(program_cnt, 0);
	as->chains_told = false;
	assert_int_equal(chain_states_tell(as, path, NULL), 1u << RUNTIME_PYTHON);
	assert_int_equal(program_cnt, 1);
	assert_int_equal(told_cnt, 3);
	assert_int_equal(told.asid, as->asid); /* the latter */
	assert_int_equal(first_told.asid, CHAIN_OF_PROGRAM(python.id));
	assert_int_equal(first_told.type, VADDR + 0x100);
	assert_int_equal(first_told.thread.addr, VADDR + 0x200);
	assert_int_equal(first_told.thread.offset, -784);
	assert_true(program_key.inode == 4711 && program_key.dev == (8 << 20 | 17) && !program_key.pad);
	assert_true(program.file == python.id && program.text_vaddr == VADDR && program.runtimes == 1u << RUNTIME_PYTHON);
	fails = -EINVAL;
	as->chains_told = false;
	assert_int_equal(chain_states_tell(as, path, NULL), 0);
	assert_int_equal(program_cnt, 1); /* what cannot be collected is not told */
	python.path = NULL;
}

/* One in a library of the program is known by it, too, if both say how the linker lists them. */
static void test_library(void **state)
{
	static char path[] = "/usr/bin/server", other[] = "/usr/lib/libpython3.so";

	(void)state;
	plain.path = path;
	plain.key = (struct file_key){ .inode = 815 };
	plain.info.segments[0] = (struct elf_segment){ .vaddr = 0x1000, .size_bytes = BYTES };
	plain.info.segment_count = 1;
	python.path = other;
	map(0, &libc);
	map(1, &plain);
	map(2, &python);
	assert_int_equal(chain_states_tell(as, path, NULL), 1u << RUNTIME_PYTHON);
	assert_true(told_cnt == 1 && !program_cnt);
	plain.info.runtime.linked.debug = 0x5678;
	as->chains_told = false;
	assert_int_equal(chain_states_tell(as, path, NULL), 1u << RUNTIME_PYTHON);
	assert_true(told_cnt == 2 && !program_cnt);
	python.info.runtime.linked.dynamic = 0x1234;
	as->chains_told = false;
	assert_int_equal(chain_states_tell(as, path, NULL), 1u << RUNTIME_PYTHON);
	assert_true(told_cnt == 4 && program_cnt == 1);
	assert_int_equal(first_told.asid, CHAIN_OF_PROGRAM(plain.id));
	assert_true(first_told.debug == 0x5678 && first_told.dynamic == 0x1234);
	assert_int_equal(first_told.thread.addr, VADDR + 0x200);
	assert_true(!told.debug && !told.dynamic);
	assert_true(program_key.inode == 815 && program.file == plain.id && program.text_vaddr == 0x1000);
	plain.path = python.path = NULL;
	plain.info.runtime.linked.debug = 0;
}

/* The file that tells how a runtime looks: not one of an unknown version, nor another kind of file. */
static void test_layout(void **state)
{
	(void)state;
	assert_null(chain_layout(as, RUNTIME_PYTHON));
	map(0, &libc);
	map(1, NULL);
	map(2, &unknown);
	assert_null(chain_layout(as, RUNTIME_PYTHON));
	map(3, &second);
	map(4, &python);
	assert_ptr_equal(chain_layout(as, RUNTIME_PYTHON), &second.info.runtime.state);
	assert_null(chain_layout(as, RUNTIME_ID_MAX));
}

/* The reasons why there is no state. */
static void test_troubles(void **state)
{
	const struct mapping of_python = { .file = &python }, of_unknown = { .file = &unknown };
	struct chain_state found;

	(void)state;
	assert_int_equal(chain_state_of(as, &of_unknown, &found), CHAIN_TROUBLE_LAYOUT);
	assert_int_equal(chain_state_of(as, &of_python, &found), CHAIN_TROUBLE_LIBC);
	map(0, &libc);
	assert_int_equal(chain_state_of(as, &of_python, &found), CHAIN_TROUBLE_NONE);
	assert_true(found.thread.offset == -784 && found.thread.addr == VADDR + 0x200 && !found.asid);
}

/* Ways to a thread that need no C library's facts, and no address. */
static void test_places(void **state)
{
	(void)state;
	python.info.runtime.state.type = 0;
	python.info.runtime.state.thread = (struct thread_locator){ .place = THREAD_TLS, .offset = -8 };
	map(0, &python);
	assert_int_equal(chain_states_tell(as, NULL, NULL), 1u << RUNTIME_PYTHON);
	assert_true(!told.thread.addr && !told.type && told.thread.offset == -8 && told.thread.place == THREAD_TLS);
	python.info.runtime.state.thread = (struct thread_locator){ .place = THREAD_GLOBAL, .addr = VADDR + 8 };
	as->chains_told = false;
	assert_int_equal(chain_states_tell(as, NULL, NULL), 1u << RUNTIME_PYTHON);
	assert_int_equal(told.thread.addr, CODE + 8);
	python.info.runtime.state.thread = (struct thread_locator){ .place = THREAD_GLOBAL };
	as->chains_told = false;
	assert_int_equal(chain_states_tell(as, NULL, NULL), 0);
}

/* Ways for which the C library has to be known, and one by a key of a program that has its own. */
static void test_libcs(void **state)
{
	static const struct {
		struct thread_locator has, told;
	} cases[] = {
		{ { THREAD_TLS_INDEX, 0, 8, VADDR }, { THREAD_TLS_INDEX, THREAD_MUSL, 8, CODE } },
		{ { THREAD_TLS_DESC, 0, 0, VADDR }, { THREAD_TLS_DESC, THREAD_MUSL, 0, CODE } },
		{ { THREAD_KEY, 0, 0, VADDR }, { THREAD_KEY, THREAD_MUSL, 128, CODE } },
		{ { THREAD_KEY, THREAD_GLIBC, 1296, VADDR }, { THREAD_KEY, THREAD_GLIBC, 1296, CODE } },
	};

	(void)state;
	libc.info.runtime.state.thread = (struct thread_locator){ .place = THREAD_KEY, .libc = THREAD_MUSL, .offset = 128 };
	map(0, &python);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		python.info.runtime.state.thread = cases[i].has;
		as->chains_told = false;
		assert_int_equal(chain_states_tell(as, NULL, NULL) != 0, cases[i].has.offset == 1296);
	}
	map(1, &libc);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		python.info.runtime.state.thread = cases[i].has;
		as->chains_told = false;
		assert_int_equal(chain_states_tell(as, NULL, NULL), 1u << RUNTIME_PYTHON);
		assert_memory_equal(&told.thread, &cases[i].told, sizeof(told.thread));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_told, make, destroy),
		cmocka_unit_test_setup_teardown(test_unknown, make, destroy),
		cmocka_unit_test_setup_teardown(test_places, make, destroy),
		cmocka_unit_test_setup_teardown(test_libcs, make, destroy),
		cmocka_unit_test_setup_teardown(test_libc_of_tls, make, destroy),
		cmocka_unit_test_setup_teardown(test_program, make, destroy),
		cmocka_unit_test_setup_teardown(test_library, make, destroy),
		cmocka_unit_test_setup_teardown(test_layout, make, destroy),
		cmocka_unit_test_setup_teardown(test_troubles, make, destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
