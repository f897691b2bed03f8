/* SPDX-License-Identifier: Apache-2.0 */
/* Where processes keep generated code: which file is asked, when, and what becomes of its ranges and captures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/agent/code/made_code.h"

#define MB (1ull << 20)

static struct file library = { .id = 51, .path = (char *)"/library" };

static void wait_ms(uint64_t ms)
{
	made.now_ns += ms * NSEC_PER_MSEC;
}

static void ranges_are(const struct code_range *ranges, uint32_t count)
{
	made.ranges = (struct code_ranges){ .count = count };
	memcpy(made.ranges.ranges, ranges, count * sizeof(*ranges));
}

static void memory_of_a_runtime_gets_a_file(void **state)
{
	const uint32_t asid = process.as->asid;
	const struct mapping *m;

	(void)state;
	assert_true(code_spaces_has_runtime(spaces, process.as));
	assert_false(code_spaces_has_code(process.as) || code_spaces_are_used(spaces));
	assert_true(code_spaces_meet(spaces, &process));
	assert_true(code_spaces_has_runtime(spaces, process.as));
	assert_true(code_spaces_has_code(process.as) && code_spaces_are_used(spaces));
	assert_int_not_equal(process.as->asid, asid);
	assert_int_equal(made.request.op, CODE_OP_RANGES);
	assert_int_equal(made.request.bias, RUNTIME_BIAS);
	assert_int_equal(made.request.facts.id, CODE_V8);
	assert_int_equal(made.request.facts.version, 77);
	assert_int_equal(made.given_cnt, 1);
	assert_true(made.given[0].start == CODE_AT && made.given[0].end == CODE_AT + CODE_BYTES);
	m = address_space_find(process.as, CODE_AT + 0x1234);
	assert_true(m && m->file && m->file->code);
	assert_int_equal(m->bias, CODE_AT);
	assert_string_equal(m->file->path, "/runtime");
	assert_int_equal(m->file->info.segments[0].size_bytes, CODE_BYTES);
	assert_int_equal(metric_of("hearth_code_processes_total"), 1);
	assert_true(code_spaces_memory_bytes(spaces) >= sizeof(*spaces));
	assert_int_equal(code_of_process()->as_code.refs, 1);
	assert_int_equal(made.forgotten_cnt, 0);
}

static void processes_that_go_are_forgotten_unless_all_is_over(void **state)
{
	int files = open_descriptors();

	(void)state;
	for (int is_over = 0; is_over < 2; is_over++) {
		made_begin(NULL);
		spaces->service->on_wait.arg = &made;
		assert_true(code_spaces_meet(spaces, &process));
		if (is_over)
			code_spaces_detach(spaces);
		assert_int_equal(spaces->service->on_wait.arg != NULL, !is_over);
		assert_int_equal(open_descriptors(), files + 1);
		address_space_put(process.as);
		process.as = address_space_new();
		assert_false(code_spaces_are_used(spaces));
		assert_int_equal(open_descriptors(), files);
		assert_int_equal(made.forgotten_cnt, !is_over);
		assert_int_equal(made.forgotten, is_over ? 0 : made.number);
		assert_int_equal(made.held, 0);
		made_end(NULL);
	}
	made_begin(NULL);
}

static void run(void *arg)
{
	++*(int *)arg;
}

/* Processes before and behind one that goes stay known. */
static void each_process_has_its_own_code(void **state)
{
	enum { COUNT = 3 };
	struct process more[COUNT];
	int waits = 0;

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		more[i] = (struct process){ .pid = process.pid, .as = address_space_new() };
		assert_true(address_space_map(&more[i].as, RUNTIME_AT, RUNTIME_AT + 0x1000, 0, &runtime) >= 0);
		assert_true(address_space_map(&more[i].as, CODE_AT, CODE_AT + CODE_BYTES, 0, NULL) >= 0);
		assert_true(code_spaces_meet(spaces, &more[i]));
		assert_int_equal(made.number, i + 1);
	}
	assert_int_equal(metric_of("hearth_code_processes_total"), COUNT);
	address_space_put(more[1].as);
	assert_int_equal(made.forgotten, 2);
	for (uint32_t i = 0; i < COUNT; i += 2) {
		assert_true(code_spaces_are_used(spaces));
		address_space_put(more[i].as);
		assert_int_equal(made.forgotten, i + 1);
	}
	assert_false(code_spaces_are_used(spaces));
	code_spaces_on_wait(spaces, (struct wait_hook){ .run = run, .arg = &waits });
	assert_true(made_service.on_wait.run == run && made_service.on_wait.arg == &waits);
	made_service.on_wait = (struct wait_hook){ 0 };
}

