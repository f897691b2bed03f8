/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in generated code: which of them have names, and when tokens are looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/agent/code/made_frames.h"

static void frames_are_places_in_their_pieces(void **state)
{
	const uint64_t user[] = { (CODE_AT + 0x180) | FRAME_EXACT,
				  CODE_AT + 0x181,
				  CODE_AT + 0x201,
				  CODE_AT + 0x200,
				  CODE_AT + 0x350,
				  RUNTIME_AT + 5,
				  0x123 };

	(void)state;
	meet(0x180);
	meet(0x280);
	meet(0x380);
	made.now_ns += 10;
	assert_int_equal(name(user, ARRAY_LEN(user), made.now_ns - 5, false), ARRAY_LEN(user));
	assert_int_equal(walk_end, END_ROOT);
	assert_true(frames[0] == frame_of(0x180, 0x80));
	assert_true(frames[1] == frame_of(0x180, 0x80 | CODE_PLACE_RETURN));
	assert_true(frames[2] == frame_of(0x280, 0 | CODE_PLACE_RETURN));
	assert_true(frames[3] == frame_of(0x180, 0xff | CODE_PLACE_RETURN));
	for (int i = 4; i < 7; i++)
		assert_true(frames[i] == user[i]); /* no names, or no such code */
	assert_int_equal(metric_of("hearth_code_frames_unknown_total"), 1);
	assert_int_equal(name(user + 4, 1, made.now_ns, false), 1);
	assert_int_equal(metric_of("hearth_code_frames_unknown_total"), 2);
	assert_int_equal(name(&(uint64_t){ CODE_AT + 0x500 }, 1, made.now_ns, false), 1); /* not read */
	assert_int_equal(metric_of("hearth_code_frames_unknown_total"), 3);
	assert_true(frames[0] == CODE_AT + 0x500);
}

/* --- tokens --- */

static void tokens_are_looked_at_when_a_sample_is_younger(void **state)
{
	const uint64_t user[] = { CODE_AT + 0x181, CODE_AT + 0x281 };
	const struct code_piece *piece = meet(0x180);
	const uint64_t read_ns = made.now_ns;

	(void)state;
	meet(0x280);
	made.now_ns += 10;
	assert_int_equal(name(user, 2, read_ns, false), 2);
	assert_int_equal(made.calls[CODE_OP_WORDS], 0);
	assert_int_equal(name(user, 2, read_ns + 1, false), 2);
	assert_int_equal(made.calls[CODE_OP_WORDS], 1); /* of both at once */
	assert_int_equal(made.word_cnt, 2 + 1);
	assert_int_equal(piece->thing.checked_ns, read_ns + 10);
	assert_int_equal(piece->thing.used_ns, read_ns + 1);
	assert_int_equal(name(user, 2, read_ns + 10, false), 2);
	assert_int_equal(made.calls[CODE_OP_WORDS], 1);
	assert_int_equal(name(user, 2, read_ns + 2, false), 2);
	assert_int_equal(piece->thing.used_ns, read_ns + 10); /* of the youngest */
	assert_int_equal(metric_of("hearth_code_checks_total"), 1);
	/* what no sample had for long is not looked at with the others, but alone when one has it */
	made.now_ns = read_ns + 10 + 30 * NSEC_PER_SEC;
	assert_int_equal(name(user, 1, made.now_ns, false), 1);
	assert_int_equal(made.word_cnt, 1 + 1);
	assert_int_equal(name(user + 1, 1, made.now_ns, false), 1);
	assert_int_equal(made.word_cnt, 2 + 1);
	assert_int_equal(made.calls[CODE_OP_WORDS], 3);
	made.now_ns += 2 * NSEC_PER_SEC - 1;
	assert_int_equal(name(user, 1, made.now_ns, false), 1);
	assert_int_equal(made.word_cnt, 2 + 1);
	assert_int_equal(made.calls[CODE_OP_WORDS], 4);
	/* a sample's own are looked at together, each once */
	made.now_ns += 20 * NSEC_PER_SEC;
	assert_int_equal(name((const uint64_t[]){ user[0], user[1], user[0] }, 3, made.now_ns, false), 3);
	assert_int_equal(made.word_cnt, 2 + 1);
	assert_int_equal(made.calls[CODE_OP_WORDS], 5);
	made.now_ns += 30 * NSEC_PER_SEC;
	code_spaces_look(spaces);
	assert_int_equal(made.calls[CODE_OP_WORDS], 5); /* nothing is in use */
}

