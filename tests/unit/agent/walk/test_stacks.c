/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of its thread's stacks that a sample that missed carries, and their order: the kernel's side (tests/judge/kernel.c
 * has bpf/send.bpf.h and bpf/stacks.bpf.h on the host) over a memory made up here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/samples/reorder.h"
#include "base/cleanup.h"
#include "tests/judge/kernel.c"
#include "tests/unit/descriptors.h"

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
	size_t in_page = PAGE - addr % PAGE;

	if (len_bytes > in_page)
		return memory_read(m, addr, dst, in_page) ||
		       memory_read(m, addr + in_page, (uint8_t *)dst + in_page, len_bytes - in_page);
	for (size_t i = 0; i < ARRAY_LEN(areas); i++) {
		if (addr - areas[i].start >= areas[i].end - areas[i].start || addr / PAGE * PAGE == m->unreadable)
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
	uint64_t ends[MAX_CHUNKS];
	uint32_t count, flags, first_seq;
	struct sample_regs regs;
} sent;

static void note(void *arg, const struct record *record)
{
	struct pending_sample s;

	(void)arg;
	if (record->kind == RECORD_STACK_CHUNK) {
		const struct stack_chunk *chunk = (const void *)record;

		assert_int_equal(record->size, CHUNK_HEAD_BYTES + chunk->len);
		assert_true(sent.count < MAX_CHUNKS);
		for (uint32_t i = 0; i < sent.count; i++) /* nothing twice */
			assert_true(chunk->addr >= sent.ends[i] || chunk->addr + chunk->len <= sent.chunks[i]);
		assert_int_equal(record->seq, sent.first_seq + sent.count);
		sent.chunks[sent.count] = chunk->addr;
		sent.ends[sent.count++] = chunk->addr + chunk->len;
		return;
	}
	assert_int_equal(record_parse(record, &s), 0);
	sent.flags = s.record->flags;
	sent.regs = *s.regs;
	assert_int_equal(record->seq, sent.first_seq + sent.count);
	assert_int_equal(s.record->chunk_cnt, sent.count);
}

enum { PC = 0x1000 };

/* A sample of @thread. Frame pointers lead on where it has one, from code of an address space that is known. */
static void send_of(struct memory *m, struct kernel_thread thread)
{
	struct mapping_value code = { .asid = 1,
				      .piece = PC >> MAPPING_PAGE_SHIFT,
				      .start = PC,
				      .end = PC + PAGE,
				      .kind = MAPPING_FP,
				      .shift = MAPPING_PAGE_SHIFT };

	memset(&sent, 0, sizeof(sent));
	sent.first_seq = held.cpu.seq;
	kernel_reset();
	memset(&held.scratch.go, 0x11, sizeof(held.scratch.go)); /* an earlier sample's */
	memset(&held.scratch.copy, 0x11, sizeof(held.scratch.copy));
	thread.regs[REG_SP] = thread.regs[REG_SP] ? thread.regs[REG_SP] : SP;
	thread.regs[REG_PC] = PC;
	thread.fs_base = thread.fs_base ? thread.fs_base : TLS;
	thread.asid = 1;
	if (thread.regs[REG_FP])
		sampler_set_mapping(NULL, &code);
	kernel_sample(m, &thread, true, note, NULL);
}

