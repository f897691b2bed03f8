/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of HotSpot on a made-up process (fake_hotspot.h), as the tests of each CPU ask it. After cmocka.h. */
#ifndef HEARTH_TESTS_ASKED_HOTSPOT_H
#define HEARTH_TESTS_ASKED_HOTSPOT_H

#include "tests/unit/agent/runtime/code/fake_hotspot.h"

static struct fake fake;
static struct code_memory memory;
static void *hotspot;

static inline void reset_budget(void)
{
	memory = (struct code_memory){ .read = fake_read,
				       .arg = &fake,
				       .reads_left = CODE_MAX_READS,
				       .bytes_left = CODE_MAX_BYTES,
				       .end_ns = UINT64_MAX };
}

static inline int set_up(void **state)
{
	(void)state;
	fake_make(&fake);
	reset_budget();
	hotspot = calloc(1, code_hotspot.state_bytes);
	return code_hotspot.open(hotspot, &memory, &fake.facts, FAKE_BASE);
}

static inline int tear_down(void **state)
{
	(void)state;
	free(hotspot);
	return 0;
}

static inline const struct row *row_at(const struct row *rows, size_t count, uint64_t addr)
{
	for (size_t i = 0; i < count; i++)
		if (addr >= rows[i].start && addr < rows[i].end)
			return &rows[i];
	return NULL;
}

static inline void check_name(const struct block_line *l, const char *name, const char *file, uint32_t line)
{
	assert_int_equal(l->name_bytes, strlen(name));
	assert_memory_equal(l->name, name, l->name_bytes);
	assert_int_equal(l->file_bytes, strlen(file));
	assert_memory_equal(l->file, file, l->file_bytes);
	assert_int_equal(l->line, line);
}

static inline bool holds(const struct code_token *tokens)
{
	for (int i = 0; i < CODE_TOKENS; i++)
		if (tokens[i].mask && (code_read_u64(&memory, tokens[i].addr) & tokens[i].mask) != tokens[i].value)
			return false;
	return true;
}

/* All that a reader may be asked, in whatever state the memory is. */
static inline void ask_everything(void)
{
	uint64_t words[CODE_CAPTURE_WORDS] = { fake.method, 0 };
	struct code_range ranges[CODE_RANGES];
	struct captured_function function;
	void *state = calloc(1, code_hotspot.state_bytes);

	reset_budget();
	if (!code_hotspot.open(state, &memory, &fake.facts, FAKE_BASE) &&
	    code_hotspot.ranges(state, &memory, 0, ranges) >= 0) {
		for (uint64_t pc = FAKE_BASE + FAKE_HEAP; pc < FAKE_BASE + FAKE_HEAP + FAKE_HEAP_BYTES; pc += 256) {
			AUTO(block_names_free_at) struct block_names *names = block_names_new();
			AUTO_FREE struct row *rows = NULL;
			struct code_block b;
			size_t count = 0;

			if (code_hotspot.block(state, &memory, pc, &b))
				continue;
			if (!code_hotspot.rows(state, &memory, &b, &rows, &count))
				for (size_t i = 0; i < count; i++)
					assert_true(rows[i].start < rows[i].end && rows[i].start >= b.start &&
						    rows[i].end <= b.end && (!i || rows[i].start >= rows[i - 1].end));
			(void)code_hotspot.names(state, &memory, &b, names);
		}
	}
	{
		AUTO(block_names_free_at) struct block_names *names = block_names_new();

		(void)code_hotspot.function(state, &memory, 1, words, &function, names);
	}
	free(state);
}

static inline void test_lies(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int i = 0; i < 300; i++) {
		for (int k = 0; k < 20; k++) {
			uint32_t at = (uint32_t)rand_r(&seed) % (i % 2 ? fake.used : FAKE_HEAP + FAKE_HEAP_BYTES);

			fake.bytes[at] = (uint8_t)rand_r(&seed);
		}
		ask_everything();
		if (i % 10 == 9)
			fake_make(&fake);
	}
}

#endif
