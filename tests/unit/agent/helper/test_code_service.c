/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service that reads generated code, on a made-up virtual machine in this process: which processes' states it keeps,
 * requests that are too short, and replies that no honest worker gives.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/helper/code_service.h"
#include "tests/unit/agent/runtime/code/fake_hotspot.h"
#include "tests/unit/descriptors.h"

#ifdef __x86_64__
enum { STATES = 64 };

static struct fake fake;
static struct elf_service *service;
static struct buf reply;
static int memory = -1;
static void *place;

static int set_up(void **state)
{
	(void)state;
	fake_make(&fake);
	memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	place = mmap((void *)FAKE_BASE, sizeof(fake.bytes), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (memory < 0 || place != (void *)FAKE_BASE)
		return -1;
	memcpy(place, fake.bytes, sizeof(fake.bytes));
	return code_service_new(&service);
}

static int tear_down(void **state)
{
	(void)state;
	elf_service_free(service);
	buf_fini(&reply);
	close(memory);
	return munmap(place, sizeof(fake.bytes));
}

static int call(uint32_t number, const struct code_request *r, size_t len)
{
	const struct elf_request request = { .op = ELF_OP_CODE, .file = number };

	return elf_service_call(service, &request, memory, r, len, &reply);
}

/* @is_known: the request says what no state can be made of. */
static int ranges(uint32_t number, bool is_known)
{
	struct code_request r = { .op = CODE_OP_RANGES, .bias = is_known ? 0 : FAKE_BASE, .facts = fake.facts };

	return call(number, &r, sizeof(r));
}

/* When there is no room, the state that was used longest ago goes, and that one alone. */
static void test_coldest_goes(void **state)
{
	(void)state;
	assert_int_not_equal(ranges(1, true), 0); /* nothing is known yet */
	for (uint32_t i = 1; i <= STATES; i++)
		assert_int_equal(ranges(i, false), 0);
	assert_int_equal(ranges(1, true), 0); /* the first is the warmest now */
	assert_int_equal(ranges(STATES + 1, false), 0);
	for (uint32_t i = 1; i <= STATES + 1; i++)
		if (i != 2)
			assert_int_equal(ranges(i, true), 0);
	assert_int_not_equal(ranges(2, true), 0);
}

static void test_forgotten(void **state)
{
	const struct elf_request forget = { .op = ELF_OP_FORGET, .file = 2 };

	(void)state;
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(ranges(i, false), 0);
	assert_int_equal(elf_service_call(service, &forget, -1, NULL, 0, &reply), 0);
	assert_int_equal(elf_service_call(service, &forget, -1, NULL, 0, &reply), 0); /* it was not known any more */
	assert_int_equal(ranges(1, true), 0);
	assert_int_not_equal(ranges(2, true), 0);
	assert_int_equal(ranges(3, true), 0);
}

/* A service without a state for it, and requests that make no sense. */
static void test_refused(void **state)
{
	const struct elf_request other = { .op = ELF_OP_ROWS, .file = 1 };
	struct {
		struct code_request r;
		struct code_range given[CODE_RANGES + 1];
	} many = { .r = { .op = CODE_OP_RANGES, .bias = FAKE_BASE, .facts = fake.facts } };
	struct code_request r = many.r;

	(void)state;
	assert_int_equal(call(1, &r, sizeof(r) - 1), -EBADMSG);
	assert_int_equal(elf_service_call(service, &other, memory, &r, sizeof(r), &reply), -EBADMSG);
	assert_int_equal(call(1, &many.r, sizeof(many)), -EBADMSG);
	assert_int_equal(call(1, &many.r, sizeof(many) - sizeof(many.given[0])), 0);
	r.op = 77;
	assert_int_equal(call(1, &r, sizeof(r)), -EBADMSG);
	r.op = CODE_OP_HEAP;
	assert_int_equal(call(1, &r, sizeof(r)), -EBADMSG);
	r.op = CODE_OP_RANGES;
	r.facts.id = 99;
	assert_int_equal(call(1, &r, sizeof(r)), -ENOENT);
}

static void test_words(void **state)
{
	struct {
		struct code_request r;
		uint64_t addrs[CODE_MAX_WORDS + 1];
	} *asked = calloc(1, sizeof(*asked));
	const struct code_word *words;

	(void)state;
	assert_non_null(asked);
	asked->r.op = CODE_OP_WORDS;
	asked->addrs[0] = FAKE_BASE + FAKE_HEAP;
	asked->addrs[1] = 8; /* nothing is there */
	assert_int_equal(call(1, &asked->r, sizeof(asked->r) + 2 * sizeof(uint64_t)), 0);
	assert_int_equal(reply.len, 2 * sizeof(*words));
	words = (const void *)reply.data;
	assert_memory_equal(&words[0].value, fake.bytes + FAKE_HEAP, 8);
	assert_true(words[0].is_read && !words[1].is_read);
	assert_int_equal(call(1, &asked->r, sizeof(asked->r) + (CODE_MAX_WORDS + 1) * sizeof(uint64_t)), -EBADMSG);
	free(asked);
}

/* Words near to each other, in any order, across a page's border, and up to the end of the memory. */
static void test_near_words(void **state)
{
	static const int32_t places[] = {
		FAKE_HEAP,	FAKE_HEAP + 8,	  FAKE_HEAP + 1,  FAKE_HEAP - 8, FAKE_HEAP + 252,   FAKE_HEAP + 248,
		0x9ff8,		0x9ffc,		  0x9fff,	  0xa000,	 FAKE_BYTES - 8,    FAKE_BYTES - 4,
		FAKE_BYTES - 8, FAKE_BYTES - 300, FAKE_BYTES - 9, FAKE_BYTES,	 FAKE_HEAP - 0x1000
	};
	struct {
		struct code_request r;
		uint64_t addrs[ARRAY_LEN(places)];
	} asked = { .r.op = CODE_OP_WORDS };
	const struct code_word *words;

	(void)state;
	for (int i = 0; i < FAKE_BYTES; i++)
		fake.bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	memcpy(place, fake.bytes, FAKE_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		asked.addrs[i] = FAKE_BASE + (uint64_t)places[i];
	assert_int_equal(call(1, &asked.r, sizeof(asked)), 0);
	words = (const void *)reply.data;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		assert_int_equal(words[i].is_read, places[i] <= FAKE_BYTES - 8);
		if (words[i].is_read)
			assert_memory_equal(&words[i].value, fake.bytes + places[i], 8);
	}
}

/* --- what a worker may have said --- */

static void check_ranges(void (*change)(struct code_ranges *r), bool is_sound)
{
	const struct code_request r = { .op = CODE_OP_RANGES };
	struct code_ranges said = { .count = 1, .ranges[0] = { 0x1000, 0x2000 } };

	memset(said.captures, 0, sizeof(said.captures));
	for (int i = 0; i < CODE_CAPTURES; i++)
		for (int k = 0; k < CODE_CAPTURE_WORDS; k++)
			said.captures[i].words[k].leaf_reg = -1;
	change(&said);
	if (code_reply_is_sound(&r, &said, sizeof(said)) != is_sound)
		fail_msg("%u ranges from %lx to %lx", said.count, said.ranges[0].start, said.ranges[0].end);
	assert_false(code_reply_is_sound(&r, &said, sizeof(said) - 1));
	assert_false(code_reply_is_sound(&r, &said, sizeof(said) + 1));
}

static void as_it_is(struct code_ranges *r)
{
	(void)r;
}

static void too_many(struct code_ranges *r)
{
	r->count = CODE_RANGES + 1;
}

static void without_bytes(struct code_ranges *r)
{
	r->ranges[0].end = r->ranges[0].start;
}

static void largest(struct code_ranges *r)
{
	r->ranges[0].end = r->ranges[0].start + UINT32_MAX;
}

static void too_large(struct code_ranges *r)
{
	r->ranges[0].end = r->ranges[0].start + UINT32_MAX + 1ull;
}

static void up_to_the_kernel(struct code_ranges *r)
{
	r->ranges[0] = (struct code_range){ (1ull << CPU_USER_BITS) - 0x1000, (1ull << CPU_USER_BITS) - 1 };
}

static void in_the_kernel(struct code_ranges *r)
{
	r->ranges[0] = (struct code_range){ (1ull << CPU_USER_BITS) - 0x1000, 1ull << CPU_USER_BITS };
}

static void all_words(struct code_ranges *r)
{
	r->captures[CODE_CAPTURES - 1].count = CODE_CAPTURE_WORDS;
	r->captures[CODE_CAPTURES - 1].words[CODE_CAPTURE_WORDS - 1].leaf_reg = USER_REGS - 1;
}

static void too_many_words(struct code_ranges *r)
{
	r->captures[CODE_CAPTURES - 1].count = CODE_CAPTURE_WORDS + 1;
}

static void no_register(struct code_ranges *r)
{
	r->captures[CODE_CAPTURES - 1].words[CODE_CAPTURE_WORDS - 1].leaf_reg = USER_REGS;
}

static void below_all_registers(struct code_ranges *r)
{
	r->captures[0].words[1].leaf_reg = -2;
}

static void test_ranges_are_believed(void **state)
{
	(void)state;
	check_ranges(as_it_is, true);
	check_ranges(too_many, false);
	check_ranges(without_bytes, false);
	check_ranges(largest, true);
	check_ranges(too_large, false);
	check_ranges(up_to_the_kernel, true);
	check_ranges(in_the_kernel, false);
	check_ranges(all_words, true);
	check_ranges(too_many_words, false);
	check_ranges(no_register, false);
	check_ranges(below_all_registers, false);
}

enum { BLOCK = 0x1000, BLOCK_END = 0x1100 };

struct found {
	struct code_found found;
	struct row rows[2];
};

static bool believes(const struct found *f, uint64_t addr, size_t len)
{
	const struct code_request r = { .op = CODE_OP_BLOCK, .addr = addr };

	return code_reply_is_sound(&r, f, len);
}

static struct found honest(void)
{
	struct found f;

	memset(&f, 0, sizeof(f));
	f.found.block.start = BLOCK;
	f.found.block.end = BLOCK_END;
	f.found.row_cnt = 2;
	for (int i = 0; i < 2; i++) {
		f.rows[i].start = BLOCK + 0x80u * (unsigned)i;
		f.rows[i].end = f.rows[i].start + 0x80;
		f.rows[i].cfa = ROW_CFA_REG;
		f.rows[i].cfa_reg = REG_SP;
		f.rows[i].cfa_off = 8;
		for (int k = 0; k < SAVED_MAX; k++)
			f.rows[i].saved[k] = ROW_SAME;
	}
	return f;
}

/* One change of an honest answer each, at the limit of what is believed and behind it. */
static void test_block_is_believed(void **state)
{
	struct found f = honest();
	const size_t len = sizeof(f);

	(void)state;
	assert_true(believes(&f, BLOCK, len));
	assert_true(believes(&f, BLOCK_END - 1, len));
	assert_false(believes(&f, BLOCK - 1, len));
	assert_false(believes(&f, BLOCK_END, len));
	assert_false(believes(&f, BLOCK, sizeof(f.found) - 1));
	assert_false(believes(&f, BLOCK, len - 1));
	assert_false(believes(&f, BLOCK, len - sizeof(f.rows[0])));
#define CHANGED(change, is_good)                                         \
	do {                                                             \
		f = honest();                                            \
		change;                                                  \
		assert_int_equal(believes(&f, BLOCK + 8, len), is_good); \
	} while (0)
	CHANGED(f.found.need = ((struct code_need){ .base = 1, .name = "a.pdb" }), true);
	CHANGED(f.found.need = ((struct code_need){ .base = 1, .name = "" }), false);
	CHANGED(f.found.need = ((struct code_need){ .base = 1, .name = ".." }), false);
	CHANGED(f.found.need = ((struct code_need){ .base = 1, .name = "b/a.pdb" }), false);
	CHANGED((f.found.need.base = 1, memset(f.found.need.name, 'a', CODE_NEED_NAME)), false); /* without an end */
	CHANGED(f.found.row_cnt = 3, false);
	CHANGED(f.found.row_cnt = 1, false);
	CHANGED(f.found.row_cnt = UINT32_MAX, false);
	CHANGED(f.found.name_bytes = 1, false);
	CHANGED((f.found.row_cnt = 1, f.found.name_bytes = sizeof(struct row)), false); /* that are no names */
	CHANGED(f.found.block.end = BLOCK + CODE_BLOCK_MAX_BYTES, true);
	CHANGED(f.found.block.end = BLOCK + CODE_BLOCK_MAX_BYTES + 1, false);
	CHANGED(f.rows[0].start = BLOCK - 1, false);
	CHANGED(f.rows[1].end = BLOCK_END + 1, false);
	CHANGED(f.rows[1].end = f.rows[1].start, false);
	CHANGED(f.rows[0].end = f.rows[1].start + 1, false);
	CHANGED(f.rows[0].end = f.rows[1].start - 1, true);
	CHANGED(f.rows[1].capture = CODE_CAPTURES, true);
	CHANGED(f.rows[1].capture = CODE_CAPTURES + 1, false);
	CHANGED(f.rows[1].cfa_reg = USER_REGS, false);
	CHANGED(f.rows[1].cfa = ROW_CFA_NONE, true);
	CHANGED(f.rows[1].cfa = ROW_CFA_ROOT, true);
	CHANGED(f.rows[1].cfa = ROW_CFA_TAGGED, true);
	CHANGED(f.rows[1].cfa = 250, false);
	CHANGED(f.rows[1].saved[SAVED_FP] = ROW_OTHER, false);
	CHANGED(f.rows[1].saved[SAVED_MAX - 1] = ROW_OTHER, false);
	CHANGED(f.rows[1].saved[SAVED_FP] = -16, true);
	CHANGED(f.rows[1].saved[SAVED_FP] = INT32_MAX, false);
	CHANGED(f.rows[1].is_signal_frame = true, false);
	CHANGED(f.rows[0].is_end = true, false);
#undef CHANGED
}

/* Files are brought with a descriptor or without, and nothing is answered. */
static void test_files_are_taken(void **state)
{
	const struct elf_request request = { .op = ELF_OP_CODE, .file = 1 };
	const struct code_request r = { .op = CODE_OP_FILE, .addr = FAKE_BASE };

	(void)state;
	assert_int_equal(elf_service_call(service, &request, -1, &r, sizeof(r), &reply), 0);
	assert_int_equal(elf_service_call(service, &request, memory, &r, sizeof(r), &reply), 0);
	assert_true(code_reply_is_sound(&r, reply.data, reply.len));
	assert_false(code_reply_is_sound(&r, &r, 1));
	assert_int_equal(elf_service_call(service, &request, memory, &r, sizeof(r) - 1, &reply), -EBADMSG);
}

static void test_function_is_believed(void **state)
{
	const struct code_request r = { .op = CODE_OP_FUNCTION };
	struct code_named n;

	(void)state;
	memset(&n, 0, sizeof(n));
	n.function.key = 1;
	n.function.word = CODE_CAPTURE_WORDS;
	n.function.shift = 63;
	assert_true(code_reply_is_sound(&r, &n, sizeof(n)));
	assert_false(code_reply_is_sound(&r, &n, sizeof(n) - 1));
	assert_false(code_reply_is_sound(&r, &n, sizeof(n) + 1));
	n.function.shift = 64;
	assert_false(code_reply_is_sound(&r, &n, sizeof(n)));
	n.function.shift = 0;
	n.function.word = CODE_CAPTURE_WORDS + 1;
	assert_false(code_reply_is_sound(&r, &n, sizeof(n)));
	n.function.word = 0;
	n.function.key = 0;
	assert_false(code_reply_is_sound(&r, &n, sizeof(n)));
}

static void test_words_are_believed(void **state)
{
	const struct code_request words = { .op = CODE_OP_WORDS }, nothing = { .op = 77 };
	const struct code_word w[2] = { { 0 } };

	(void)state;
	assert_true(code_reply_is_sound(&words, w, sizeof(w)));
	assert_true(code_reply_is_sound(&words, w, 0));
	assert_false(code_reply_is_sound(&words, w, sizeof(w) - 1));
	assert_false(code_reply_is_sound(&words, w, 8));
	assert_false(code_reply_is_sound(&nothing, w, sizeof(w)));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_coldest_goes),
		TEST(test_forgotten),
		TEST(test_refused),
		TEST(test_words),
		TEST(test_near_words),
		cmocka_unit_test(test_ranges_are_believed),
		cmocka_unit_test(test_block_is_believed),
		cmocka_unit_test_setup_teardown(test_files_are_taken, set_up, tear_down),
		cmocka_unit_test(test_function_is_believed),
		cmocka_unit_test(test_words_are_believed),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
#else
int main(void)
{
	return 0;
}
#endif
