/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks made of native frames and the frames of scripts. Native frames are numbers from N(0), the innermost; their stack
 * pointers are 0x1000, 0x1100, ... Functions of scripts are at S(0), S(1), ...; S(UNKNOWN) was not sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/objects/objects.h"
#include "agent/process/process_objects.h"
#include "agent/samples/merge.h"
#include "base/cleanup.h"

enum {
	FUNCTIONS = 8,
	UNKNOWN = FUNCTIONS,
	LOOP_CODE = 0x100000,
	LOOP_BYTES = 0x100,
	BODY = 0x400,
	CHECK = 0x71234567,
	OTHER = RUNTIME_PYTHON + 1,
	COUNTS = RUNTIME_ID_MAX + 3
};

#define N(i)	       (0x400000 + 16 * (uint64_t)(i))
#define LOOP(i)	       (LOOP_CODE + 16 + (uint64_t)(i))	       /* return addresses into the interpreter's loop */
#define BODY_AT(i)     (LOOP_CODE + BODY + 16 + (uint64_t)(i)) /* and into its body */
#define S(i)	       (0x7f0000000000 + 256 * (uint64_t)(i))
#define SP(i)	       (0x1000 + 256 * (uint64_t)(i))
#define HEAD_OF(id, e) CHAIN_WORD(CHAIN_HEAD, (id)), (e)
#define HEAD(e)	       HEAD_OF(RUNTIME_PYTHON, e)
#define F(i, place)    CHAIN_WORD(CHAIN_FRAME, S(i)), CHAIN_PLACE(place, CHECK)
#define MARKER(m)      CHAIN_WORD(CHAIN_MARKER, (m)), 0
#define IN(i)	       MARKER(SP(i) + 8)
#define AT_LOOP(i)     CHAIN_WORD(CHAIN_LOOP, SP(i) + 8), 0
#define RESUMED(i)     CHAIN_WORD(CHAIN_COROUTINE, SP(i) + 8), 0

static struct objects *objects;
static uint32_t ids[FUNCTIONS + 1];
static struct process process;
static struct file interpreter = { .id = 1 };
static struct merged merged;
static struct chain_counts counts[COUNTS]; /* more than there are runtimes: none of the others may change */

static int make(void **state)
{
	(void)state;
	process = (struct process){ .refs = 2, .as = address_space_new() };
	if (!process.as || objects_new(&objects))
		return -1;
	interpreter.info.runtime = (struct runtime_file){ .kind = RUNTIME_FILE_CHAIN,
							  .id = RUNTIME_PYTHON,
							  .loop = { 0x5000, 0x5000 + LOOP_BYTES },
							  .body = { 0x5000 + BODY, 0x5000 + BODY + LOOP_BYTES } };
	interpreter.info.segment_count = 1;
	interpreter.info.segments[0] = (struct elf_segment){ .vaddr = 0x5000, .offset = 0, .size_bytes = 0x1000 };
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		struct object *object;

		if (objects_add(objects, RUNTIME_PYTHON, &i, sizeof(i), &object) ||
		    process_set_object(&process, S(i), CHECK, object))
			return -1;
		ids[i] = object->id;
		object_put(object);
	}
	return address_space_map(&process.as, LOOP_CODE, LOOP_CODE + 0x1000, 0, &interpreter) < 0;
}

static int destroy(void **state)
{
	(void)state;
	process_objects_free(&process);
	address_space_put(process.as);
	objects_free(objects);
	return 0;
}