/* A walk finds all looked at that words of the stack lead to: return addresses, wherever they stand. */
static void what_a_stack_leads_to_is_looked_at_at_once(void **state)
{
	uint64_t words[] = { CODE_AT + 0x200, RUNTIME_AT + 5, CODE_AT + 0x1ff, CODE_AT + 0x301 };
	uint8_t unaligned[4 + 8] = { 0 };
	const struct stack_area areas[] = { { 0x7004, sizeof(unaligned), unaligned },
					    { 0x9000, sizeof(words) - 1, (const uint8_t *)words } };
	const uint64_t user[] = { (CODE_AT + 0x300) | FRAME_EXACT };
	const struct code_piece *first = meet(0x180), *second = meet(0x280), *third = meet(0x380);
	const struct sample_record record = { .hdr = { .time_ns = made.now_ns + 5 } };
	struct pending_sample s = { .record = &record, .areas = areas, .area_cnt = 1 };
	const uint64_t used_ns = second->thing.used_ns;

	(void)state;
	memcpy(unaligned + 4, &(uint64_t){ CODE_AT + 0x180 }, 8);
	made.now_ns += 10;
	code_expect(&process, &s);
	assert_int_equal(made.word_cnt, 1 + 1);
	assert_int_equal(first->thing.checked_ns, made.now_ns);
	s.area_cnt = 2; /* 0x200, as a return address, is the first one's; 0x301 is cut off */
	made.now_ns += 10;
	code_expect(&process, &s);
	assert_int_equal(made.calls[CODE_OP_WORDS], 1);
	words[2] = CODE_AT + 0x201;
	s.user = user;
	s.user_cnt = 1;
	code_expect(&process, &s);
	assert_int_equal(made.calls[CODE_OP_WORDS], 2);
	assert_int_equal(made.word_cnt, 2 + 1);
	assert_int_equal(second->thing.checked_ns, made.now_ns);
	assert_int_equal(third->thing.checked_ns, made.now_ns);
	assert_int_equal(second->thing.used_ns, used_ns); /* no frame is in it yet */
	made.words[1].value = 6;
	made.now_ns += 10;
	s.record = &(const struct sample_record){ .hdr = { .time_ns = made.now_ns } };
	code_expect(&process, &s);
	assert_true(second->thing.has_gone && !first->thing.has_gone);
}

static void code_is_looked_at_between_samples(void **state)
{
	const struct code_piece *piece;

	(void)state;
	code_spaces_look(spaces);
	assert_int_equal(made.calls[CODE_OP_WORDS], 0); /* nothing is in use */
	piece = meet(0x180);
	assert_int_equal(name(&(uint64_t){ CODE_AT + 0x181 }, 1, made.now_ns, false), 1);
	made.now_ns += 10;
	code_spaces_look(spaces);
	assert_int_equal(made.calls[CODE_OP_WORDS], 1);
	assert_int_equal(piece->thing.checked_ns, made.now_ns);
	made.words[0].addr = 0;
	made.has_ended = true;
	made.now_ns += 10;
	code_spaces_look(spaces);
	assert_int_equal(made.calls[CODE_OP_WORDS], 2);
	assert_true(code_of_process()->has_ended && !piece->thing.has_gone);
	code_spaces_look(spaces);
	assert_int_equal(made.calls[CODE_OP_WORDS], 2);
}

/* Code of a process that has ended counts for what it was a moment ago. */
static void code_that_was_there_of_late_still_counts(void **state)
{
	const uint64_t user[] = { CODE_AT + 0x181 }, moment = 500 * NSEC_PER_MSEC, read_ns = made.now_ns;
	static const struct {
		int status;
		bool has_ended;
		size_t cut;
	} cases[] = { { 0, true, 0 }, { -EFAULT, false, 0 }, { 0, false, sizeof(struct code_word) } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		made_end(NULL);
		begin(NULL);
		made.now_ns = read_ns;
		meet(0x180);
		made.has_ended = cases[i].has_ended;
		made.status = cases[i].status;
		made.cut = cases[i].cut;
		assert_int_equal(name(user, 1, read_ns + moment - 1, true), 1);
		assert_int_equal(walk_end, END_ROOT);
		assert_true(frames[0] == frame_of(0x180, 0x80 | CODE_PLACE_RETURN));
		assert_int_equal(name(user, 1, read_ns + moment, true), 1);
		assert_int_equal(walk_end, END_STALE);
		assert_true(frames[0] == user[0]);
	}
}