static void runtimes_are_files_that_a_reader_knows(void **state)
{
	static const struct {
		uint32_t kind, id, off;
		bool is_foreign, is_one;
	} cases[] = {
		{ RUNTIME_FILE_CODE, CODE_V8, 0, false, true },
		{ RUNTIME_FILE_CODE, CODE_V8, 1u << CODE_HOTSPOT, false, true },
		{ RUNTIME_FILE_CODE, CODE_V8, 1u << CODE_V8, false, false },
		{ RUNTIME_FILE_CODE, CODE_BEAM, 0, false, false }, /* no reader here */
		{ RUNTIME_FILE_LIBC, CODE_V8, 0, false, false },
		{ RUNTIME_FILE_CODE, CODE_V8, 0, true, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		runtime.info.runtime.kind = cases[i].kind;
		runtime.info.runtime.code.id = cases[i].id;
		spaces->off = cases[i].off;
		process.as->maps[0].is_foreign = cases[i].is_foreign;
		assert_int_equal(code_spaces_has_runtime(spaces, process.as), cases[i].is_one);
		if (!cases[i].is_one)
			assert_false(code_spaces_meet(spaces, &process));
	}
	assert_int_equal(made.calls[CODE_OP_RANGES], 0);
	runtime.info.runtime.kind = RUNTIME_FILE_CODE;
}

/* The time to the next question doubles, to 250 ms before there is code, and 2 s when there is. */
static void questions_become_rarer(void **state)
{
	static const struct {
		uint32_t ms;
		bool has_code;
	} cases[] = { { 40, false }, { 80, false }, { 160, false }, { 250, false }, { 250, true },
		      { 250, true }, { 500, true }, { 1000, true }, { 2000, true }, { 2000, true } };
	const uint32_t asid = process.as->asid;

	(void)state;
	made.ranges.count = 0;
	assert_false(code_spaces_meet(spaces, &process));
	assert_int_not_equal(process.as->asid, asid);
	assert_int_equal(made.published_cnt, 1); /* else the kernel would miss for as long as there is no code */
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const uint32_t before = made.calls[CODE_OP_RANGES];

		made.ranges.count = cases[i].has_code;
		wait_ms(cases[i].ms - 1);
		assert_false(code_spaces_meet(spaces, &process));
		assert_int_equal(made.calls[CODE_OP_RANGES], before);
		wait_ms(1);
		assert_int_equal(code_spaces_meet(spaces, &process), cases[i].has_code && !cases[i - 1].has_code);
		assert_int_equal(made.calls[CODE_OP_RANGES], before + 1);
	}
	assert_int_equal(metric_of("hearth_code_processes_total"), 1);
	assert_int_equal(made.published_cnt, 2);
}

/* Meeting the process finds nothing new; by then @asked questions were asked of it. */
static void meets_nothing(uint32_t asked)
{
	assert_false(code_spaces_meet(spaces, &process));
	assert_int_equal(made.calls[CODE_OP_RANGES], asked);
}