/* @fp: 0, or where the frame pointer leads to. @alternate_bytes: 0, or the size of the signal stack from TOP on. */
static void send_from(struct memory *m, uint64_t area_end, uint64_t fp, uint64_t alternate_bytes)
{
	held.cpu.chunk_tokens_ns = 0;
	send_of(m, (struct kernel_thread){ .regs = { [REG_FP] = fp },
					   .area_end = area_end,
					   .alternate_sp = alternate_bytes ? TOP : 0,
					   .alternate_bytes = alternate_bytes });
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

/* Erlang's code called C on a scheduler's stack: the process's stack goes too. The scheduler stands under a key, 1. */
static void find_beam_stack(void)
{
	enum { KEYS = 512, SCHEDULER = 1024, PROCESS = 2048, RED = RED_ZONE_BYTES }; /* offsets from GO */
	struct chain_state threads = { .thread = { THREAD_KEY, THREAD_GLIBC, GO - TLS + KEYS, GO } };
	static const uint64_t cases[][5] = {
		/* sp, heap; where the copy ends, begins */
		{ GO_SP, GO_SP - 640, GO_END - PAGE, GO_END - PAGE, GO_SP - 640 - RED },
		{ GO_SP, GO_SP - PAGE, GO_END - PAGE, GO_END - PAGE, GO_SP - 2048 }, /* pushed since; no page is below */
		{ GO_SP, GO_END, GO_END + PAGE / 2, GO_SP + PAGE / 2, GO_SP - RED }, /* moved: as large as before */
		{ 0, GO_SP, GO_END, 0, 0 },
	};
	struct memory m = { .go = { 1, 0, 0, GO + SCHEDULER, [SCHEDULER / 8] = GO + PROCESS } };

	held.threads = &threads;
	for (uint16_t i = BEAM_STACK_POINTER; i < BEAM_THREAD_MAX; i++)
		threads.offset[i] = 8 * i;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		memcpy(&m.go[PROCESS / 8 + 1], cases[i], 24);
		send(&m, SP + PAGE);
		assert_int_equal(sent.regs.sched.pc, cases[i][0]);
		assert_int_equal(cases[i][0] ? sent.ends[sent.count - 1] : 0, cases[i][3]);
		(void)(cases[i][0] && place_of(cases[i][4]));
	}
	held.threads = NULL;
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
	find_beam_stack();
}

/* Go's preemption signal came while the thread was in the vDSO, on the system stack: nobody noted where the goroutine's
 * stack was left; the interrupted frame pointer leads there. */
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

static bool is_sent(uint64_t addr)
{
	for (uint32_t i = 0; i < sent.count; i++)
		if (addr >= sent.chunks[i] && addr < sent.ends[i])
			return true;
	return false;
}

/* Where a stack ends: a little behind what the first stack began with, or behind what the thread pointer leads to, or the
 * goroutine's own end, or else that of the memory area. */
static void test_ends(void **state)
{
	const struct {
		uint64_t start_stack, thread_pointer, area_end, end;
	} cases[] = {
		{ TOP + 5 * PAGE + 8, 0, TOP + 20 * PAGE, TOP + 5 * PAGE + 8 + ENTRY_BYTES },
		{ SP, 0, TOP + 20 * PAGE, SP + ENTRY_BYTES },
		{ SP - 8, 0, TOP + 20 * PAGE, TOP + 20 * PAGE },
		{ SP + FIRST_STACK_BYTES, 0, TOP + 20 * PAGE, TOP + 20 * PAGE },
		{ 0, TOP + 3 * PAGE, TOP + 20 * PAGE, TOP + 3 * PAGE + ENTRY_BYTES },
		{ 0, SP, TOP + 20 * PAGE, TOP + 20 * PAGE },
		{ 0, TOP + 20 * PAGE - 8, TOP + 20 * PAGE, TOP + 20 * PAGE },
		{ 0, TOP + 21 * PAGE, TOP + 20 * PAGE, TOP + 20 * PAGE },
	};
	struct memory m = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		held.cpu.chunk_tokens_ns = 0;
		send_of(&m, (struct kernel_thread){ .fs_base = cases[i].thread_pointer,
						    .area_end = cases[i].area_end,
						    .start_stack = cases[i].start_stack });
		assert_true(is_sent(cases[i].end - 1));
		assert_false(is_sent(cases[i].end));
	}
}

/* A goroutine's stack is a small part of the heap, and the sample is on it from its first byte on. */
static void test_go_stack_ends(void **state)
{
	enum { G = 0 };
	struct memory m;

	(void)state;
	make_go(&m, 0);
	m.go[G] = SP;
	m.go[G + GO_G_STACK_HI / 8] = TOP + 2 * PAGE;
	send(&m, TOP + 20 * PAGE);
	assert_true(is_sent(TOP + 2 * PAGE - 1) && !is_sent(TOP + 2 * PAGE));
	m.go[G] = SP + 1;
	send(&m, TOP + 20 * PAGE);
	assert_true(is_sent(TOP + 2 * PAGE));
	m.go[G] = TOP;
	m.go[G + GO_G_STACK_HI / 8] = SP;
	send(&m, TOP + 20 * PAGE);
	assert_true(is_sent(TOP + 2 * PAGE));
}

