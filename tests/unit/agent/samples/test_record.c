/* SPDX-License-Identifier: Apache-2.0 */
/* Sample records, sections in any order, and lengths that lie. Each record ends where its memory ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/samples/record.h"
#include "base/cleanup.h"

enum { MAX_WORDS = MAX_RECORD_BYTES / 8, REGS_WORDS = sizeof(struct sample_regs) / 8 };

/* Parses a sample of @count words of sections; its size is @size_bytes, or when that is 0 what it takes. */
static int parse(const uint64_t *words, size_t count, uint32_t size_bytes, struct pending_sample *ret)
{
	static struct sample_record *last;
	size_t bytes = sizeof(*last) + count * sizeof(*words);

	free(last); /* what @ret points to lives until the next */
	last = malloc(bytes);
	assert_non_null(last);
	*last = (struct sample_record){ .hdr = { .kind = RECORD_SAMPLE,
						 .version = RECORD_VERSION,
						 .size = size_bytes ? size_bytes : (uint32_t)bytes },
					.end = END_ROOT };
	if (count)
		memcpy(last + 1, words, count * sizeof(*words));
	return record_parse(&last->hdr, ret);
}

static void test_sections(void **state)
{
	uint64_t words[16 + REGS_WORDS] = {
		[0] = SECTION(SECTION_VALUE, 8),
		[1] = 250,
		[2] = SECTION(SECTION_USER, 16),
		[3] = 7,
		[4] = 8,
		[5] = SECTION(901, 3), /* padded */
		[6] = UINT64_MAX,
		[7] = SECTION(777, 0),
		[8] = SECTION(SECTION_KERNEL, 8),
		[9] = 9,
		[10] = SECTION(901, 8),
		[12] = SECTION(SECTION_REGS, sizeof(struct sample_regs)),
	};
	struct sample_regs regs = { .exec_id = 5, .stop_sp = 6 };
	struct pending_sample s;

	(void)state;
	memcpy(&words[13], &regs, sizeof(regs));
	assert_int_equal(parse(words, 13 + REGS_WORDS, 0, &s), 0);
	assert_true(s.user_cnt == 2 && s.user[0] == 7 && s.user[1] == 8);
	assert_true(s.kernel_cnt == 1 && s.kernel[0] == 9);
	assert_true(s.regs && s.regs->exec_id == 5 && s.regs->stop_sp == 6);
	assert_int_equal(s.value, 250);
	assert_int_equal(s.unknown_cnt, 3);
	assert_true(!s.areas && !s.area_cnt);
	/* nothing but the head */
	assert_int_equal(parse(NULL, 0, 0, &s), 0);
	assert_true(!s.user && !s.user_cnt && !s.kernel && !s.kernel_cnt && !s.regs && !s.unknown_cnt);
	assert_int_equal(s.value, 1);
	assert_int_equal(s.record->end, END_ROOT);
}

/* Labels, a span, and bytes of a context; and labels whose lengths lie. */
static void test_context(void **state)
{
	const struct span_info span = { .trace = { 1, 2, 3 }, .span = { 1, 2, 3, 4, 5, 6, 7, 8 }, .flags = 1 };
	uint64_t words[] = {
		SECTION(SECTION_LABELS, 56),
		LABEL_HEAD(3, 9),
		0,
		0,
		0,
		LABEL_HEAD(8, 0),
		0,
		LABEL_HEAD(1, 1),
		SECTION(SECTION_LINK, sizeof(span)),
		0,
		0,
		0,
		0,
		SECTION(SECTION_CONTEXT, 3),
		0x030201,
	};
	struct sample_label label;
	struct pending_sample s;
	uint32_t at = 0;

	(void)state;
	memcpy(&words[2], "key", 3);
	memcpy(&words[3], "its value", 9);
	memcpy(&words[6], "eightsss", 8);
	memcpy(&words[9], &span, sizeof(span));
	assert_int_equal(parse(words, ARRAY_LEN(words), 0, &s), 0);
	assert_int_equal(s.label_words, 7);
	assert_true(sample_next_label(s.labels, s.label_words, &at, &label));
	assert_true(label.key_bytes == 3 && label.value_bytes == 9);
	assert_memory_equal(label.key, "key", 3);
	assert_memory_equal(label.value, "its value", 9);
	assert_true(sample_next_label(s.labels, s.label_words, &at, &label));
	assert_true(label.key_bytes == 8 && !label.value_bytes);
	assert_false(sample_next_label(s.labels, s.label_words, &at, &label)); /* two words are missing */
	assert_memory_equal(s.span, &span, sizeof(span));
	assert_int_equal(s.context_bytes, 3);
	assert_memory_equal(s.context, "\1\2\3", 3);
	words[8] = SECTION(SECTION_LINK, sizeof(span) - 8);
	assert_int_equal(parse(words, ARRAY_LEN(words), 0, &s), -EBADMSG);
}

