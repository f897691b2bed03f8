/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sample that missed carries of its thread's stacks, and in which order: the kernel's side (tests/judge/kernel.c has
 * bpf/send.bpf.h and bpf/stacks.bpf.h on the host) over a memory made up here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/pending.h"
#include "base/cleanup.h"
#include "tests/judge/kernel.c"

enum {
	PAGE = STACK_CHUNK_BYTES,
	SP = 0x100000 + 0x123 * 8, /* within a page */
	TOP = SP / PAGE * PAGE,
	END = TOP + 200 * PAGE,
	TLS = 0x800000,
	GO = 0x900000, /* g, g0, m and the goroutine's own g, 1 KB each */
	GO_SP = 0xa00000 + 0x800,
	GO_END = 0xa00000 + 4 * PAGE,
	MAX_CHUNKS = 512,
};

/* --- a memory --- */

struct memory {
	uint64_t top[PAGE / 8];	  /* the page of the sample's sp */
	uint64_t words[PAGE / 8]; /* from TLS - PAGE on */
	uint64_t go[PAGE / 8];
	uint64_t unreadable; /* a page */
};

int memory_read(struct memory *m, uint64_t addr, void *dst, size_t len_bytes)
{
	const struct {
		uint64_t start, end;
		const uint64_t *words; /* NULL: zeros */
	} areas[] = { { TOP, TOP + PAGE, m->top },
		      { TOP + PAGE, END, NULL },
		      { TLS - PAGE, TLS, m->words },
		      { GO, GO + PAGE, m->go },
		      { GO_SP / PAGE * PAGE, GO_END, NULL } };

	for (size_t i = 0; i < ARRAY_LEN(areas); i++) {
		if (addr < areas[i].start || addr + len_bytes > areas[i].end || addr / PAGE * PAGE == m->unreadable)
			continue;
		if (areas[i].words)
			memcpy(dst, (const uint8_t *)areas[i].words + (addr - areas[i].start), len_bytes);
		else
			memset(dst, 0, len_bytes);
		return 0;
	}
	return -1;
}

/* --- what a sample sends --- */

static struct sent {
	uint64_t chunks[MAX_CHUNKS]; /* where they begin */
	uint32_t count, flags;
	struct sample_regs regs;
} sent;

static void note(void *arg, const struct record *record)
{
	(void)arg;
	if (record->kind == RECORD_STACK_CHUNK) {
		assert_true(sent.count < MAX_CHUNKS);
		sent.chunks[sent.count++] = ((const struct stack_chunk *)(const void *)record)->addr;
		return;
	}
	assert_int_equal(record->kind, RECORD_SAMPLE);
	sent.flags = ((const struct sample_record *)(const void *)record)->flags;
	sent.regs = *pending_regs(record);
}

enum { PC = 0x1000 };

/* @fp: 0, or where the frame pointer leads to. @alternate_bytes: 0, or the size of the signal stack from TOP on. */
static void send_from(struct memory *m, uint64_t area_end, uint64_t fp, uint64_t alternate_bytes)
{
	const struct kernel_thread thread = { .regs = { [REG_SP] = SP, [REG_PC] = PC, [REG_FP] = fp },
					      .fs_base = TLS,
					      .area_end = area_end,
					      .alternate_sp = alternate_bytes ? TOP : 0,
					      .alternate_bytes = alternate_bytes,
					      .asid = 1 };
	struct mapping_value code = { .asid = 1,
				      .piece = PC >> MAPPING_PAGE_SHIFT,
				      .start = PC,
				      .end = PC + PAGE,
				      .kind = MAPPING_FP,
				      .shift = MAPPING_PAGE_SHIFT };

	memset(&sent, 0, sizeof(sent));
	kernel_reset();
	if (fp)
		sampler_set_mapping(NULL, &code);
	held.cpu.chunk_tokens_ns = 0;
	kernel_sample(m, &thread, true, note, NULL);
}

static void send(struct memory *m, uint64_t area_end)
{
	send_from(m, area_end, 0, 0);
}

/* The number of the chunk that begins at @addr, in the order in which they were sent. */
static uint32_t place_of(uint64_t addr)
{
	uint32_t i = 0;

	while (i < sent.count && sent.chunks[i] != addr)
		i++;
	assert_true(i < sent.count);
	return i;
}

/* --- tests --- */

/* All of a short stack, from the red zone up to its end, a page that nobody has touched left out. */
static void test_short_stack(void **state)
{
	uint64_t page = TOP;
	struct memory m = { .unreadable = page + 3 * PAGE };

	(void)state;
	send(&m, page + 10 * PAGE);
	assert_int_equal(sent.flags & (SAMPLE_CUT | SAMPLE_LIMITED), 0);
	assert_int_equal(sent.count, 9);
	for (uint32_t i = 0; i < sent.count; i++)
		assert_int_equal(sent.chunks[i], i ? page + (i + (i > 2)) * PAGE : SP - RED_ZONE_BYTES);
}