/* Merges @chain into @user, whose stack pointers are @sps (NULL: SP(0), SP(1), ...). */
static void merge(const uint64_t *chain, uint32_t chain_cnt, const uint64_t *user, const uint64_t *sps, uint32_t user_cnt)
{
	AUTO_FREE uint64_t *words = malloc(chain_cnt * sizeof(*words)); /* no word behind the end can be read unseen */
	AUTO_FREE uint64_t *frames = malloc(user_cnt ? user_cnt * sizeof(*frames) : 1);
	AUTO_FREE uint64_t *pointers = malloc(user_cnt ? user_cnt * sizeof(*pointers) : 1);
	struct pending_sample sample = { .chain = words, .chain_cnt = chain_cnt };

	assert_true(words && frames && pointers);
	memcpy(words, chain, chain_cnt * sizeof(*words));
	if (user_cnt)
		memcpy(frames, user, user_cnt * sizeof(*frames));
	for (uint32_t i = 0; i < user_cnt; i++)
		pointers[i] = sps ? sps[i] : SP(i);
	memset(counts, 0, sizeof(counts));
	memset(&merged, 0xff, sizeof(merged));
	merge_chains(&process, &sample, frames, pointers, user_cnt, counts, &merged);
	for (uint32_t i = RUNTIME_ID_MAX; i < COUNTS; i++)
		assert_memory_equal(&counts[i], &(struct chain_counts){ 0 }, sizeof(counts[i]));
}

/* Writes frame @i of what came out: N3, L3 or S3:17 (the place in it). */
static void tell_frame(uint64_t frame, char *out, size_t len)
{
	if (FRAME_IS_SCRIPT(frame)) {
		uint32_t i = 0;

		while (i < FUNCTIONS && ids[i] != FRAME_OBJECT(frame))
			i++;
		assert_true(i < FUNCTIONS || !FRAME_OBJECT(frame));
		if (i < FUNCTIONS)
			snprintf(out, len, "S%u:%u ", i, FRAME_PLACE(frame));
		else
			snprintf(out, len, "S?:%u ", FRAME_PLACE(frame));
	} else if (frame >= N(0)) {
		snprintf(out, len, "N%u ", (unsigned)((frame - N(0)) / 16));
	} else {
		snprintf(out, len, "L%u ", (unsigned)(frame - LOOP(0)));
	}
}

static void check(const char *expected)
{
	char text[4096] = "";

	assert_true(merged.count <= MAX_MERGED_FRAMES);
	for (uint32_t i = 0; i < merged.count; i++)
		tell_frame(merged.frames[i], text + strlen(text), sizeof(text) - strlen(text));
	assert_string_equal(text, expected);
}

#define MERGE(user, ...)                                                       \
	do {                                                                   \
		const uint64_t chain_[] = { __VA_ARGS__ };                     \
		merge(chain_, ARRAY_LEN(chain_), user, NULL, ARRAY_LEN(user)); \
	} while (0)

static const uint64_t natives[] = { N(0), N(1), N(2), N(3), N(4), N(5) };

/* --- markers --- */

static void test_markers(void **state)
{
	(void)state;
	MERGE(natives, HEAD(CHAIN_END_ROOT), F(0, 10), F(1, 11), IN(1), F(2, 12), IN(3));
	check("N0 S0:10 S1:11 N2 S2:12 N4 N5 ");
	assert_int_equal(counts[0].frames, 3);
	assert_int_equal(counts[0].ends[CHAIN_END_ROOT], 1);
	assert_true(!counts[0].unplaced_segments && !counts[0].unknown_objects);
	assert_int_equal(merged.outcome, SCRIPT_OUTCOME(RUNTIME_PYTHON, CHAIN_END_ROOT));
	assert_int_equal(merged.lock, CHAIN_LOCK_UNKNOWN);
	/* [sp, CFA) */
	MERGE(natives, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(SP(1)));
	check("N0 S0:1 N2 N3 N4 N5 ");
	MERGE(natives, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(SP(2) - 1));
	check("N0 S0:1 N2 N3 N4 N5 ");
	MERGE(natives, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(SP(0)), F(1, 2), MARKER(SP(4)));
	check("S0:1 N1 N2 N3 S1:2 N5 ");
	/* a segment without frames: a native frame of the loop that runs nothing yet */
	MERGE(natives, HEAD(CHAIN_END_ROOT), IN(0), F(1, 2), IN(2));
	check("N1 S1:2 N3 N4 N5 ");
	MERGE(natives, HEAD(CHAIN_END_NO_THREAD));
	check("N0 N1 N2 N3 N4 N5 ");
	assert_int_equal(counts[0].ends[CHAIN_END_NO_THREAD], 1);
	assert_int_equal(counts[0].unplaced_segments, 0);
	assert_int_equal(merged.outcome, 0);
	MERGE(natives, HEAD(CHAIN_END_ROOT)); /* no function runs */
	assert_int_equal(merged.outcome, 0);
}

