/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address spaces against a model too simple to be wrong: one entry a page. Thousands of random mappings, forks and exits
 * with a fixed seed; after each, every page, the order of the mappings and every file's references are compared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/process/address_space.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

enum { PAGE = 4096, PAGES = 48, SLOTS = 4, FILES = 5, OPS = 20000 };

#define BASE 0x7f0000000000ull

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* File i's code begins at page i and is linked 0x10000 * i above its place in the file; the last cannot be read. */
static struct file files[FILES];

static void make_files(void)
{
	memset(files, 0, sizeof(files));
	for (uint32_t i = 0; i < FILES; i++) {
		files[i].id = i + 1;
		files[i].state = i == FILES - 1 ? FILE_UNREADABLE : FILE_READABLE;
		files[i].info.segment_count = 1;
		files[i].info.segments[0] = (struct elf_segment){ .vaddr = 0x11000ull * i,
								  .offset = 0x1000ull * i,
								  .size_bytes = 8 * PAGE - 100 };
	}
}

struct page {
	bool is_mapped;
	struct file *file;
	uint64_t bias;
	uint32_t op; /* the operation that mapped it: equal neighbours are one mapping */
};

struct slot {
	struct address_space *as;
	struct page pages[PAGES];
	bool is_not_code[PAGES]; /* as the kernel was told under this asid */
	uint32_t not_code_cnt;
};

static uint64_t model_bias(const struct file *file, uint64_t start, uint64_t pgoff)
{
	uint64_t first = file ? (uint64_t)(file - files) * PAGE : 0;
	bool is_in_segment = file && pgoff >= first && pgoff < first + 8 * PAGE - 100;

	if (is_in_segment && file->state != FILE_UNREADABLE)
		return start - pgoff - 0x10000ull * (uint64_t)(file - files);
	return start - pgoff;
}

static bool is_same(const struct page *a, const struct page *b)
{
	return a->file == b->file && (!a->file || a->bias == b->bias);
}

static void check_slot(const struct slot *s)
{
	for (uint32_t i = 0; i < s->as->count; i++) {
		assert_true(s->as->maps[i].start < s->as->maps[i].end);
		assert_true(!i || s->as->maps[i].start >= s->as->maps[i - 1].end);
	}
	for (uint32_t i = 0; i < PAGES; i++) {
		for (uint64_t off = 0; off < PAGE; off += PAGE - 1) {
			const struct mapping *m = address_space_find(s->as, BASE + i * PAGE + off);

			assert_int_equal(m != NULL, s->pages[i].is_mapped);
			if (m)
				assert_true(is_same(&s->pages[i], &(struct page){ .file = m->file, .bias = m->bias }));
		}
	}
	assert_null(address_space_find(s->as, BASE - 1));
	assert_null(address_space_find(s->as, BASE + PAGES * PAGE));
}

static void check_references(const struct slot *slots)
{
	for (uint32_t f = 0; f < FILES; f++) {
		uint32_t expected = 0;

		for (uint32_t i = 0; i < SLOTS; i++) {
			bool was_seen = false;

			for (uint32_t k = 0; k < i; k++)
				was_seen |= slots[k].as == slots[i].as;
			for (uint32_t k = 0; k < slots[i].as->count && !was_seen; k++)
				expected += slots[i].as->maps[k].file == &files[f];
		}
		assert_int_equal(files[f].refs, expected);
	}
}

/* The mapping with most pages in the piece around @addr, page by page. */
static void check_owner(const struct slot *s, uint64_t addr, unsigned shift)
{
	uint64_t from = addr >> shift << shift;
	const struct mapping *best = NULL;
	uint32_t most = 0, count = 0;

	for (uint64_t at = from; at < from + (1ull << shift); at += PAGE) {
		const struct mapping *m = address_space_find(s->as, at);

		count = m && m == address_space_find(s->as, at - (at > from ? PAGE : 0)) ? count + 1 : m != NULL;
		if (count > most) {
			most = count;
			best = m;
		}
	}
	assert_ptr_equal(address_space_owner(s->as, addr, shift), best);
}

static uint32_t latest_asid; /* the highest given out so far */