static void tokens_hold_by_their_mask(void **state)
{
	static const struct {
		uint64_t mask, value, word;
		bool is_read, holds;
	} cases[] = {
		{ 0xff, 5, 0x105, true, true },
		{ ~0ull, 5, 0x105, true, false },
		{ 0, 5, 6, true, true },
		{ 0, 5, 6, false, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct code_piece *piece;

		made_end(NULL);
		begin(NULL);
		meet(0x180);
		meet(0x280);
		assert_int_equal(name(&(uint64_t){ CODE_AT + 0x281 }, 1, made.now_ns, false), 1); /* is read anyhow */
		piece = code_piece_find(code_range_of(file), 0x180);
		piece->thing.tokens[0] = (struct code_token){ 0x9000, cases[i].value, cases[i].mask };
		made.words[2].addr = cases[i].is_read ? 0x9000 : 0;
		made.words[2].value = cases[i].word;
		assert_int_equal(code_thing_is_there(code_of_process(), &piece->thing, made.now_ns + 1), cases[i].holds);
		assert_int_equal(piece->thing.has_gone, !cases[i].holds);
	}
}

static void take_a_millisecond(uint32_t op)
{
	made.now_ns += op == CODE_OP_WORDS ? NSEC_PER_MSEC : 0;
}

/* Looking at all takes a part of the time: between, what samples had of late is looked at alone. */
static void many_tokens_are_not_looked_at_each_time(void **state)
{
	const uint64_t user[] = { CODE_AT + 0x181, CODE_AT + 0x281 };
	const struct code_thing *idle;

	(void)state;
	meet(0x180);
	idle = &meet(0x280)->thing;
	assert_int_equal(name(user, 2, made.now_ns, false), 2);
	made.on_ask = take_a_millisecond;
	made.now_ns += 3 * NSEC_PER_SEC;
	code_spaces_look(spaces);
	assert_int_equal(made.word_cnt, 2 + 1);
	assert_int_equal(name(user, 1, made.now_ns, false), 1);
	assert_int_equal(made.word_cnt, 1 + 1); /* it was idle, too */
	made.now_ns += 90 * NSEC_PER_MSEC;
	assert_int_equal(name(user, 1, made.now_ns, false), 1);
	assert_int_equal(made.word_cnt, 1 + 1);
	assert_true(idle->checked_ns < made.now_ns - 90 * NSEC_PER_MSEC);
	made.now_ns += 10 * NSEC_PER_MSEC;
	assert_int_equal(name(user, 1, made.now_ns, false), 1);
	assert_int_equal(made.word_cnt, 2 + 1);
	assert_true(idle->checked_ns > made.now_ns - 10 * NSEC_PER_MSEC);
	assert_int_equal(name(user, 2, made.now_ns - NSEC_PER_MSEC, false), 2);
	assert_int_equal(made.calls[CODE_OP_WORDS], 4);
	made.on_ask = NULL;
}

/* Memory of code may go, and the process on: its last samples are of what was there a moment ago. */
static void unmapped_code_has_its_last_samples(void **state)
{
	const uint64_t user[] = { CODE_AT + 0x181 }, moment = 500 * NSEC_PER_MSEC;
	struct code_thing *t;
	uint64_t read_ns;

	(void)state;
	meet(0x180);
	meet(0x280);
	assert_int_equal(name(&(uint64_t){ CODE_AT + 0x281 }, 1, made.now_ns, false), 1); /* is read anyhow */
	t = &code_piece_find(code_range_of(file), 0x180)->thing;
	read_ns = t->checked_ns;
	made.words[0].addr = 0; /* a token is where no memory is, another where it is new */
	t->tokens[0] = (struct code_token){ 0x9000, 5, ~0ull };
	t->tokens[1] = (struct code_token){ 0x9100, 5, ~0ull };
	made.words[1].addr = 0x9100;
	made.words[1].value = 0;
	made.now_ns = read_ns + moment - 1;
	assert_int_equal(name(user, 1, read_ns + 1, true), 1);
	assert_int_equal(walk_end, END_ROOT);
	assert_true(frames[0] == frame_of(0x180, 0x80 | CODE_PLACE_RETURN));
	assert_false(t->has_gone);
	assert_int_equal(t->checked_ns, read_ns);
	made.now_ns = read_ns + moment;
	made.blocks[0].end = made.blocks[0].start;
	assert_int_equal(name(user, 1, read_ns + moment, true), 1);
	assert_int_equal(walk_end, END_STALE);
	assert_true(frames[0] == user[0]);
}

/* --- captures --- */

static void captured_words_tell_functions(void **state)
{
	const uint32_t class = code_of_process()->classes[0];
	const uint64_t user[] = { RUNTIME_AT + 8, CODE_AT + 0x181, RUNTIME_AT + 9 };
	const uint64_t words[] = { CAPTURE_HEAD(0, class, 2), 0x900, 0x1234, CAPTURE_HEAD(1, class, 2), 0x901, 0x1238,
				   CAPTURE_HEAD(2, class, 2), 0x902, 0 };
	uint64_t id[2];

	(void)state;
	meet(0x180);
	made.functions[0] = (struct made_function){
		.word = 0x900, .at = 1, .shift = 2, .base = 0x480, .bytes = 0x10, .name = "first", .token = WORD, .value = 5
	};
	made.functions[1] = (struct made_function){
		.word = 0x901, .at = CODE_CAPTURE_WORDS, .base = CODE_AT, .bytes = 0x181, .name = "second"
	};
	made.functions[2] = (struct made_function){ .word = 0x902 }; /* has no name */
	captures = words;
	capture_cnt = ARRAY_LEN(words);
	assert_int_equal(name(user, 3, made.now_ns, false), 3);
	assert_true(frames[0] & FRAME_SCRIPT && frames[1] & FRAME_SCRIPT);
	id[0] = frames[0] & ~0xffffffffull;
	id[1] = frames[1] & ~0xffffffffull;
	assert_true(id[0] != id[1]);
	assert_int_equal(frames[0] - id[0], 0xd);   /* (0x1234 >> 2) - 0x480 */
	assert_int_equal(frames[1] - id[1], 0x180); /* the frame's address */
	assert_true(frames[2] == user[2]);
	assert_int_equal(metric_of("hearth_code_functions_read_total"), 3);
	assert_int_equal(metric_of("hearth_code_frames_unknown_total"), 1);
	assert_int_equal(made.request.capture, 1);
	assert_int_equal(made.request.words[0], 0x902);
	assert_int_equal(name(user, 3, made.now_ns, false), 3);
	assert_int_equal(made.calls[CODE_OP_FUNCTION], 3);
	assert_int_equal(objects_count(objects), 3);
}

/* A function that has gone is read again; names that frames of the sample may have go when it is done. */
static void functions_go_when_the_sample_is_done(void **state)
{
	const uint32_t class = code_of_process()->classes[0];
	const uint64_t user[] = { RUNTIME_AT + 8, RUNTIME_AT + 9 };
	const uint64_t words[] = { CAPTURE_HEAD(0, class, 1), 0x900, CAPTURE_HEAD(1, class, 1), 0x901 };

	(void)state;
	for (uint64_t i = 0; i < 2; i++)
		made.functions[i] = (struct made_function){
			.word = 0x900 + i, .name = i ? "a" : "b", .token = WORD, .value = 5
		};
	captures = words;
	capture_cnt = ARRAY_LEN(words);
	assert_int_equal(name(user, 2, made.now_ns, false), 2);
	assert_int_equal(name(user, 2, made.now_ns, false), 2);
	assert_int_equal(made.calls[CODE_OP_FUNCTION], 2);
	made.now_ns++;
	made.words[0].value = made.functions[0].value = made.functions[1].value = 6;
	assert_int_equal(name(user, 2, made.now_ns, false), 2);
	assert_int_equal(made.calls[CODE_OP_FUNCTION], 4);
	assert_int_equal(metric_of("hearth_code_pieces_gone_total"), 0);
	code_settle(&process);
	assert_int_equal(metric_of("hearth_code_pieces_gone_total"), 2);
	assert_int_equal(code_of_process()->functions.count, 2);
}

static void places_beyond_the_function_are_not_known(void **state)
{
	static const struct {
		uint64_t word, bytes;
		uint32_t place;
	} cases[] = { { 0x100, 0x10, 0 }, { 0x10f, 0x10, 0xf },		 { 0x110, 0x10, 0 },
		      { 0xff, 0x10, 0 },  { 0x80000100, 1ull << 32, 0 }, { 0x800000ff, 1ull << 32, 0x7fffffff } };
	const uint32_t class = code_of_process()->classes[2];

	(void)state;
	assert_int_not_equal(class, code_of_process()->classes[0]);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const uint64_t words[] = { CAPTURE_HEAD(0, class, 2), 0x900 + i, cases[i].word };

		captures = words;
		capture_cnt = ARRAY_LEN(words);
		made.functions[0] = (struct made_function){
			.word = 0x900 + i, .at = 1, .base = 0x100, .bytes = cases[i].bytes, .name = "f"
		};
		assert_int_equal(name(&(uint64_t){ RUNTIME_AT + 8 }, 1, made.now_ns, false), 1);
		assert_int_equal((uint32_t)frames[0], cases[i].place);
		assert_int_equal(made.request.capture, 3);
		assert_true(frames[0] & FRAME_SCRIPT);
	}
}