static void test_unplaced(void **state)
{
	(void)state;
	/* below the innermost, and above them all: how far the outermost frame's part goes nobody knows */
	MERGE(natives, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(SP(0) - 1), F(1, 2), IN(2), F(2, 3), MARKER(SP(5)), F(3, 4),
	      MARKER(0x7fff00000000));
	check("N0 N1 S0:1 S1:2 N3 N4 N5 S2:3 S3:4 ");
	assert_int_equal(counts[0].unplaced_segments, 3);
	assert_int_equal(merged.outcome, SCRIPT_OUTCOME(RUNTIME_PYTHON, SCRIPT_MISFIT));
	/* not in their order: the second is not where it was looked for */
	MERGE(natives, HEAD(CHAIN_END_ROOT), F(0, 1), IN(3), F(1, 2), IN(1), F(2, 3), IN(4));
	check("N0 N1 N2 S0:1 S1:2 S2:3 N5 ");
	assert_int_equal(counts[0].unplaced_segments, 1);
	/* two in the same native frame: the second is not in another */
	MERGE(natives, HEAD(CHAIN_END_ROOT), F(0, 1), IN(3), F(1, 2), IN(3));
	check("N0 N1 N2 S0:1 N4 N5 S1:2 ");
	/* no native frames at all */
	merge((const uint64_t[]){ HEAD(CHAIN_END_ROOT), F(0, 1), IN(3), F(1, 2), IN(3) }, 10, NULL, NULL, 0);
	check("S0:1 S1:2 ");
	assert_int_equal(counts[0].unplaced_segments, 2);
}

static void test_cut(void **state)
{
	(void)state;
	/* by depth: what is behind the last marker stands at the root */
	MERGE(natives, HEAD(CHAIN_END_DEPTH), F(0, 1), IN(1), F(1, 2), F(2, 3));
	check("N0 S0:1 N2 N3 N4 N5 S1:2 S2:3 ");
	assert_int_equal(counts[0].ends[CHAIN_END_DEPTH], 1);
	assert_int_equal(counts[0].unplaced_segments, 1);
	assert_int_equal(merged.outcome, SCRIPT_OUTCOME(RUNTIME_PYTHON, CHAIN_END_DEPTH)); /* says that better */
	/* in the middle of a pair */
	merge((const uint64_t[]){ HEAD(CHAIN_END_TORN), F(0, 1), CHAIN_WORD(CHAIN_FRAME, S(1)) }, 5, natives, NULL, 2);
	check("N0 N1 S0:1 ");
	assert_int_equal(counts[0].ends[CHAIN_END_TORN], 1);
	assert_int_equal(merged.outcome, SCRIPT_OUTCOME(RUNTIME_PYTHON, CHAIN_END_TORN));
	merge((const uint64_t[]){ HEAD(CHAIN_END_TORN) }, 2, natives, NULL, 2);
	assert_int_equal(merged.outcome, SCRIPT_OUTCOME(RUNTIME_PYTHON, CHAIN_END_TORN));
}

static void test_unknown_sps(void **state)
{
	const uint64_t chain[] = { HEAD(CHAIN_END_ROOT), F(0, 1), IN(1), F(1, 2), IN(3) };
	uint64_t sps[] = { SP(0), UINT64_MAX, SP(2), SP(3), SP(4), UINT64_MAX };

	(void)state;
	/* Frame 0's part has no end that is known, frame 1's no start: neither is taken for more than is known. */
	merge(chain, ARRAY_LEN(chain), natives, sps, 6);
	check("N0 N1 N2 S0:1 S1:2 N4 N5 ");
	assert_int_equal(counts[0].unplaced_segments, 1);
	sps[4] = UINT64_MAX;
	merge(chain, ARRAY_LEN(chain), natives, sps, 6);
	check("N0 N1 N2 N3 N4 N5 S0:1 S1:2 ");
	for (size_t i = 0; i < ARRAY_LEN(sps); i++)
		sps[i] = UINT64_MAX;
	merge(chain, ARRAY_LEN(chain), natives, sps, 6);
	check("N0 N1 N2 N3 N4 N5 S0:1 S1:2 ");
	/* another stack in between, above this one or below it */
	memcpy(sps, (const uint64_t[]){ 0x90000, 0x90100, SP(1), SP(2), SP(3), SP(4) }, sizeof(sps));
	merge(chain, ARRAY_LEN(chain), natives, sps, 6);
	check("N0 N1 S0:1 N3 S1:2 N5 ");
	memcpy(sps, (const uint64_t[]){ 0x10, 0x20, SP(1), SP(2), SP(3), SP(4) }, sizeof(sps));
	merge(chain, ARRAY_LEN(chain), natives, sps, 6);
	check("N0 N1 S0:1 N3 S1:2 N5 ");
}