static void map_something(struct slot *slots, struct slot *s, uint32_t op)
{
	uint32_t first = random_below(PAGES), count = 1 + random_below(random_below(4) ? 6 : PAGES),
		 pick = random_below(FILES + 1);
	struct file *file = pick < FILES ? &files[pick] : NULL;
	uint64_t start, pgoff = random_below(3) ? (uint64_t)first * PAGE : random_below(20) * PAGE;
	struct page new = { .is_mapped = true, .file = file, .op = op };
	bool was_shared = s->as->refs > 1, had_not_code = s->not_code_cnt > NOT_CODE_KEPT, is_there = true, replaces = false;
	uint32_t others_asid = s->as->asid, status;
	struct address_space *before = s->as;

	if (count > PAGES - first)
		count = PAGES - first;
	start = BASE + (uint64_t)first * PAGE;
	new.bias = model_bias(file, start, pgoff);
	for (uint32_t i = first; i < first + count; i++) {
		const struct page *old = &s->pages[i];

		is_there &= old->is_mapped && old->op == s->pages[first].op && is_same(old, &new);
		replaces |= old->is_mapped && !is_same(old, &new);
		had_not_code |= s->is_not_code[i];
	}
	assert_int_equal(address_space_would_replace(s->as, start, start + (uint64_t)count * PAGE, pgoff, file), replaces);
	status = (uint32_t)address_space_map(&s->as, start, start + (uint64_t)count * PAGE, pgoff, file);
	assert_int_equal(status, !is_there && (was_shared || had_not_code || replaces));
	if (status) {
		assert_true(s->as->asid > latest_asid);
		latest_asid = s->as->asid;
		memset(s->is_not_code, 0, sizeof(s->is_not_code));
		s->not_code_cnt = 0;
	} else {
		assert_int_equal(s->as->asid, others_asid);
	}
	assert_int_equal(s->as != before, was_shared && !is_there);
	for (uint32_t i = 0; i < SLOTS && was_shared; i++)
		if (slots[i].as == before)
			assert_int_equal(slots[i].as->asid, others_asid);
	if (is_there)
		return;
	for (uint32_t i = first; i < first + count; i++)
		s->pages[i] = new;
}

static struct address_space *new_address_space(void)
{
	struct address_space *as = address_space_new();

	if (!as) {
		fail_msg("no memory");
		abort();
	}
	assert_true(as->asid > latest_asid && as->refs == 1 && !as->count);
	latest_asid = as->asid;
	return as;
}

static void fork_slot(struct slot *from, struct slot *to)
{
	struct address_space *as = address_space_get(from->as);

	address_space_put(to->as);
	*to = *from;
	assert_ptr_equal(as, from->as);
}

/* All that share the address space hear of it. */
static void note_not_code(struct slot *slots, const struct slot *s)
{
	uint32_t page = random_below(PAGES);

	address_space_note_not_code(s->as, BASE + page * PAGE, BASE + (page + 1) * PAGE);
	for (uint32_t i = 0; i < SLOTS; i++) {
		if (slots[i].as != s->as)
			continue;
		slots[i].not_code_cnt += !slots[i].is_not_code[page];
		slots[i].is_not_code[page] = true;
	}
}

static void test_against_model(void **state)
{
	AUTO_FREE struct slot *slots = calloc(SLOTS, sizeof(*slots));

	(void)state;
	make_files();
	random_state = 1;
	for (uint32_t i = 0; i < SLOTS; i++)
		slots[i].as = new_address_space();
	for (uint32_t op = 1; op <= OPS; op++) {
		struct slot *s = &slots[random_below(SLOTS)];
		uint32_t what = random_below(100);

		if (what < 4) {
			fork_slot(s, &slots[random_below(SLOTS)]);
		} else if (what < 7) { /* exec */
			address_space_put(s->as);
			*s = (struct slot){ .as = new_address_space() };
		} else if (what < 12) {
			note_not_code(slots, s);
		} else {
			map_something(slots, s, op);
		}
		for (uint32_t i = 0; i < SLOTS; i++)
			check_slot(&slots[i]);
		check_references(slots);
		check_owner(s, BASE + random_below(PAGES * PAGE), 12 + random_below(6));
	}
	for (uint32_t i = 0; i < SLOTS; i++)
		address_space_put(slots[i].as);
	for (uint32_t i = 0; i < FILES; i++)
		assert_int_equal(files[i].refs, 0);
}

static void test_owner_of_equals(void **state)
{
	struct address_space *as = new_address_space();

	(void)state;
	make_files();
	address_space_map(&as, BASE + 0x2000, BASE + 0x4000, 0, &files[0]);
	address_space_map(&as, BASE + 0x8000, BASE + 0xa000, 0, &files[1]);
	address_space_map(&as, BASE + 0xf000, BASE + 0x100000, 0,
			  &files[2]); /* longer, but one page of it in the first 64 KB */
	assert_ptr_equal(address_space_owner(as, BASE + 0xffff, 16), &as->maps[0]);
	assert_ptr_equal(address_space_owner(as, BASE, 20), &as->maps[2]);
	assert_ptr_equal(address_space_owner(as, BASE + 0x9000, 12), &as->maps[1]);
	assert_null(address_space_owner(as, BASE + 0x1000, 12));
	assert_null(address_space_owner(as, BASE + 0x100000, 20));
	address_space_put(as);
	address_space_put(NULL);
}