/* New memory is asked about soon, however long ago the last code was found; once. */
static void new_memory_does_not_wait(void **state)
{
	const uint32_t before = made.calls[CODE_OP_RANGES];

	(void)state;
	assert_true(code_spaces_meet(spaces, &process));
	for (int i = 0; i < 8; i++) {
		wait_ms(2000);
		assert_false(code_spaces_meet(spaces, &process));
	}
	wait_ms(20);
	meets_nothing(before + 9);
	map_at(0x70000000, 0x70001000, 0, NULL);
	meets_nothing(before + 10);
	assert_int_equal(made.given_cnt, 2);
	wait_ms(1999);
	meets_nothing(before + 10);
	map_at(0x72000000, 0x72001000, 0, NULL);
	meets_nothing(before + 11);
	map_at(0x74000000, 0x74001000, 0, NULL);
	wait_ms(19);
	assert_false(code_spaces_is_behind(process.as));
	meets_nothing(before + 11);
	assert_true(code_spaces_is_behind(process.as));
	wait_ms(1);
	meets_nothing(before + 12);
	assert_false(code_spaces_is_behind(process.as));
}

/* Files are asked in the order of readers, then of their ids; after the last one comes the first again. */
static void files_without_code_are_asked_in_turns(void **state)
{
	static struct file files[3];
	static const struct {
		uint32_t code, id;
	} facts[] = { { CODE_GDB_JIT, 7 }, { CODE_HOTSPOT, 90 }, { CODE_HOTSPOT, 80 } };
	static const uint32_t order[] = { CODE_HOTSPOT, CODE_HOTSPOT, CODE_V8, CODE_GDB_JIT, CODE_HOTSPOT };
	static const uint32_t biases[] = { 3, 2, 0, 1, 3 };
	uint32_t number = 0;

	(void)state;
	made.ranges.count = 0;
	for (uint32_t i = 0; i < 3; i++) {
		files[i] = runtime;
		files[i].id = facts[i].id;
		files[i].info.runtime.code.id = facts[i].code;
		map_at(RUNTIME_AT + (i + 1) * 0x10000, RUNTIME_AT + (i + 1) * 0x10000 + 0x1000, 0, &files[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		assert_false(code_spaces_meet(spaces, &process));
		assert_int_equal(made.request.facts.id, order[i]);
		assert_int_equal(made.request.bias, RUNTIME_BIAS + biases[i] * 0x10000);
		assert_true(made.number > number); /* the reader knows it by another one */
		assert_int_equal(made.forgotten, number);
		assert_int_equal(made.forgotten_cnt, i);
		number = made.number;
		wait_ms(250);
	}
	assert_int_equal(code_spaces_take_number(spaces), number + 1);
	made.ranges.count = 1;
	assert_true(code_spaces_meet(spaces, &process)); /* the second of HotSpot's */
	assert_int_equal(made.request.bias, RUNTIME_BIAS + 2 * 0x10000);
	wait_ms(2000);
	assert_false(code_spaces_meet(spaces, &process)); /* it has code, and is asked alone */
	assert_int_equal(made.request.bias, RUNTIME_BIAS + 2 * 0x10000);
}

static void memory_is_told_by_pieces(void **state)
{
	static const struct code_range pieces[] = {
		{ CODE_AT + 2 * MB, CODE_AT + 3 * MB },		 /* as near as may be: joins the first */
		{ CODE_AT + 4 * MB + 0x1000, CODE_AT + 5 * MB }, /* a page farther */
	};

	(void)state;
	map_at(CODE_AT + MB, CODE_AT + MB + 0x1000, 0, &library); /* is no such memory */
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		map_at(pieces[i].start, pieces[i].end, 0, NULL);
	for (uint64_t i = 0; i < 20; i++)
		map_at(CODE_AT + (10 + 4 * i) * MB, CODE_AT + (11 + 4 * i) * MB, 0, NULL);
	assert_true(code_spaces_meet(spaces, &process));
	assert_int_equal(made.given_cnt, CODE_RANGES);
	assert_int_equal(made.given[0].start, CODE_AT);
	assert_int_equal(made.given[0].end, CODE_AT + 3 * MB);
	assert_int_equal(made.given[1].start, CODE_AT + 4 * MB + 0x1000);
	assert_int_equal(made.given[1].end, CODE_AT + 5 * MB);
	assert_int_equal(made.given[15].start, CODE_AT + 62 * MB);
	wait_ms(2000);
	(void)code_spaces_meet(spaces, &process); /* what is known as code's stays among it */
	assert_int_equal(made.given[0].start, CODE_AT);
	assert_int_equal(made.given[0].end, CODE_AT + 3 * MB);
}

static void ranges_are_whole_pages_and_join(void **state)
{
	const struct code_range found[] = {
		{ CODE_AT + 10 * MB, CODE_AT + 11 * MB },	  { CODE_AT + 100, CODE_AT + 4097 },
		{ CODE_AT + 4097 + MB, CODE_AT + 3 * MB },	  /* as near as may be to that before */
		{ CODE_AT + 4 * MB + 1, CODE_AT + 5 * MB },	  /* a byte farther */
		{ CODE_AT + 10 * MB + 5, CODE_AT + 10 * MB + 9 }, /* inside of the first */
	};
	struct code_process *cp;

	(void)state;
	ranges_are(found, ARRAY_LEN(found));
	assert_true(code_spaces_meet(spaces, &process));
	cp = code_of_process();
	assert_int_equal(cp->range_cnt, 3);
	assert_true(cp->ranges[0]->start == CODE_AT && cp->ranges[0]->end == CODE_AT + 3 * MB);
	assert_true(cp->ranges[1]->start == CODE_AT + 4 * MB && cp->ranges[1]->end == CODE_AT + 5 * MB);
	assert_true(cp->ranges[2]->start == CODE_AT + 10 * MB && cp->ranges[2]->end == CODE_AT + 11 * MB);
	assert_true(cp->ranges[0]->file->id != cp->ranges[1]->file->id);
	wait_ms(2000);
	assert_false(code_spaces_meet(spaces, &process)); /* the same ones */
	assert_int_equal(cp->range_cnt, 3);
	ranges_are((const struct code_range[]){ { CODE_AT + 20 * MB, CODE_AT + 21 * MB } }, 1);
	wait_ms(2000);
	assert_true(code_spaces_meet(spaces, &process));
	assert_int_equal(cp->range_cnt, 4);
	for (uint64_t i = 0; i < CODE_RANGES; i++)
		made.ranges.ranges[i] = (struct code_range){ CODE_AT + (100 + 4 * i) * MB, CODE_AT + (101 + 4 * i) * MB };
	made.ranges.count = CODE_RANGES;
	wait_ms(2000);
	assert_true(code_spaces_meet(spaces, &process));
	assert_int_equal(cp->range_cnt, CODE_RANGES);
}

static void ranges_that_would_be_too_long_stay_apart(void **state)
{
	const struct code_range found[] = { { CODE_AT, CODE_AT + (1ull << 31) },
					    { CODE_AT + (1ull << 31), CODE_AT + (1ull << 32) - 1 },
					    { CODE_AT + (1ull << 32) - 1, CODE_AT + (1ull << 32) } };
	const struct code_process *cp;

	(void)state;
	ranges_are(found, ARRAY_LEN(found));
	assert_true(code_spaces_meet(spaces, &process));
	cp = code_of_process();
	assert_int_equal(cp->range_cnt, 1); /* the last byte's page is in the first range, when that is rounded */
	assert_true(cp->ranges[0]->end == CODE_AT + (1ull << 32));
}

static void harm_ends_all_questions_for_a_while(void **state)
{
	static const struct {
		int status;
		bool is_hostile;
	} cases[] = { { -ETIMEDOUT, true }, { -ENOBUFS, true }, { -EFAULT, false }, { -EAGAIN, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		made_end(NULL);
		made_begin(NULL);
		made.status = cases[i].status;
		assert_false(code_spaces_meet(spaces, &process));
		assert_int_equal(metric_of("hearth_code_hostile_total"), cases[i].is_hostile);
		assert_int_equal(code_of_process()->harms, cases[i].is_hostile);
		made.status = 0;
		wait_ms(1000);
		assert_int_equal(code_spaces_meet(spaces, &process), !cases[i].is_hostile);
		assert_int_equal(made.calls[CODE_OP_RANGES], cases[i].is_hostile ? 1 : 2);
		wait_ms(10000);
		assert_int_equal(code_spaces_meet(spaces, &process), cases[i].is_hostile);
	}
	assert_int_equal(distrusted, 0);
	made_end(NULL);
	made_begin(NULL);
	made.cut = 1; /* an answer that makes no sense */
	assert_false(code_spaces_meet(spaces, &process));
	assert_int_equal(metric_of("hearth_code_hostile_total"), 1);
	assert_int_equal(distrusted, 1);
}

/* Who does harm again rests for longer, and is not asked any more in the end. */
static void harm_that_comes_again(void **state)
{
	static const uint64_t rests_ms[] = { 10000, 100000, 1000000 };

	(void)state;
	made.status = -EPROTO;
	for (uint32_t i = 0; i < ARRAY_LEN(rests_ms); i++) {
		assert_false(code_spaces_meet(spaces, &process));
		assert_int_equal(made.calls[CODE_OP_RANGES], i + 1);
		assert_int_equal(metric_of("hearth_code_hostile_total"), i + 1);
		wait_ms(rests_ms[i] - 1000);
		assert_false(code_spaces_meet(spaces, &process));
		assert_int_equal(made.calls[CODE_OP_RANGES], i + 1);
		wait_ms(2000);
	}
	made.status = 0;
	assert_false(code_spaces_meet(spaces, &process));
	assert_int_equal(made.calls[CODE_OP_RANGES], 3);
}

static void memory_that_cannot_be_opened_is_not_read(void **state)
{
	(void)state;
	process.pid = 1 << 30;
	assert_false(code_spaces_meet(spaces, &process));
	assert_int_equal(made.calls[CODE_OP_RANGES], 0);
}

/* What let nobody look when it was met is opened when it is asked again, unless it has ended. */
static void silent_memory_is_opened_later(void **state)
{
	struct code_process *p;

	(void)state;
	assert_true(code_spaces_meet(spaces, &process));
	p = code_of_process();
	for (int ended = 1; ended >= 0; ended--) {
		if (p->memory_fd >= 0)
			close(p->memory_fd);
		p->memory_fd = -EBUSY;
		p->has_ended = ended;
		wait_ms(100000);
		(void)code_spaces_meet(spaces, &process);
		assert_int_equal(p->memory_fd == -EBUSY, ended);
	}
	assert_true(p->memory_fd >= 0);
	assert_int_equal(made.calls[CODE_OP_RANGES], 2);
}

/* --- captures --- */

static struct row row_of(uint8_t capture)
{
	return (struct row){ .start = capture, .capture = capture };
}

static void captures_of_files_are_told_to_the_kernel_once(void **state)
{
	struct row rows[] = { row_of(2), row_of(0), row_of(1), row_of(2), row_of(3), row_of(CODE_CAPTURES + 1) };
	struct row again[] = { row_of(1) }, without[] = { row_of(1) }, none[] = { row_of(1) };

	(void)state;
	code_map_captures(spaces, &runtime, rows, ARRAY_LEN(rows));
	assert_int_equal(rows[0].capture, 1);
	assert_int_equal(rows[1].capture, 0);
	assert_int_equal(rows[2].capture, 2);
	assert_int_equal(rows[3].capture, 1);
	assert_int_equal(rows[4].capture, 0); /* the runtime has no third */
	assert_int_equal(rows[5].capture, 0);
	assert_int_equal(made.capture_cnt, 2);
	assert_int_equal(made.captures[1].count, 2);
	assert_int_equal(made.captures[1].words[0].offset, -16);
	assert_int_equal(made.captures[1].words[0].reg, -1);
	assert_int_equal(made.captures[1].words[1].offset, -24);
	assert_int_equal(made.captures[2].words[0].reg, 3);
	assert_int_equal(made.captures[2].words[0].follow, 7);
	code_map_captures(spaces, &runtime, again, 1);
	assert_int_equal(again[0].capture, 2);
	assert_int_equal(made.capture_cnt, 2);
	code_map_captures(NULL, &runtime, without, 1);
	assert_int_equal(without[0].capture, 0);
	code_map_captures(spaces, &library, none, 1);
	assert_int_equal(none[0].capture, 0);
	assert_null(code_capture_class(spaces, 0));
	assert_int_equal(code_capture_class(spaces, 2)->count, 1);
	assert_null(code_capture_class(spaces, 3));
}

static void there_are_so_many_captures(void **state)
{
	(void)state;
	made.capture_error = -EPERM; /* the kernel does not take it: it is none */
	made.ranges.captures[0] = (struct code_capture){ .count = 1 };
	assert_true(code_spaces_meet(spaces, &process));
	assert_int_equal(code_of_process()->classes[0], 0);
	made.capture_error = 0;
	for (int16_t n = 0; n < 5; n++) {
		for (int16_t i = 0; i < CODE_CAPTURES; i++)
			made.ranges.captures[i] = (struct code_capture){ .count = 1,
									 .words = { { .offset = (int16_t)(4 * n + i) } } };
		wait_ms(2000);
		(void)code_spaces_meet(spaces, &process);
		for (uint32_t i = 0; i < CODE_CAPTURES; i++) {
			uint32_t number = 1 + 4 * (uint32_t)n + i;

			assert_int_equal(code_of_process()->classes[i], number < CAPTURE_CLASSES ? number : 0);
		}
	}
	assert_int_equal(made.capture_cnt, CAPTURE_CLASSES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(memory_of_a_runtime_gets_a_file, made_begin, made_end),
		cmocka_unit_test_teardown(processes_that_go_are_forgotten_unless_all_is_over, made_end),
		cmocka_unit_test_setup_teardown(each_process_has_its_own_code, made_begin, made_end),
		cmocka_unit_test_setup_teardown(runtimes_are_files_that_a_reader_knows, made_begin, made_end),
		cmocka_unit_test_setup_teardown(questions_become_rarer, made_begin, made_end),
		cmocka_unit_test_setup_teardown(new_memory_does_not_wait, made_begin, made_end),
		cmocka_unit_test_setup_teardown(files_without_code_are_asked_in_turns, made_begin, made_end),
		cmocka_unit_test_setup_teardown(memory_is_told_by_pieces, made_begin, made_end),
		cmocka_unit_test_setup_teardown(ranges_are_whole_pages_and_join, made_begin, made_end),
		cmocka_unit_test_setup_teardown(ranges_that_would_be_too_long_stay_apart, made_begin, made_end),
		cmocka_unit_test_setup_teardown(harm_ends_all_questions_for_a_while, made_begin, made_end),
		cmocka_unit_test_setup_teardown(harm_that_comes_again, made_begin, made_end),
		cmocka_unit_test_setup_teardown(memory_that_cannot_be_opened_is_not_read, made_begin, made_end),
		cmocka_unit_test_setup_teardown(silent_memory_is_opened_later, made_begin, made_end),
		cmocka_unit_test_setup_teardown(captures_of_files_are_told_to_the_kernel_once, made_begin, made_end),
		cmocka_unit_test_setup_teardown(there_are_so_many_captures, made_begin, made_end),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