static void test_unknown_objects(void **state)
{
	(void)state;
	MERGE(natives, HEAD(CHAIN_END_ROOT), F(UNKNOWN, 7), F(0, 8), F(UNKNOWN, UINT32_MAX), IN(1));
	check("N0 S?:7 S0:8 S?:4294967295 N2 N3 N4 N5 ");
	assert_int_equal(counts[0].frames, 3);
	assert_int_equal(counts[0].unknown_objects, 2);
	/* another was at its address before, or is there now */
	MERGE(natives, HEAD(CHAIN_END_ROOT), CHAIN_WORD(CHAIN_FRAME, S(0)), CHAIN_PLACE(5, CHECK + 1), IN(0));
	check("S?:5 N1 N2 N3 N4 N5 ");
	/* the place has 32 bits */
	MERGE(natives, HEAD(CHAIN_END_ROOT), F(0, 0xffffffff00000005), IN(0));
	check("S0:5 N1 N2 N3 N4 N5 ");
}

/* --- several chains --- */

static void test_chains(void **state)
{
	(void)state;
	/* A runtime that runs another, which runs the first again: each by its own markers, in order of the native frames.
	 */
	MERGE(natives, HEAD(CHAIN_END_ROOT), F(0, 1), IN(0), F(1, 2), IN(4), HEAD_OF(OTHER, CHAIN_END_ROOT), F(2, 3), IN(2));
	check("S0:1 N1 S2:3 N3 S1:2 N5 ");
	assert_int_equal(counts[0].frames, 2);
	MERGE(natives, HEAD_OF(OTHER, CHAIN_END_ROOT), F(2, 3), IN(2), HEAD(CHAIN_END_ROOT), F(0, 1), IN(0), F(1, 2), IN(4));
	check("S0:1 N1 S2:3 N3 S1:2 N5 ");
	assert_int_equal(merged.outcome, SCRIPT_OUTCOME(OTHER, CHAIN_END_ROOT));
	assert_int_equal(SCRIPT_OUTCOME_RUNTIME(merged.outcome), OTHER);
	/* one that came out badly counts, whether first or last */
	MERGE(natives, HEAD(CHAIN_END_TORN), F(0, 1), HEAD_OF(OTHER, CHAIN_END_ROOT), F(2, 3), IN(2));
	assert_int_equal(merged.outcome, SCRIPT_OUTCOME(RUNTIME_PYTHON, CHAIN_END_TORN));
	MERGE(natives, HEAD(CHAIN_END_ROOT), F(0, 1), IN(0), HEAD_OF(OTHER, CHAIN_END_TORN), F(2, 3), IN(2));
	assert_int_equal(merged.outcome, SCRIPT_OUTCOME(OTHER, CHAIN_END_TORN));
	assert_int_equal(SCRIPT_OUTCOME_END(merged.outcome), CHAIN_END_TORN);
	/* one without a place stands before the next of its own chain */
	MERGE(natives, HEAD(CHAIN_END_DEPTH), F(0, 1), IN(0), F(1, 2), HEAD_OF(OTHER, CHAIN_END_ROOT), F(2, 3), MARKER(1),
	      F(3, 4), IN(3));
	check("S0:1 N1 N2 S2:3 S3:4 N4 N5 S1:2 ");
	assert_int_equal(counts[0].ends[CHAIN_END_DEPTH], 1);
	assert_int_equal(counts[0].unplaced_segments, 1);
	/* at the root in the order of the chains; heads alone */
	MERGE(natives, HEAD(CHAIN_END_DEPTH), F(0, 1), HEAD_OF(OTHER, CHAIN_END_NO_THREAD), HEAD(CHAIN_END_ROOT), F(1, 2));
	check("N0 N1 N2 N3 N4 N5 S0:1 S1:2 ");
	assert_int_equal(counts[0].ends[CHAIN_END_DEPTH], 1);
	assert_int_equal(counts[0].ends[CHAIN_END_ROOT], 1);
}