/* Both ends of a long one before what lies between, so that they are there when the ring has no room for more; the same
 * page is never sent twice. */
static void test_long_stack(void **state)
{
	uint64_t near = TOP + END_CHUNKS * PAGE, far = END - END_CHUNKS * PAGE;
	struct memory m = { 0 };

	(void)state;
	send(&m, END);
	assert_true(sent.flags & SAMPLE_CUT);
	assert_int_equal(sent.chunks[0], SP - RED_ZONE_BYTES);
	for (uint64_t addr = far; addr < END; addr += PAGE)
		assert_in_range(place_of(addr), END_CHUNKS, FAIR_CHUNKS - 1);
	assert_int_equal(place_of(near), FAIR_CHUNKS);
	assert_int_equal(sent.count, cfg_stack_chunks);
	for (uint32_t i = 0; i < sent.count; i++)
		assert_int_equal(place_of(sent.chunks[i]), i);
}

/* What the thread pointer points to is at the top of a thread's stack; behind it other memory of the same area follows. */
static void test_thread_stack(void **state)
{
	struct memory m = { 0 };

	(void)state;
	send(&m, TLS + 1000 * PAGE);
	(void)place_of(TLS - PAGE);
}

/* A goroutine that is away from its stack, as the runtime's structures have it. */
static void make_go(struct memory *m, uint32_t nth)
{
	enum { G = 0, G0 = 128, M = 256, CURG = 384 }; /* words */

	memset(m, 0, sizeof(*m));
	m->words[PAGE / 8 - 1 - nth] = GO;
	m->go[G + GO_G_M / 8] = m->go[G0 + GO_G_M / 8] = m->go[CURG + GO_G_M / 8] = GO + M * 8;
	m->go[M] = GO + G0 * 8;
	m->go[M + GO_M_CURG / 8] = GO + CURG * 8;
	m->go[CURG + GO_G_STACK_HI / 8] = GO_END;
	m->go[CURG + GO_G_SCHED_SP / 8] = GO_SP;
	m->go[CURG + GO_G_SCHED_PC / 8] = 0x401000 + nth;
}

/* Go's g stands right below the thread pointer, in a static program with C further below; its goroutine's stack goes too. */
static void test_go(void **state)
{
	static const uint32_t places[] = { 0, 1, 7, 31 };
	struct memory m;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		make_go(&m, places[i]);
		send(&m, SP + PAGE);
		assert_int_equal(sent.regs.sched.pc, 0x401000 + places[i]);
		assert_int_equal(sent.regs.sched.sp, GO_SP);
		(void)place_of(GO_SP - RED_ZONE_BYTES);
	}
	make_go(&m, 0);
	m.go[GO_G_M / 8] = GO + 8; /* nobody's m: it only looked like a g */
	send(&m, SP + PAGE);
	assert_int_equal(sent.regs.sched.pc, 0);
}

/*
 * Go's preemption signal came while the thread was in the vDSO, on the system stack: nobody noted where the goroutine's
 * stack was left; the interrupted frame pointer leads there.
 */
static void test_go_interrupted(void **state)
{
	enum { FRAME_OFF = 0xd00, CHAIN = 0xe00, CURG_LO = 384 };
	const uint64_t left = GO_SP + 0x100, context = (PAGE - 1024) / 8;
	struct memory m;

	(void)state;
	make_go(&m, 0);
	m.go[CURG_LO] = GO_SP / PAGE * PAGE;
	m.go[CURG_LO + GO_G_SCHED_SP / 8] = GO_END - 64; /* of some earlier time */
	m.go[CHAIN / 8] = left;
	m.top[context + SIGNAL_STACK / 8] = TOP;
	m.top[context + SIGNAL_STACK / 8 + 2] = PAGE;
	m.top[context + SIGNAL_SP / 8] = GO + FRAME_OFF;
	m.top[context + SIGNAL_FP / 8] = GO + CHAIN;
	send_from(&m, TOP + PAGE, 0, PAGE);
	(void)place_of(GO + FRAME_OFF - RED_ZONE_BYTES);
	(void)place_of(left - RED_ZONE_BYTES);
}

/* A stack that nobody knows of: where the walk itself came to before it missed. */
static void test_other_stack(void **state)
{
	enum { FRAME = 0x200 }; /* on what is Go's above */
	struct memory m = { .go = { [FRAME / 8 + 1] = 0x5000 /* no mapping was told */ } };

	(void)state;
	send_from(&m, SP + PAGE, GO + FRAME, 0);
	assert_int_equal(sent.regs.stop_sp, GO + FRAME + 16);
	(void)place_of(GO + FRAME + 16 - RED_ZONE_BYTES);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_stack),    cmocka_unit_test(test_long_stack),
		cmocka_unit_test(test_thread_stack),   cmocka_unit_test(test_go),
		cmocka_unit_test(test_go_interrupted), cmocka_unit_test(test_other_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