/* A program's control group and environment, of any length up to the bound; an empty one is told, too. */
static void test_program(void **state)
{
	AUTO_FREE uint64_t *words = calloc(4 + MAX_ENVIRONMENT_BYTES / 8, sizeof(*words));
	struct pending_sample s;

	(void)state;
	assert_non_null(words);
	words[0] = SECTION(SECTION_CGROUP, 8);
	words[1] = 77;
	words[2] = SECTION(SECTION_ENVIRONMENT, 5);
	memcpy(&words[3], "A=1\0B", 5);
	assert_int_equal(parse(words, 2, 0, &s), 0);
	assert_true(s.cgroup == 77 && !s.environment);
	assert_int_equal(parse(words, 4, 0, &s), 0);
	assert_true(s.cgroup == 77 && s.environment_bytes == 5);
	assert_memory_equal(s.environment, "A=1\0B", 5);
	words[2] = SECTION(SECTION_ENVIRONMENT, 0);
	assert_int_equal(parse(words, 3, 0, &s), 0);
	assert_true(s.environment && !s.environment_bytes);
	words[2] = SECTION(SECTION_ENVIRONMENT, MAX_ENVIRONMENT_BYTES);
	assert_int_equal(parse(words, 3 + MAX_ENVIRONMENT_BYTES / 8, 0, &s), 0);
	assert_int_equal(s.environment_bytes, MAX_ENVIRONMENT_BYTES);
	words[2] = SECTION(SECTION_ENVIRONMENT, MAX_ENVIRONMENT_BYTES + 1);
	assert_int_equal(parse(words, 4 + MAX_ENVIRONMENT_BYTES / 8, 0, &s), -EBADMSG);
	words[2] = SECTION(SECTION_ENVIRONMENT, 9); /* longer than the record */
	assert_int_equal(parse(words, 4, 0, &s), -EBADMSG);
	words[0] = SECTION(SECTION_CGROUP, 16);
	assert_int_equal(parse(words, 3, 0, &s), -EBADMSG);
}

/* A chain, and the stack pointers of the user frames: of as many frames as there are, or not. */
static void test_chain(void **state)
{
	const uint64_t words[] = { SECTION(SECTION_USER, 24),
				   1,
				   2,
				   3,
				   SECTION(SECTION_CHAIN, 32),
				   CHAIN_WORD(CHAIN_HEAD, RUNTIME_PYTHON),
				   CHAIN_END_ROOT,
				   CHAIN_WORD(CHAIN_FRAME, 0x7fff00001000),
				   20,
				   SECTION(SECTION_STACK_POINTERS, 8 + 3 * 4), /* padded */
				   0x7fff12345678,
				   16ull << 32,
				   0xfefefefe00000000 | SP_FAR };
	const uint64_t alone[] = { SECTION(SECTION_STACK_POINTERS, 8), 0x1000 };
	struct pending_sample s;

	(void)state;
	assert_int_equal(parse(words, ARRAY_LEN(words), 0, &s), 0);
	assert_int_equal(s.chain_cnt, 4);
	assert_memory_equal(s.chain, &words[5], 4 * sizeof(*words));
	assert_int_equal(s.sp_cnt, 3);
	assert_int_equal(sample_sp(&s, 0), 0x7fff12345678);
	assert_int_equal(sample_sp(&s, 1), 0x7fff12345678 + 16);
	assert_true(sample_sp(&s, 2) == UINT64_MAX);
	assert_true(sample_sp(&s, 3) == UINT64_MAX); /* what pads it is none */
	assert_int_equal(s.unknown_cnt, 0);
	assert_int_equal(parse(alone, ARRAY_LEN(alone), 0, &s), 0);
	assert_int_equal(s.sp_cnt, 0);
	assert_true(sample_sp(&s, 0) == UINT64_MAX);
	assert_int_equal(parse(NULL, 0, 0, &s), 0);
	assert_true(!s.chain && !s.chain_cnt && sample_sp(&s, 0) == UINT64_MAX);
}