/* --- without markers --- */

static const uint64_t loops[] = { N(0), LOOP(1), N(2), LOOP(3), LOOP(4), N(5) };

static void test_loops(void **state)
{
	(void)state;
	MERGE(loops, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(0), F(1, 2), MARKER(0), F(2, 3), MARKER(0));
	check("N0 S0:1 N2 S1:2 S2:3 N5 ");
	assert_int_equal(counts[0].unplaced_segments, 0);
	/* one frame of the loop more: the innermost has just begun */
	MERGE(loops, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(0), F(1, 2), MARKER(0));
	check("N0 L1 N2 S0:1 S1:2 N5 ");
	MERGE(loops, HEAD(CHAIN_END_ROOT));
	check("N0 L1 N2 L3 L4 N5 ");
	/* the outer end of the chain is missing: its first segments belong to the innermost frames */
	MERGE(loops, HEAD(CHAIN_END_DEPTH), F(0, 1), MARKER(0), F(1, 2), MARKER(0));
	check("N0 S0:1 N2 S1:2 L4 N5 ");
	MERGE(loops, HEAD(CHAIN_END_TORN), F(0, 1), MARKER(0));
	check("N0 S0:1 N2 L3 L4 N5 ");
	/* that of the native stack is */
	MERGE(loops, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(0), F(1, 2), MARKER(0), F(2, 3), MARKER(0), F(3, 4), MARKER(0),
	      F(4, 5), MARKER(0));
	check("N0 S0:1 N2 S1:2 S2:3 N5 S3:4 S4:5 ");
	assert_int_equal(counts[0].unplaced_segments, 2);
	MERGE(natives, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(0));
	check("N0 N1 N2 N3 N4 N5 S0:1 ");
}

/* The chain tells where the frames of the loop are. */
static void test_told_loops(void **state)
{
	static const uint64_t bodies[] = { BODY_AT(0), LOOP(1), N(2), BODY_AT(3), LOOP(4), N(5) };

	(void)state;
	MERGE(natives, HEAD(CHAIN_END_ROOT), AT_LOOP(1), AT_LOOP(4), F(0, 1), MARKER(0), F(1, 2), F(2, 3), MARKER(0));
	check("N0 S0:1 N2 N3 S1:2 S2:3 N5 ");
	assert_int_equal(counts[0].unplaced_segments, 0);
	/* one frame of the loop more: the innermost has just begun, or is about to end */
	MERGE(natives, HEAD(CHAIN_END_ROOT), AT_LOOP(0), AT_LOOP(1), AT_LOOP(4), F(0, 1), MARKER(0), F(1, 2), MARKER(0));
	check("N0 S0:1 N2 N3 S1:2 N5 ");
	/* one segment more: its frame is about to begin */
	MERGE(natives, HEAD(CHAIN_END_ROOT), AT_LOOP(3), F(0, 1), MARKER(0), F(1, 2), MARKER(0));
	check("N0 N1 N2 S0:1 S1:2 N4 N5 ");
	assert_int_equal(counts[0].unplaced_segments, 1);
	/* what C code called outside of any loop stands at the root */
	MERGE(natives, HEAD(CHAIN_END_ROOT), AT_LOOP(3), F(0, 1), MARKER(0), F(1, 2));
	check("N0 N1 N2 S0:1 N4 N5 S1:2 ");
	MERGE(natives, HEAD(CHAIN_END_ROOT), AT_LOOP(3), F(0, 1));
	check("N0 N1 N2 N3 N4 N5 S0:1 ");
	/* the outer end of the chain is missing: its first segments belong to the innermost frames */
	MERGE(natives, HEAD(CHAIN_END_DEPTH), AT_LOOP(1), AT_LOOP(3), AT_LOOP(4), F(0, 1), MARKER(0), F(1, 2));
	check("N0 S0:1 N2 S1:2 N4 N5 ");
	/* the native stack does not lead so far */
	MERGE(natives, HEAD(CHAIN_END_ROOT), AT_LOOP(1), AT_LOOP(9), F(0, 1), MARKER(0), F(1, 2), MARKER(0));
	check("N0 S0:1 N2 N3 N4 N5 S1:2 ");
	assert_int_equal(counts[0].unplaced_segments, 1);
	/* what is told of one chain is not the next one's */
	MERGE(natives, HEAD(CHAIN_END_ROOT), AT_LOOP(1), F(0, 1), MARKER(0), HEAD_OF(OTHER, CHAIN_END_ROOT), F(1, 2),
	      MARKER(0));
	check("N0 S0:1 N2 N3 N4 N5 S1:2 ");
	/* the loop's body goes, where a segment stands for a frame of the loop */
	MERGE(bodies, HEAD(CHAIN_END_ROOT), AT_LOOP(1), AT_LOOP(4), F(0, 1), MARKER(0), F(1, 2), MARKER(0));
	check("S0:1 N2 S1:2 N5 ");
	MERGE(bodies, HEAD(CHAIN_END_ROOT), AT_LOOP(9), F(0, 1), MARKER(0));
	assert_int_equal(merged.count, ARRAY_LEN(bodies) + 1);
}