/* Code that does not tell its name has it once a frame of it told, where no frame stands as well; but not the name of code
 * that begins elsewhere. */
static void a_prologue_has_the_name_that_a_frame_told(void **state)
{
	const uint32_t class = code_of_process()->classes[0];
	const uint64_t prologue = (CODE_AT + 0x305) | FRAME_EXACT, user = CODE_AT + 0x351;
	uint64_t words[] = { CAPTURE_HEAD(0, class, 1), 0x901 };
	uint64_t id;

	(void)state;
	meet(0x300);
	made.functions[0] = (struct made_function){
		.word = 0x900, .at = CODE_CAPTURE_WORDS, .base = CODE_AT + 0x300, .bytes = 0x100, .name = "itself"
	};
	made.functions[1] = (struct made_function){
		.word = 0x901, .at = CODE_CAPTURE_WORDS, .base = CODE_AT + 0x340, .bytes = 0x100, .name = "another"
	};
	for (int i = 0; i < 2; i++) {
		capture_cnt = 0;
		assert_int_equal(name(&prologue, 1, made.now_ns, true), 1);
		assert_true(frames[0] == prologue);
		captures = words;
		capture_cnt = ARRAY_LEN(words);
		assert_int_equal(name(&user, 1, made.now_ns, true), 1);
		assert_int_equal((uint32_t)frames[0], i ? 0x50 : 0x10);
		words[1] = 0x900;
	}
	id = frames[0] & ~0xffffffffull;
	capture_cnt = 0;
	assert_int_equal(name(&prologue, 1, made.now_ns, true), 1);
	assert_true(frames[0] == (id | 5));

	const uint64_t told_ns = made.now_ns; /* the same code, though its tokens changed since: its frames are not stale */
	made.now_ns += 100;
	made.words[1].value = made.blocks[2].value = 6;
	assert_int_equal(name(&prologue, 1, told_ns + 50, true), 1);
	assert_int_equal(walk_end, END_ROOT);
}