/* A wait, and a second sample of the same stack. */
static void test_waits(void **state)
{
	const struct wait_info wait = { .since_ns = 77, .woken_ns = 99, .state = WAIT_STOPPED, .syscall = -1 };
	uint64_t words[] = { SECTION(SECTION_VALUE, 8),
			     250,
			     SECTION(SECTION_WAIT, sizeof(wait)),
			     0,
			     0,
			     0,
			     SECTION(SECTION_MORE, 16),
			     2,
			     90 };
	struct pending_sample s;

	(void)state;
	memcpy(&words[3], &wait, sizeof(wait));
	assert_int_equal(parse(words, ARRAY_LEN(words), 0, &s), 0);
	assert_int_equal(s.value, 250);
	assert_int_equal(s.more_cnt, 1);
	assert_true(s.more[0] == 2 && s.more[1] == 90);
	assert_memory_equal(s.wait, &wait, sizeof(wait));
	assert_int_equal(s.unknown_cnt, 0);
	assert_int_equal(parse(words, 2, 0, &s), 0);
	assert_true(!s.more_cnt && !s.wait);
}

/* Wakes of one waker; and what a wait was for. */
static void test_wakers(void **state)
{
	const struct wake wakes[] = { { 77, 250, 5, 0 }, { 78, 260, 6, 0 } };
	const struct wait_target target = { .kind = TARGET_FUTEX, .addr = 0x1000 };
	uint64_t words[1 + 2 * 3 + 1 + sizeof(target) / 8] = { SECTION(SECTION_WAKES, sizeof(wakes)) };
	struct pending_sample s;

	(void)state;
	memcpy(&words[1], wakes, sizeof(wakes));
	words[7] = SECTION(SECTION_TARGET, sizeof(target));
	memcpy(&words[8], &target, sizeof(target));
	assert_int_equal(parse(words, ARRAY_LEN(words), 0, &s), 0);
	assert_int_equal(s.wake_cnt, 2);
	assert_memory_equal(s.wakes, wakes, sizeof(wakes));
	assert_memory_equal(s.target, &target, sizeof(target));
	assert_true(!s.is_irq && !s.target_name && !s.unknown_cnt);
	words[0] = SECTION(SECTION_WAKES, sizeof(wakes) - 8);
	assert_int_equal(parse(words, 6, 0, &s), -EBADMSG);
}

static void test_bad_sections(void **state)
{
	static const struct {
		const char *name;
		size_t count;
		uint64_t words[4];
	} bad[] = {
		{ "no type", 1, { 0 } },
		{ "no type, with content", 2, { SECTION(0, 8) } },
		{ "longer than the record", 2, { SECTION(SECTION_USER, 16) } },
		{ "a byte longer", 2, { SECTION(SECTION_LABELS, 9) } },
		{ "much longer", 2, { SECTION(SECTION_LABELS, UINT32_MAX) } },
		{ "behind the record, a head alone", 1, { SECTION(SECTION_KERNEL, 8) } },
		{ "half a frame", 2, { SECTION(SECTION_KERNEL, 4) } },
		{ "a frame and a half", 3, { SECTION(SECTION_USER, 12) } },
		{ "no frames", 1, { SECTION(SECTION_USER, 0) } },
		{ "short registers", 2, { SECTION(SECTION_REGS, 8) } },
		{ "two values", 3, { SECTION(SECTION_VALUE, 16) } },
		{ "half a wait", 2, { SECTION(SECTION_WAIT, 8) } },
		{ "no wakes", 1, { SECTION(SECTION_WAKES, 0) } },
		{ "half a wake", 3, { SECTION(SECTION_WAKES, 16) } },
		{ "a part of a target", 2, { SECTION(SECTION_TARGET, 8) } },
		{ "no more", 1, { SECTION(SECTION_MORE, 0) } },
		{ "a kind without a value", 2, { SECTION(SECTION_MORE, 8) } },
		{ "the same twice", 4, { SECTION(SECTION_USER, 8), 1, SECTION(SECTION_USER, 8), 2 } },
		{ "no chain", 1, { SECTION(SECTION_CHAIN, 0) } },
		{ "half a pair", 2, { SECTION(SECTION_CHAIN, 8) } },
		{ "a pair and a half", 4, { SECTION(SECTION_CHAIN, 24) } },
		{ "a chain longer than the record", 3, { SECTION(SECTION_CHAIN, 32) } },
		{ "two chains", 4, { SECTION(SECTION_CHAIN, 16), 1, 1, SECTION(SECTION_CHAIN, 16) } },
		{ "no stack pointers", 1, { SECTION(SECTION_STACK_POINTERS, 0) } },
		{ "half a stack pointer", 2, { SECTION(SECTION_STACK_POINTERS, 4) } },
		{ "an odd stack pointer", 3, { SECTION(SECTION_STACK_POINTERS, 14) } },
		{ "stack pointers longer than the record", 2, { SECTION(SECTION_STACK_POINTERS, 12) } },
		{ "good, then bad", 4, { SECTION(SECTION_USER, 8), 1, SECTION(SECTION_KERNEL, 16), 2 } },
	};
	struct pending_sample s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		print_message("%s\n", bad[i].name);
		assert_int_equal(parse(bad[i].words, bad[i].count, 0, &s), -EBADMSG);
	}
}