/* Segments of a coroutine go to frames of the loop inside of the native frame that resumed it: its outer ones, which waited
 * while it slept, have none, and take none of the state's that resumed it. */
static void test_coroutines(void **state)
{
	(void)state;
	/* one of the coroutine's is native, and two of the others */
	MERGE(loops, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(0), F(1, 2), MARKER(0), RESUMED(2), F(2, 3), MARKER(0), F(3, 4),
	      MARKER(0));
	check("N0 S0:1 S1:2 N2 S2:3 S3:4 N5 ");
	assert_int_equal(counts[0].unplaced_segments, 0);
	assert_int_equal(SCRIPT_OUTCOME_END(merged.outcome), CHAIN_END_ROOT);
	/* it is native; the innermost frame of the loop is about to begin */
	MERGE(loops, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(0), RESUMED(4), F(1, 2), MARKER(0));
	check("N0 L1 N2 S0:1 S1:2 N5 ");
	/* none is: it is about to run */
	MERGE(loops, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(0), RESUMED(0), F(1, 2), MARKER(0));
	check("S0:1 N0 L1 N2 L3 S1:2 N5 ");
	/* a coroutine that C resumed; nobody knows where */
	MERGE(loops, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(0), F(1, 2), MARKER(0), RESUMED(9));
	check("N0 L1 N2 S0:1 S1:2 N5 ");
	/* what is told of one chain is not the next one's */
	MERGE(loops, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(0), RESUMED(4), HEAD(CHAIN_END_ROOT), F(1, 2), MARKER(0));
	check("N0 L1 N2 S0:1 S1:2 N5 ");
}

/* Which frames are the loop's. */
static void test_loop_range(void **state)
{
	const uint64_t edges[] = { LOOP_CODE | FRAME_EXACT, LOOP_CODE, LOOP_CODE + LOOP_BYTES,
				   (LOOP_CODE + LOOP_BYTES) | FRAME_EXACT, 0x99999 };

	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(edges); i++) {
		bool is_loop = i == 0 || i == 2; /* it begins there; a call in its last bytes */

		merge((const uint64_t[]){ HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(0) }, 6, &edges[i], NULL, 1);
		assert_int_equal(merged.count, is_loop ? 1 : 2);
		assert_int_equal(counts[0].unplaced_segments, !is_loop);
	}
	MERGE(loops, HEAD_OF(OTHER, CHAIN_END_ROOT), F(0, 1), MARKER(0)); /* another's loop */
	check("N0 L1 N2 L3 L4 N5 S0:1 ");
	interpreter.info.runtime.kind = RUNTIME_FILE_LIBC;
	MERGE(loops, HEAD(CHAIN_END_ROOT), F(0, 1), MARKER(0));
	check("N0 L1 N2 L3 L4 N5 S0:1 ");
}