static void heads_and_words_go_together(void **state)
{
	const uint32_t class = code_of_process()->classes[0];
	const uint64_t user[] = { RUNTIME_AT + 8, RUNTIME_AT + 9, RUNTIME_AT + 10, RUNTIME_AT + 11 };
	static const struct {
		uint32_t count; /* of captured words */
		uint32_t named; /* frames, as bits */
	} cases[] = { { 13, 0xa }, { 12, 0x2 }, { 6, 0x2 }, { 5, 0x2 }, { 4, 0 }, { 0, 0 } };
	const uint64_t words[] = {
		CAPTURE_HEAD(0, 0, 2),	     0x900, 0x900,		 /* no class */
		CAPTURE_HEAD(1, class, 1),   0x900,			 /* one word, the second is 0 */
		CAPTURE_HEAD(2, class, 0),				 /* none: 0 is no function */
		CAPTURE_HEAD(2, class, 1),   0x900,			 /* too late for the third */
		CAPTURE_HEAD(3, class, 100), 0x900, 0x900, 0x900, 0x900, /* four at most */
	};

	(void)state;
	made.functions[0] = (struct made_function){ .word = 0x900, .at = 1, .base = 0, .bytes = 0x1000, .name = "f" };
	captures = words;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t named = 0;

		capture_cnt = cases[i].count;
		assert_int_equal(name(user, 4, made.now_ns, false), 4);
		for (uint32_t k = 0; k < 4; k++)
			named |= (frames[k] != user[k]) << k;
		if (named != cases[i].named)
			fail_msg("with %u words frames %#x are named", cases[i].count, named);
		if (named & 2)
			assert_int_equal((uint32_t)frames[1], 0);
		if (named & 8)
			assert_int_equal((uint32_t)frames[3], 0x900);
	}
	assert_int_equal(made.calls[CODE_OP_FUNCTION], 1);
}