/* What Go's runtime keeps is believed where its pointers agree: g and g0 and the goroutine have the same m. */
static void test_go_is_believed(void **state)
{
	enum { G0 = 128, M = 256, CURG = 384 };
	struct memory m;

	(void)state;
	make_go(&m, 0);
	m.go[G0 + GO_G_M / 8] += 8;
	send(&m, SP + PAGE);
	assert_true(!sent.regs.sched.pc && !sent.regs.sched.sp);
	make_go(&m, 0);
	m.go[CURG + GO_G_M / 8] += 8;
	send(&m, SP + PAGE);
	assert_true(!sent.regs.sched.pc && !sent.regs.sched.sp);
	make_go(&m, 0);
	m.go[CURG + GO_G_SCHED_SP / 8] = 0; /* it runs */
	send(&m, SP + PAGE);
	assert_int_equal(sent.regs.sched.pc, 0);
	/* until 1.25 a word more stands before what follows it, in m and in sched */
	make_go(&m, 0);
	m.go[M + (GO_M_CURG + GO_RET_BYTES) / 8] = m.go[M + GO_M_CURG / 8];
	m.go[M + GO_M_CURG / 8] = 0;
	m.go[CURG + GO_G_SCHED_BP / 8] = 1;
	m.go[CURG + (GO_G_SCHED_BP + GO_RET_BYTES) / 8] = 2;
	send(&m, SP + PAGE);
	assert_int_equal(sent.regs.sched.pc, 0x401000);
	assert_int_equal(sent.regs.sched.fp, 2);
	make_go(&m, 0);
	m.go[CURG + GO_G_SCHED_BP / 8] = 1;
	m.go[CURG + (GO_G_SCHED_BP + GO_RET_BYTES) / 8] = 2;
	send(&m, SP + PAGE);
	assert_int_equal(sent.regs.sched.fp, 1);
}

/* The thread's system stack, from where it was left; and not when that is nowhere below its end. */
static void test_go_system_stack(void **state)
{
	enum { G0 = 128 };
	const uint64_t left = GO + 0x800;
	struct memory m;

	(void)state;
	make_go(&m, 0);
	m.go[G0 + GO_G_SCHED_SP / 8] = left;
	m.go[G0 + GO_G_STACK_HI / 8] = left + 8;
	send(&m, SP + PAGE);
	assert_true(is_sent(left) && is_sent(GO_SP));
	m.go[G0 + GO_G_STACK_HI / 8] = left;
	send(&m, SP + PAGE);
	assert_false(is_sent(left));
	/* a goroutine that left nothing of its stack */
	make_go(&m, 0);
	m.go[384 + GO_G_SCHED_SP / 8] = GO_END;
	send(&m, TOP + PAGE);
	assert_int_equal(sent.count, 1);
}

/* The chain of frame pointers leads back to the goroutine's stack in at most four steps. */
static void test_go_frame(void **state)
{
	enum { CURG = 384, CHAIN = 0x900, STEP = 0x40 };
	struct memory m;

	(void)state;
	for (uint64_t steps = 0; steps < 5; steps++) {
		make_go(&m, 0);
		m.go[GO_M_CURG / 8 + 256] = GO + CURG * 8;
		m.go[CURG] = GO_SP / PAGE * PAGE;
		m.go[CURG + GO_G_SCHED_SP / 8] = GO_END;
		for (uint64_t i = 0; i < steps; i++)
			m.go[(CHAIN + i * STEP) / 8] = GO + CHAIN + (i + 1) * STEP;
		if (steps)
			m.go[(CHAIN + (steps - 1) * STEP) / 8] = GO_SP + 8;
		send_from(&m, SP + PAGE, steps ? GO + CHAIN : GO_SP + 8, 0);
		assert_int_equal(is_sent(GO_SP + 8), steps < 4);
	}
	/* not from that stack itself */
	make_go(&m, 0);
	m.go[CURG] = TOP;
	m.go[CURG + GO_G_STACK_HI / 8] = TOP + PAGE;
	m.go[CURG + GO_G_SCHED_SP / 8] = TOP + PAGE;
	send_from(&m, TOP + PAGE, TOP, 0);
	assert_int_equal(sent.count, 1);
	/* what is right behind it is another's */
	make_go(&m, 0);
	m.go[CURG] = GO + CHAIN - 0x100;
	m.go[CURG + GO_G_STACK_HI / 8] = m.go[CURG + GO_G_SCHED_SP / 8] = GO + CHAIN;
	send_from(&m, TOP + PAGE, GO + CHAIN, 0);
	assert_false(is_sent(GO + CHAIN));
}