/* A chain that ended in a segment of markers has a last one without: no loop is looked for. */
static void test_mixed(void **state)
{
	(void)state;
	MERGE(loops, HEAD(CHAIN_END_DEPTH), F(0, 1), IN(1), F(1, 2));
	check("N0 S0:1 N2 L3 L4 N5 S1:2 ");
}

/* --- nonsense --- */

static void test_nonsense(void **state)
{
	(void)state;
	/* an end and runtimes that there are not, words of no kind, frames before any head, the highest values */
	MERGE(natives, HEAD(CHAIN_END_MAX), F(0, 1), IN(0));
	check("S0:1 N1 N2 N3 N4 N5 ");
	assert_int_equal(counts[0].ends[CHAIN_END_TORN], 1);
	MERGE(natives, HEAD(UINT64_MAX), HEAD_OF(UINT64_MAX, 0), HEAD_OF(UINT32_MAX, UINT64_MAX), F(0, 1), IN(0));
	check("S0:1 N1 N2 N3 N4 N5 ");
	MERGE(natives, 0, 0, UINT64_MAX, UINT64_MAX, CHAIN_WORD(77, S(0)), 1, F(1, 2), IN(1), F(2, 3));
	check("N0 S1:2 N2 N3 N4 N5 S2:3 ");
	assert_int_equal(counts[0].frames, 0); /* of which runtime nobody knows */
	MERGE(natives, HEAD(CHAIN_END_ROOT), CHAIN_WORD(CHAIN_FRAME, UINT64_MAX), UINT64_MAX, MARKER(UINT64_MAX));
	check("N0 N1 N2 N3 N4 N5 S?:4294967295 ");
}

/* As many frames as there may be, of both kinds; as many segments, with places from the outermost to the innermost. */
static void test_limits(void **state)
{
	AUTO_FREE uint64_t *user = malloc(MAX_USER_FRAMES * sizeof(*user)),
			   *words = malloc(MAX_CHAIN_WORDS * sizeof(*words));

	(void)state;
	assert_true(user && words);
	for (uint32_t i = 0; i < MAX_USER_FRAMES; i++)
		user[i] = N(i);
	for (uint32_t i = 0; i < MAX_CHAIN_WORDS; i += 2) {
		words[i] = CHAIN_WORD(CHAIN_FRAME, S(i / 2 % FUNCTIONS));
		words[i + 1] = CHAIN_PLACE(i / 2, CHECK);
	}
	merge(words, MAX_CHAIN_WORDS, user, NULL, MAX_USER_FRAMES);
	assert_int_equal(merged.count, MAX_MERGED_FRAMES);
	for (uint32_t i = 0; i < MAX_USER_FRAMES; i++)
		assert_int_equal(merged.frames[i], N(i));
	for (uint32_t i = 0; i < MAX_CHAIN_WORDS / 2; i++)
		assert_true(merged.frames[MAX_USER_FRAMES + i] == FRAME_OF_SCRIPT(ids[i % FUNCTIONS], i));
	/* a marker each */
	for (uint32_t i = 0; i < MAX_CHAIN_WORDS; i += 2)
		words[i] = CHAIN_WORD(CHAIN_MARKER, SP(i / 2) + 8);
	merge(words, MAX_CHAIN_WORDS, user, NULL, MAX_USER_FRAMES);
	assert_int_equal(merged.count, 1); /* all but the outermost are replaced by nothing */
	assert_int_equal(merged.frames[0], N(MAX_USER_FRAMES - 1));
	/* a head each, the frames between them each outside the one before */
	for (uint32_t i = 0; i < MAX_CHAIN_WORDS; i += 8) {
		const uint64_t chain[] = { HEAD(CHAIN_END_ROOT), F(0, i), IN(MAX_USER_FRAMES - 2 - i / 4), F(1, i) };

		memcpy(&words[i], chain, sizeof(chain));
	}
	merge(words, MAX_CHAIN_WORDS, user, NULL, MAX_USER_FRAMES);
	assert_int_equal(merged.count, MAX_USER_FRAMES + MAX_CHAIN_WORDS / 8);
	assert_int_equal(counts[0].ends[CHAIN_END_ROOT], MAX_CHAIN_WORDS / 8);
	assert_int_equal(counts[0].unplaced_segments, MAX_CHAIN_WORDS / 8);
	assert_true(merged.frames[MAX_USER_FRAMES - 2] == FRAME_OF_SCRIPT(ids[0], 0));
	assert_int_equal(merged.frames[MAX_USER_FRAMES - 1], N(MAX_USER_FRAMES - 1));
	assert_true(merged.frames[MAX_USER_FRAMES] == FRAME_OF_SCRIPT(ids[1], 0));
}