static void functions_that_cannot_be_read_have_no_name(void **state)
{
	const uint32_t class = code_of_process()->classes[0];
	const uint64_t words[] = { CAPTURE_HEAD(0, class, 1), 0x900 }, user = RUNTIME_AT + 8;

	(void)state;
	captures = words;
	capture_cnt = 2;
	assert_int_equal(name(&user, 1, made.now_ns, false), 1);
	assert_true(frames[0] == user);
	assert_int_equal(metric_of("hearth_code_refused_total"), 1);
	assert_int_equal(metric_of("hearth_code_frames_unknown_total"), 1);
	made.functions[0] = (struct made_function){ .word = 0x900, .name = "f" };
	assert_int_equal(name(&user, 1, made.now_ns, false), 1);
	assert_true(frames[0] != user);
	assert_int_equal(code_of_process()->functions.count, 1);
}

/* Frames in memory that nobody knows have the runtime asked again where its code is. */
static void unknown_memory_is_asked_for(void **state)
{
	(void)state;
	map_at(0x70000000, 0x70001000, 0, NULL);
	made.now_ns += 3 * NSEC_PER_SEC;
	assert_int_equal(name(&(uint64_t){ RUNTIME_AT + 8 }, 1, made.now_ns, false), 1);
	assert_int_equal(name(&(uint64_t){ 0x10 }, 1, made.now_ns, false), 1);
	assert_int_equal(made.calls[CODE_OP_RANGES], 1);
	assert_int_equal(name(&(uint64_t){ 0x70000001 }, 1, made.now_ns, false), 1);
	assert_int_equal(made.calls[CODE_OP_RANGES], 2);
	assert_int_equal(made.published_cnt, 1); /* when its code was found first */
	made.ranges.ranges[0] = (struct code_range){ 0x70000000, 0x70001000 };
	made.now_ns += 3 * NSEC_PER_SEC;
	assert_int_equal(name(&(uint64_t){ 0x70000001 }, 1, made.now_ns, false), 1);
	assert_int_equal(made.published_cnt, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(frames_are_places_in_their_pieces, begin, made_end),
		cmocka_unit_test_setup_teardown(tokens_are_looked_at_when_a_sample_is_younger, begin, made_end),
		cmocka_unit_test_setup_teardown(what_a_stack_leads_to_is_looked_at_at_once, begin, made_end),
		cmocka_unit_test_setup_teardown(code_is_looked_at_between_samples, begin, made_end),
		cmocka_unit_test_setup_teardown(code_that_was_there_of_late_still_counts, begin, made_end),
		cmocka_unit_test_setup_teardown(tokens_hold_by_their_mask, begin, made_end),
		cmocka_unit_test_setup_teardown(many_tokens_are_not_looked_at_each_time, begin, made_end),
		cmocka_unit_test_setup_teardown(unmapped_code_has_its_last_samples, begin, made_end),
		cmocka_unit_test_setup_teardown(captured_words_tell_functions, begin, made_end),
		cmocka_unit_test_setup_teardown(a_prologue_has_the_name_that_a_frame_told, begin, made_end),
		cmocka_unit_test_setup_teardown(functions_go_when_the_sample_is_done, begin, made_end),
		cmocka_unit_test_setup_teardown(places_beyond_the_function_are_not_known, begin, made_end),
		cmocka_unit_test_setup_teardown(heads_and_words_go_together, begin, made_end),
		cmocka_unit_test_setup_teardown(functions_that_cannot_be_read_have_no_name, begin, made_end),
		cmocka_unit_test_setup_teardown(unknown_memory_is_asked_for, begin, made_end),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