/* As many frames, and bytes, as there may be; and one more. */
static void test_limits(void **state)
{
	AUTO_FREE uint64_t *words = calloc(MAX_WORDS + 1, sizeof(*words));
	const size_t most = (MAX_RECORD_BYTES - sizeof(struct sample_record)) / 8;
	struct pending_sample s;

	(void)state;
	assert_non_null(words);
	words[0] = SECTION(SECTION_USER, MAX_USER_FRAMES * 8);
	assert_int_equal(parse(words, 1 + MAX_USER_FRAMES, 0, &s), 0);
	assert_int_equal(s.user_cnt, MAX_USER_FRAMES);
	words[0] = SECTION(SECTION_USER, (MAX_USER_FRAMES + 1) * 8);
	assert_int_equal(parse(words, 2 + MAX_USER_FRAMES, 0, &s), -EBADMSG);
	words[0] = SECTION(SECTION_KERNEL, MAX_KERNEL_FRAMES * 8);
	assert_int_equal(parse(words, 1 + MAX_KERNEL_FRAMES, 0, &s), 0);
	assert_int_equal(s.kernel_cnt, MAX_KERNEL_FRAMES);
	words[0] = SECTION(SECTION_KERNEL, (MAX_KERNEL_FRAMES + 1) * 8);
	assert_int_equal(parse(words, 2 + MAX_KERNEL_FRAMES, 0, &s), -EBADMSG);
	words[0] = SECTION(SECTION_CHAIN, MAX_CHAIN_WORDS * 8);
	assert_int_equal(parse(words, 1 + MAX_CHAIN_WORDS, 0, &s), 0);
	assert_int_equal(s.chain_cnt, MAX_CHAIN_WORDS);
	words[0] = SECTION(SECTION_CHAIN, (MAX_CHAIN_WORDS + 2) * 8);
	assert_int_equal(parse(words, 3 + MAX_CHAIN_WORDS, 0, &s), -EBADMSG);
	words[0] = SECTION(SECTION_STACK_POINTERS, 8 + MAX_USER_FRAMES * 4);
	assert_int_equal(parse(words, 2 + MAX_USER_FRAMES / 2, 0, &s), 0);
	assert_int_equal(s.sp_cnt, MAX_USER_FRAMES);
	words[0] = SECTION(SECTION_STACK_POINTERS, 12 + MAX_USER_FRAMES * 4);
	assert_int_equal(parse(words, 3 + MAX_USER_FRAMES / 2, 0, &s), -EBADMSG);
	words[0] = SECTION(901, (most - 1) * 8);
	assert_int_equal(parse(words, most, 0, &s), 0);
	assert_int_equal(s.unknown_cnt, 1);
	words[0] = SECTION(901, most * 8);
	assert_int_equal(parse(words, most + 1, 0, &s), -EBADMSG);
}

static void test_bad_heads(void **state)
{
	const uint64_t words[] = { SECTION(SECTION_USER, 8), 1 };
	const uint32_t sizes[] = { 1,
				   sizeof(struct record),
				   sizeof(struct sample_record) - 8,
				   sizeof(struct sample_record) + 8,
				   sizeof(struct sample_record) + 12,
				   sizeof(struct sample_record) + 15 };
	struct sample_record r = { .hdr = { .kind = RECORD_SAMPLE, .version = RECORD_VERSION, .size = sizeof(r) } };
	struct pending_sample s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		assert_int_equal(parse(words, ARRAY_LEN(words), sizes[i], &s), -EBADMSG);
	assert_int_equal(record_parse(&r.hdr, &s), 0);
	r.end = END_MAX;
	assert_int_equal(record_parse(&r.hdr, &s), -EBADMSG);
	r.end = END_NONE;
	r.hdr.version = RECORD_VERSION - 1;
	assert_int_equal(record_parse(&r.hdr, &s), -EBADMSG);
	r.hdr.version = RECORD_VERSION;
	r.hdr.kind = RECORD_STACK_CHUNK;
	assert_int_equal(record_parse(&r.hdr, &s), -EBADMSG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_context),	     cmocka_unit_test(test_sections), cmocka_unit_test(test_chain),
		cmocka_unit_test(test_bad_sections), cmocka_unit_test(test_limits),   cmocka_unit_test(test_bad_heads),
		cmocka_unit_test(test_waits),	     cmocka_unit_test(test_wakers),   cmocka_unit_test(test_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