/* User addresses, also those of x86-64's vsyscall page, are no frames of scripts. */
static void test_frames(void **state)
{
	const uint64_t script = FRAME_OF_SCRIPT(OBJECT_IDS - 1, UINT32_MAX);

	(void)state;
	assert_true(FRAME_IS_SCRIPT(script) && FRAME_OBJECT(script) == OBJECT_IDS - 1 && FRAME_PLACE(script) == UINT32_MAX);
	assert_true(FRAME_IS_SCRIPT(FRAME_OF_SCRIPT(0, 0)));
	assert_false(FRAME_IS_SCRIPT(0xffffffffff600000ull));
	assert_false(FRAME_IS_SCRIPT(0xffffffffff600000ull & ~FRAME_EXACT));
	assert_false(FRAME_IS_SCRIPT(0x7fffffffffffull | FRAME_EXACT));
	assert_false(FRAME_IS_SCRIPT(0ull));
}

/* The first chain that tells of its runtime's lock counts, however the chain itself ended; what is none is not known. */
static void test_lock(void **state)
{
	(void)state;
	MERGE(natives, HEAD(CHAIN_OUTCOME(CHAIN_END_ROOT, CHAIN_LOCK_HELD)), F(0, 1), IN(1));
	check("N0 S0:1 N2 N3 N4 N5 ");
	assert_int_equal(merged.lock, CHAIN_LOCK_HELD);
	assert_int_equal(merged.outcome, SCRIPT_OUTCOME(RUNTIME_PYTHON, CHAIN_END_ROOT));
	MERGE(natives, HEAD(CHAIN_OUTCOME(CHAIN_END_TORN, CHAIN_LOCK_WAITING)));
	assert_int_equal(merged.lock, CHAIN_LOCK_WAITING);
	MERGE(natives, HEAD_OF(OTHER, CHAIN_END_ROOT), F(2, 3), IN(2),
	      HEAD(CHAIN_OUTCOME(CHAIN_END_ROOT, CHAIN_LOCK_RELEASED)), F(0, 1), IN(0));
	assert_int_equal(merged.lock, CHAIN_LOCK_RELEASED);
	MERGE(natives, HEAD(CHAIN_OUTCOME(CHAIN_END_ROOT, CHAIN_LOCK_HELD)), F(0, 1), IN(0), HEAD_OF(OTHER, CHAIN_END_ROOT),
	      F(2, 3), IN(2));
	assert_int_equal(merged.lock, CHAIN_LOCK_HELD);
	MERGE(natives, HEAD(CHAIN_OUTCOME(CHAIN_END_ROOT, CHAIN_LOCK_MAX)), F(0, 1), IN(1));
	assert_int_equal(merged.lock, CHAIN_LOCK_UNKNOWN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)
	static const struct CMUnitTest tests[] = {
		TEST(test_markers),	    TEST(test_unplaced),   TEST(test_cut),    TEST(test_unknown_sps),
		TEST(test_unknown_objects), TEST(test_chains),	   TEST(test_loops),  TEST(test_loop_range),
		TEST(test_mixed),	    TEST(test_nonsense),   TEST(test_limits), cmocka_unit_test(test_frames),
		TEST(test_told_loops),	    TEST(test_coroutines), TEST(test_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