/* The frame of a signal lies as far below the end of the alternate stack as the CPU's vector registers need: up to four
 * windows are searched. It is told by both its words, and only while the thread is on that stack. */
static void test_signal_frames(void **state)
{
	enum { CONTEXT = (PAGE - 1024) / 8 };
	struct memory m = { 0 };

	(void)state;
	for (uint64_t pages = 1; pages < 7; pages++) {
		m.top[CONTEXT + SIGNAL_STACK / 8] = TOP;
		m.top[CONTEXT + SIGNAL_STACK / 8 + 2] = pages * PAGE;
		m.top[CONTEXT + SIGNAL_SP / 8] = GO + 0x200;
		send_from(&m, TOP + 10 * PAGE, 0, pages * PAGE);
		assert_int_equal(is_sent(GO + 0x200), pages <= 4);
	}
	m.top[CONTEXT + SIGNAL_STACK / 8 + 2] = PAGE + 1;
	send_from(&m, TOP + 10 * PAGE, 0, PAGE);
	assert_false(is_sent(GO + 0x200));
	m.top[CONTEXT + SIGNAL_STACK / 8 + 2] = PAGE;
	m.top[CONTEXT + SIGNAL_STACK / 8]++;
	send_from(&m, TOP + 10 * PAGE, 0, PAGE);
	assert_false(is_sent(GO + 0x200));
	for (uint64_t below = 0; below < 2; below++) { /* the stack begins at sp, or right above it */
		uint64_t start = SP + below * 16, bytes = 0x600;

		memset(&m, 0, sizeof(m));
		m.top[(SP - TOP) / 8 + 9 + SIGNAL_STACK / 8] = start;
		m.top[(SP - TOP) / 8 + 9 + SIGNAL_STACK / 8 + 2] = bytes;
		m.top[(SP - TOP) / 8 + 9 + SIGNAL_SP / 8] = GO + 0x200;
		held.cpu.chunk_tokens_ns = 0;
		send_of(&m, (struct kernel_thread){
				    .area_end = TOP + 10 * PAGE, .alternate_sp = start, .alternate_bytes = bytes });
		assert_int_equal(is_sent(GO + 0x200), !below);
	}
}

/* Half of the ring is left to samples: the first chunks of each go until the room is used up, further ones half of it. */
static void test_room(void **state)
{
	struct memory m = { 0 };
	const struct {
		uint32_t room, sent; /* chunks */
	} cases[] = { { 8, 9 }, { 40, FAIR_CHUNKS }, { 80, 41 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t before = held.cpu.counters[COUNTER_CHUNK_RING];

		held.ring_size = 2 * cases[i].room * sizeof(struct stack_chunk);
		send(&m, END);
		assert_int_equal(sent.count, cases[i].sent);
		assert_true(sent.flags & SAMPLE_LIMITED);
		assert_true(held.cpu.counters[COUNTER_CHUNK_RING] > before);
	}
	held.ring_size = 0;
}

/* Chunks are paid for with time. What is saved up has a limit; who is in debt sends none, and pays nothing. */
static void test_tokens(void **state)
{
	const struct {
		uint64_t time_ns;
		bool sends;
	} samples[] = { { 10000, true },  { 10000, true }, { 10000, false },
			{ 10099, false }, { 10100, true }, { 10190, false } };
	struct memory m = { 0 };
	uint64_t before;

	(void)state;
	cfg_chunk_cost_ns = 10;
	cfg_chunk_burst_ns = 100;
	held.cpu.chunk_tokens_ns = 0;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) { /* of ten chunks */
		before = held.cpu.counters[COUNTER_CHUNK_LIMIT];
		send_of(&m, (struct kernel_thread){ .area_end = TOP + 10 * PAGE, .time_ns = samples[i].time_ns });
		assert_int_equal(sent.count, samples[i].sends ? 10 : 0);
		assert_int_equal(!(sent.flags & SAMPLE_LIMITED), samples[i].sends);
		assert_int_equal(held.cpu.counters[COUNTER_CHUNK_LIMIT] - before, !samples[i].sends);
	}
	cfg_chunk_cost_ns = cfg_chunk_burst_ns = 0;
}