static void test_stale(void **state)
{
	struct address_space *as = new_address_space();
	uint32_t asids[REPLACED_KEPT + 2];

	(void)state;
	make_files();
	asids[0] = as->asid;
	assert_int_equal(address_space_map(&as, BASE, BASE + 64 * PAGE, 0, &files[0]), 0);
	assert_false(address_space_is_stale(as, asids[0], BASE));
	for (uint32_t i = 1; i <= REPLACED_KEPT; i++) { /* one page after the other */
		assert_int_equal(address_space_map(&as, BASE + i * PAGE, BASE + (i + 1) * PAGE, 0, &files[1]), 1);
		asids[i] = as->asid;
	}
	/* What changed at the i-th is stale for the asids before it, and nothing else. */
	for (uint32_t k = 0; k <= REPLACED_KEPT; k++) {
		assert_false(address_space_is_stale(as, asids[k], BASE));
		for (uint32_t i = 1; i <= REPLACED_KEPT; i++) {
			assert_int_equal(address_space_is_stale(as, asids[k], BASE + i * PAGE), k < i);
			assert_int_equal(address_space_is_stale(as, asids[k], BASE + (i + 1) * PAGE - 1), k < i);
		}
	}
	/* One more than is kept: what is older than all that is known may be stale anywhere. */
	assert_int_equal(address_space_map(&as, BASE, BASE + PAGE, 0, &files[2]), 1);
	assert_true(address_space_is_stale(as, asids[0], BASE + PAGE));
	assert_true(address_space_is_stale(as, asids[0], BASE + 60 * PAGE));
	assert_true(address_space_is_stale(as, asids[2], BASE));
	assert_false(address_space_is_stale(as, asids[2], BASE + 60 * PAGE));
	assert_false(address_space_is_stale(as, as->asid, BASE));
	address_space_put(as);
}

/* The kernel has to be told of the runtimes again when another file of one is mapped, and under a new asid. */
static void test_chains_told(void **state)
{
	struct address_space *as = new_address_space(), *parent;

	(void)state;
	make_files();
	files[1].info.runtime.kind = RUNTIME_FILE_CHAIN;
	files[2].info.runtime.kind = RUNTIME_FILE_LIBC;
	assert_false(as->chains_told);
	as->chains_told = true;
	assert_int_equal(address_space_map(&as, BASE, BASE + PAGE, 0, &files[0]), 0);
	assert_int_equal(address_space_map(&as, BASE + 8 * PAGE, BASE + 9 * PAGE, 0, NULL), 0);
	assert_true(as->chains_told);
	for (uint32_t i = 1; i <= 2; i++) {
		assert_int_equal(address_space_map(&as, BASE + i * PAGE, BASE + (i + 1) * PAGE, i * PAGE, &files[i]), 0);
		assert_false(as->chains_told);
		as->chains_told = true;
		assert_int_equal(address_space_map(&as, BASE + i * PAGE, BASE + (i + 1) * PAGE, i * PAGE, &files[i]), 0);
		assert_true(as->chains_told); /* it was there */
	}
	assert_int_equal(address_space_map(&as, BASE, BASE + PAGE, PAGE, NULL), 1); /* replaces: a new asid */
	assert_false(as->chains_told);
	as->chains_told = true;
	parent = address_space_get(as);
	assert_int_equal(address_space_map(&as, BASE + 5 * PAGE, BASE + 6 * PAGE, 0, &files[0]), 1);
	assert_ptr_not_equal(as, parent);
	assert_false(as->chains_told); /* the copy has another asid */
	assert_true(parent->chains_told);
	as->chains_told = true;
	address_space_note_not_code(as, BASE + 20 * PAGE, BASE + 21 * PAGE);
	assert_int_equal(address_space_map(&as, BASE + 20 * PAGE, BASE + 21 * PAGE, 0, &files[0]), 1);
	assert_false(as->chains_told);
	address_space_put(as);
	address_space_put(parent);
}

/* --- code that a runtime makes --- */

static unsigned freed;

static void free_code(struct as_code *code)
{
	(void)code;
	freed++;
}

/* The second page without a file, and those behind it. */
static struct file *code_at(const struct as_code *code, uint64_t start, uint64_t end, uint64_t *off_ret)
{
	(void)code;
	*off_ret = start - BASE;
	return start >= BASE + PAGE && end <= BASE + 3 * PAGE ? &files[1] : NULL;
}

static void test_code(void **state)
{
	struct as_code code = { .refs = 1, .free = free_code, .file_at = code_at };
	struct address_space *as = address_space_new(), *child;
	uint32_t asid;

	(void)state;
	make_files();
	freed = 0;
	assert_true(as && address_space_map(&as, BASE, BASE + PAGE, 0, NULL) >= 0);
	assert_true(address_space_map(&as, BASE + PAGE, BASE + 2 * PAGE, 0, NULL) >= 0);
	assert_true(address_space_map(&as, BASE + 4 * PAGE, BASE + 5 * PAGE, 0, &files[0]) >= 0);
	child = address_space_get(as);
	asid = as->asid;
	assert_int_equal(address_space_set_code(&child, &code), 1); /* whoever shared it keeps what it had */
	assert_ptr_not_equal(child, as);
	assert_int_equal(as->asid, asid);
	assert_int_not_equal(child->asid, asid);
	assert_null(address_space_find(as, BASE + PAGE)->file);
	assert_null(address_space_find(child, BASE)->file);
	assert_ptr_equal(address_space_find(child, BASE + PAGE)->file, &files[1]);
	assert_ptr_equal(address_space_find(child, BASE + 4 * PAGE)->file, &files[0]);
	assert_int_equal(files[1].refs, 1);
	asid = child->asid;
	code.refs++;
	assert_int_equal(address_space_set_code(&child, &code), 1); /* once more, of its own */
	assert_int_not_equal(child->asid, asid);
	assert_int_equal(files[1].refs, 1);
	address_space_put(as);
	assert_int_equal(freed, 0);
	address_space_put(child);
	assert_int_equal(freed, 1);
	assert_int_equal(files[0].refs + files[1].refs, 0);
}

/* In BASE + [16, 32) pages. */
static struct file *wide_code_at(const struct as_code *code, uint64_t start, uint64_t end, uint64_t *off_ret)
{
	(void)code;
	*off_ret = start - BASE;
	return start >= BASE + 16 * PAGE && end <= BASE + 32 * PAGE ? &files[1] : NULL;
}

static void check_run(const struct address_space *as, uint64_t page, uint64_t first, uint64_t end)
{
	struct mapping run = address_space_run(as, address_space_find(as, BASE + page * PAGE));

	assert_int_equal(run.start, BASE + first * PAGE);
	assert_int_equal(run.end, BASE + end * PAGE);
	assert_ptr_equal(run.file, address_space_find(as, BASE + page * PAGE)->file);
}

/* Pieces of the same generated code are one run, until something else is among them: then the kernel's entries are wrong. */
static void test_runs_of_code(void **state)
{
	struct as_code code = { .refs = 1, .free = free_code, .file_at = wide_code_at };
	struct address_space *as = address_space_new();
	uint32_t asid;

	(void)state;
	make_files();
	files[1].code = (void *)&code;
	assert_non_null(as);
	for (uint64_t page = 8; page < 40; page += 4)
		assert_true(address_space_map(&as, BASE + page * PAGE, BASE + (page + 1) * PAGE, 0, NULL) >= 0);
	assert_int_equal(address_space_set_code(&as, &code), 1);
	check_run(as, 12, 12, 13); /* no code */
	check_run(as, 32, 32, 33);
	check_run(as, 16, 16, 29);
	check_run(as, 20, 16, 29);
	check_run(as, 28, 16, 29);
	asid = as->asid;
	assert_int_equal(address_space_map(&as, BASE + 18 * PAGE, BASE + 19 * PAGE, 18 * PAGE, &files[1]), 0);
	assert_int_equal(address_space_map(&as, BASE + 14 * PAGE, BASE + 15 * PAGE, 0, &files[0]), 0);
	assert_int_equal(as->asid, asid);
	assert_int_equal(address_space_map(&as, BASE + 22 * PAGE, BASE + 23 * PAGE, 0, &files[0]), 1);
	assert_int_not_equal(as->asid, asid);
	check_run(as, 16, 16, 21);
	check_run(as, 22, 22, 23);
	check_run(as, 28, 24, 29);
	address_space_put(as);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_model), cmocka_unit_test(test_owner_of_equals),
		cmocka_unit_test(test_stale),	      cmocka_unit_test(test_chains_told),
		cmocka_unit_test(test_code),	      cmocka_unit_test(test_runs_of_code),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