/* Exactly as many pages as a sample may have, and one more. */
static void test_most_chunks(void **state)
{
	struct memory m = { 0 };

	(void)state;
	send(&m, TOP + cfg_stack_chunks * PAGE);
	assert_int_equal(sent.count, cfg_stack_chunks);
	send(&m, TOP + (cfg_stack_chunks + 1) * PAGE);
	assert_int_equal(sent.count, cfg_stack_chunks);
	assert_true(sent.flags & SAMPLE_CUT);
	send(&m, TOP + (cfg_stack_chunks - 1) * PAGE);
	assert_int_equal(sent.count, cfg_stack_chunks - 1);
	assert_false(sent.flags & SAMPLE_CUT);
}

/* Where nobody can be asked for the memory area's end, a page that cannot be read ends the stack, but for its red zone's. */
static void test_unknown_end(void **state)
{
	struct memory m = { .unreadable = TOP + 5 * PAGE };

	(void)state;
	cfg_find_vma = false;
	held.cpu.chunk_tokens_ns = 0;
	send_of(&m, (struct kernel_thread){ .fs_base = 8 });
	assert_int_equal(sent.count, 5);
	m.unreadable = TOP;
	held.cpu.chunk_tokens_ns = 0;
	send_of(&m, (struct kernel_thread){ .regs = { [REG_SP] = TOP + PAGE + 8 }, .fs_base = 8 });
	assert_int_equal(sent.chunks[0], TOP + PAGE);
	cfg_find_vma = true;
}

/* Kernels without bpf_loop: the goroutine's stack, where the frame pointers lead to it, where the walk missed. */
static void test_tail_calls(void **state)
{
	enum { CURG = 384 };
	struct kernel_thread thread = { .fs_base = TLS, .area_end = TOP + 4 * PAGE, .by_tail_calls = true };
	struct memory m = { 0 };

	(void)state;
	make_go(&m, 0);
	thread.start_stack = TOP + 4 * PAGE - ENTRY_BYTES;
	held.cpu.chunk_tokens_ns = 0;
	send_of(&m, thread);
	assert_int_equal(sent.regs.sched.pc, 0x401000);
	assert_true(is_sent(SP) && is_sent(TOP + 4 * PAGE - 1) && !is_sent(TOP + 4 * PAGE));
	(void)place_of(GO_SP - RED_ZONE_BYTES);
	m.go[GO_M_CURG / 8 + 256] = GO; /* the goroutine that runs, from where its stack was left */
	m.go[0] = GO_SP / PAGE * PAGE;
	m.go[GO_G_STACK_HI / 8] = GO_END;
	thread.regs[REG_FP] = GO_SP + 0x100;
	send_of(&m, thread);
	(void)place_of(GO_SP + 0x100 - RED_ZONE_BYTES);
	assert_int_equal(sent.ends[sent.count - 1], GO_END);
	memset(&m, 0, sizeof(m));
	m.go[0x200 / 8 + 1] = 0x5000;
	thread.regs[REG_FP] = GO + 0x200;
	send_of(&m, thread);
	(void)place_of(GO + 0x200 + 16 - RED_ZONE_BYTES);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_stack),    cmocka_unit_test(test_long_stack),
		cmocka_unit_test(test_thread_stack),   cmocka_unit_test(test_go),
		cmocka_unit_test(test_go_interrupted), cmocka_unit_test(test_other_stack),
		cmocka_unit_test(test_ends),	       cmocka_unit_test(test_go_stack_ends),
		cmocka_unit_test(test_go_is_believed), cmocka_unit_test(test_go_system_stack),
		cmocka_unit_test(test_go_frame),       cmocka_unit_test(test_signal_frames),
		cmocka_unit_test(test_room),	       cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_most_chunks),    cmocka_unit_test(test_unknown_end),
		cmocka_unit_test(test_tail_calls),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
