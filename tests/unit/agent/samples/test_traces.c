/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks stored once, frames resolved to files, and who holds what until the interval ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/samples/merge.h"
#include "agent/samples/traces.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

static struct traces *t;
static struct file readable = { .id = 1 }, other = { .id = 2 }, bare = { .id = 3, .state = FILE_NO_ROWS },
		   unreadable = { .id = 4, .state = FILE_UNREADABLE };
static struct process *process;

enum { KERNEL_PC = 3 };

static const uint64_t kernel[] = { 0xffffffff81000010, 0xffffffff81000020, 0xffffffff81000030 };

static struct process *new_process(void)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->refs = 1;
	p->as = address_space_new();
	assert_non_null(p->as);
	assert_int_equal(address_space_map(&p->as, 0x10000, 0x20000, 0x1000, &readable), 0);
	assert_int_equal(address_space_map(&p->as, 0x20000, 0x30000, 0, &other), 0);
	assert_int_equal(address_space_map(&p->as, 0x30000, 0x40000, 0, &bare), 0);
	assert_int_equal(address_space_map(&p->as, 0x40000, 0x50000, 0, &unreadable), 0);
	assert_int_equal(address_space_map(&p->as, 0x50000, 0x60000, 0, NULL), 0);
	return p;
}

static int make(void **state)
{
	(void)state;
	process = new_process();
	return traces_new(NULL, &t);
}

static int destroy(void **state)
{
	(void)state;
	traces_free(t);
	process_put(process);
	return readable.refs || other.refs || bare.refs || unreadable.refs; /* nobody holds a file any more */
}

static int add(struct process *p, uint32_t kernel_cnt, const uint64_t *user, uint32_t user_cnt, enum walk_end end)
{
	static uint32_t number;
	struct sample_record record = { .hdr = { .time_ns = 1000 + number, .cpu = number % 3 }, .tid = 50 + number };
	const struct pending_sample sample = { .record = &record, .kernel = kernel, .kernel_cnt = kernel_cnt, .value = 1 };

	number++;
	memcpy(record.comm, "worker", 7);
	return traces_add(t, p, &sample, user, user_cnt, end);
}

static uint32_t last_trace(void)
{
	return traces_events(t)[traces_event_count(t) - 1].trace;
}

static const struct trace_frame *frame_of(uint32_t trace, uint32_t i)
{
	const struct trace *tr = traces_get(t, trace);

	assert_true(i < tr->frame_cnt);
	return traces_frame(t, traces_frame_ids(t, tr)[i]);
}

static void test_frames(void **state)
{
	static const struct {
		uint64_t user;
		uint32_t kind;
		struct file *file;
		uint64_t addr;
	} cases[] = {
		{ 0x10010 | FRAME_EXACT, FRAME_NATIVE, &readable, 0x1010 },
		{ 0x10010, FRAME_NATIVE, &readable, 0x100f },
		{ 0x10000 | FRAME_EXACT, FRAME_NATIVE, &readable, 0x1000 },
		{ 0x20000, FRAME_NATIVE, &readable, 0x10fff }, /* a call in the last bytes before the next file */
		{ 0x20000 | FRAME_EXACT, FRAME_NATIVE, &other, 0 },
		{ 0x30001, FRAME_NATIVE, &bare, 0 },
		{ 0x40008, FRAME_ANONYMOUS, NULL, 0x40007 },
		{ 0x50008 | FRAME_EXACT, FRAME_ANONYMOUS, NULL, 0x50008 },
		{ 0x10000, FRAME_ANONYMOUS, NULL, 0xffff }, /* before every mapping */
		{ 0x60000 | FRAME_EXACT, FRAME_ANONYMOUS, NULL, 0x60000 },
		/* x86-64's vsyscall page, which is no frame of a script */
		{ 0xffffffffff600000 | FRAME_EXACT, FRAME_ANONYMOUS, NULL, 0x7fffffffff600000 },
	};
	uint64_t user[ARRAY_LEN(cases)];
	uint32_t trace;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		user[i] = cases[i].user;
	assert_int_equal(add(process, KERNEL_PC, user, ARRAY_LEN(cases), END_DEPTH), 0);
	trace = last_trace();
	assert_int_equal(traces_get(t, trace)->end, END_DEPTH);
	assert_int_equal(traces_get(t, trace)->frame_cnt, KERNEL_PC + ARRAY_LEN(cases));
	for (uint32_t i = 0; i < KERNEL_PC; i++) { /* the first is where the kernel stood, the others are return addresses */
		const struct trace_frame *f = frame_of(trace, i);

		assert_true(f->kind == FRAME_KERNEL && !f->file && f->addr == kernel[i] - (i > 0));
	}
	for (uint32_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct trace_frame *f = frame_of(trace, KERNEL_PC + i);

		assert_int_equal(f->kind, cases[i].kind);
		assert_ptr_equal(f->file, cases[i].file);
		assert_int_equal(f->addr, cases[i].addr);
	}
}

static void test_sharing(void **state)
{
	static const uint64_t a[] = { 0x10010 | FRAME_EXACT, 0x20010, 0x20020 };
	static const uint64_t exact[] = { 0x10010 | FRAME_EXACT, 0x20010, 0x20020 | FRAME_EXACT };
	struct process *child = new_process(), *twin = calloc(1, sizeof(*twin));
	uint32_t first, count;

	(void)state;
	if (!twin)
		abort();
	twin->refs = 1;
	twin->as = address_space_get(process->as); /* a fork: the same address space */

	assert_int_equal(add(process, 2, a, 3, END_ROOT), 0);
	first = last_trace();
	assert_int_equal(add(process, 2, a, 3, END_ROOT), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(traces_events(t)[i].trace, first);
	assert_int_equal(add(twin, 2, a, 3, END_ROOT), 0); /* it may have made code of its own since */
	assert_int_equal(traces_count(t), 2);
	assert_int_equal(traces_frame_count(t), 5);

	/* Whatever differs makes another stack; frames are shared all the same. */
	assert_int_equal(add(process, 2, a, 3, END_BAD_MEMORY), 0);
	assert_int_equal(traces_get(t, last_trace())->end, END_BAD_MEMORY);
	assert_int_equal(traces_get(t, first)->end, END_ROOT);
	assert_int_equal(add(child, 2, a, 3, END_ROOT), 0); /* an address space of its own */
	assert_int_equal(add(process, 1, a, 3, END_ROOT), 0);
	assert_int_equal(add(process, 2, a, 2, END_ROOT), 0);
	assert_int_equal(traces_count(t), 6);
	assert_int_equal(traces_frame_count(t), 5);
	assert_int_equal(add(process, 2, exact, 3, END_ROOT), 0);
	assert_int_equal(traces_count(t), 7);
	assert_int_equal(traces_frame_count(t), 6);
	assert_int_equal(add(process, 2, a, 0, END_NONE), 0);
	count = traces_count(t);
	assert_int_equal(add(child, 2, a, 0, END_NONE), 0); /* no user part: whose it is does not matter */
	assert_int_equal(traces_count(t), count);
	assert_int_equal(add(process, 0, a, 0, END_NONE), 0);
	assert_int_equal(traces_get(t, last_trace())->frame_cnt, 0);
	assert_int_equal(traces_event_count(t), 11);

	process_put(child);
	process_put(twin);
	assert_int_equal(child->refs, 2); /* its events hold it still */
	assert_int_equal(twin->refs, 1);
}

static void test_references(void **state)
{
	static const uint64_t user[] = { 0x10010 | FRAME_EXACT, 0x10010, 0x20010, 0x40010, 0x50010 };
	uint32_t before = readable.refs, other_before = other.refs;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3; i++)
			assert_int_equal(add(process, 1, user, ARRAY_LEN(user), END_ROOT), 0);
		assert_int_equal(process->refs, 1 + 3);
		assert_int_equal(readable.refs, before + 2); /* one each frame, however often it is met */
		assert_int_equal(other.refs, other_before + 1);
		traces_reset(t);
		assert_int_equal(process->refs, 1);
		assert_true(readable.refs == before && other.refs == other_before);
		assert_true(traces_count(t) == 0 && traces_event_count(t) == 0 && traces_frame_count(t) == 0);
	}
}

static void test_events(void **state)
{
	static const uint64_t user[] = { 0x10010 | FRAME_EXACT };
	struct sample_record record = { .hdr = { .time_ns = 123456789, .cpu = 7 }, .pid = 1, .tid = 99, .kind = 3 };
	const struct pending_sample sample = { .record = &record, .value = 250 };
	const struct trace_event *e;

	(void)state;
	memcpy(record.comm, "sixteen bytes ab", COMM_BYTES);
	assert_int_equal(traces_add(t, process, &sample, user, 1, END_ROOT), 0);
	e = traces_events(t);
	assert_true(e->process == process && e->time_ns == 123456789 && e->cpu == 7 && e->tid == 99 && e->kind == 3 &&
		    e->value == 250);
	assert_memory_equal(e->comm, "sixteen bytes ab", COMM_BYTES);
}

/* A sleep with the wait for a CPU behind it: one stack, two samples. The first kernel frame is a return address, too. */
static void test_waits(void **state)
{
	static const uint64_t user[] = { 0x10010 | FRAME_EXACT };
	const struct wait_info wait = { .since_ns = 5, .state = WAIT_UNINTERRUPTIBLE, .syscall = 17 };
	struct sample_record record = { .hdr = { .time_ns = 10 }, .tid = 99, .kind = 1 };
	const struct pending_sample sample = {
		.record = &record, .value = 250, .wait = &wait, .kernel = kernel, .kernel_cnt = 2
	};
	struct pending_sample on_cpu = sample;
	const struct trace_event *e;

	(void)state;
	assert_int_equal(traces_add_more(t, 2, 1), -ENOMEM); /* of what? */
	assert_int_equal(traces_add(t, process, &sample, user, 1, END_ROOT), 0);
	assert_int_equal(traces_add_more(t, 2, 70), 0);
	assert_int_equal(traces_event_count(t), 2);
	assert_int_equal(process->refs, 3);
	e = traces_events(t);
	assert_true(e[0].kind == 1 && e[0].value == 250 && e[0].wait == WAIT_UNINTERRUPTIBLE + 1 && e[0].syscall == 17);
	assert_true(e[1].kind == 2 && e[1].value == 70 && e[1].wait == WAIT_WOKEN + 1 && e[1].tid == 99);
	assert_true(e[0].trace == e[1].trace && e[0].process == e[1].process);
	assert_int_equal(frame_of(0, 0)->addr, kernel[0] - 1);
	on_cpu.wait = NULL;
	assert_int_equal(traces_add(t, process, &on_cpu, user, 1, END_ROOT), 0);
	e = traces_events(t);
	assert_true(!e[2].wait && e[2].trace != e[0].trace);
	assert_int_equal(frame_of(e[2].trace, 0)->addr, kernel[0]);
}

/* A waker's stack becomes a sample when the wait comes that it ended, once; by thread and time. */
static void test_wakers(void **state)
{
	static const uint64_t waiting[] = { 0x10010 | FRAME_EXACT }, waking[] = { 0x20010 | FRAME_EXACT };
	const struct wake wakes[] = { { 70, 250, 99, 0 }, { 70, 30, 98, 0 } };
	struct sample_record of_waker = { .hdr = { .time_ns = 71 }, .tid = 5, .kind = 3, .comm = "waker" };
	struct sample_record of_wait = { .hdr = { .time_ns = 80 }, .tid = 99, .kind = 1 };
	struct wait_info wait = { .since_ns = 5, .woken_ns = 71 };
	const struct pending_sample waker = { .record = &of_waker, .wakes = wakes, .wake_cnt = 2 };
	const struct pending_sample waits = { .record = &of_wait, .value = 200, .wait = &wait, .target_name = "pipe:[7]" };
	const struct trace_event *e;

	(void)state;
	assert_int_equal(traces_add_waker(t, process, &waker, waking, 1, END_ROOT), 0);
	assert_int_equal(process->refs, 3);
	assert_int_equal(traces_event_count(t), 0);
	assert_int_equal(wakers_count(traces_wakers(t)), 2);
	assert_int_equal(traces_add(t, process, &waits, waiting, 1, END_ROOT), 0);
	traces_join_waker(t, &waits); /* woken at another time */
	assert_int_equal(traces_event_count(t), 1);
	wait.woken_ns = 70;
	of_wait.tid = 97; /* another thread */
	traces_join_waker(t, &waits);
	assert_int_equal(traces_event_count(t), 1);
	of_wait.tid = 99;
	for (int i = 0; i < 2; i++)
		traces_join_waker(t, &waits);
	assert_int_equal(traces_event_count(t), 2);
	e = &traces_events(t)[1];
	assert_true(e->kind == 3 && e->value == 250 && e->tid == 99 && e->waker == 1 && e->trace == e[-1].trace &&
		    !e[-1].waker);
	assert_string_equal(traces_target(t, e->target - 1), "pipe:[7]");
	assert_string_equal(wakers_get(traces_wakers(t), 0)->comm, "waker");
	assert_int_equal(frame_of(wakers_get(traces_wakers(t), 0)->trace, 0)->addr, 0x20010 - 0x20000);
	assert_true(wakers_get(traces_wakers(t), 0)->is_used && !wakers_get(traces_wakers(t), 1)->is_used);
	traces_reset(t);
	assert_int_equal(process->refs, 1);
	assert_int_equal(wakers_count(traces_wakers(t)), 0);
}

/* Many distinct stacks, each found again; the deepest that may be; none deeper. */
static void test_many(void **state)
{
	enum { STACKS = 5000, DEPTH = 20 };
	AUTO_FREE uint64_t *deep = calloc(MAX_MERGED_FRAMES + 1, sizeof(*deep));
	uint64_t user[DEPTH];
	size_t busy;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < STACKS; i++) {
			for (uint32_t k = 0; k < DEPTH; k++)
				user[k] = 0x10001 + i * (k % 7) % 0xffff;
			user[0] = 0x10000 + i;
			assert_int_equal(add(process, i % 4, user, 1 + i % DEPTH, END_ROOT), 0);
			assert_int_equal(last_trace(), i);
		}
		assert_int_equal(traces_count(t), STACKS);
	}
	for (uint32_t i = 0; i < STACKS; i++) {
		assert_int_equal(traces_get(t, i)->frame_cnt, i % 4 + 1 + i % DEPTH);
		for (uint32_t k = 1; k < 1 + i % DEPTH; k++)
			assert_int_equal(frame_of(i, i % 4 + k)->addr, 0x1000 + i * (k % 7) % 0xffff);
	}
	for (uint32_t i = 0; i <= MAX_MERGED_FRAMES; i++)
		deep[i] = 0x10001 + i;
	assert_int_equal(add(process, KERNEL_PC, deep, MAX_MERGED_FRAMES, END_DEPTH), 0);
	assert_int_equal(traces_get(t, last_trace())->frame_cnt, KERNEL_PC + MAX_MERGED_FRAMES);
	assert_int_not_equal(add(process, KERNEL_PC, deep, MAX_MERGED_FRAMES + 1, END_DEPTH), 0);
	assert_int_not_equal(add(process, MAX_KERNEL_FRAMES + 1, deep, 1, END_DEPTH), 0);

	busy = traces_memory_bytes(t);
	traces_reset(t);
	assert_int_equal(traces_memory_bytes(t), busy); /* the next interval may be like this one ... */
	assert_int_equal(add(process, 0, user, 1, END_ROOT), 0);
	traces_reset(t);
	assert_in_range(traces_memory_bytes(t), 1, busy / 10); /* ... and was not */
	assert_int_equal(add(process, 0, user, 1, END_ROOT), 0);
	assert_int_equal(frame_of(last_trace(), 0)->addr, user[0] - 1 - 0x10000 + 0x1000);
}

/* A process without two stacks that are alike: it gets its part of memory, then its new stacks are cut, and it alone. */
static void test_limit(void **state)
{
	enum { LIMIT = 1 << 20, STACKS = 2000, DEPTH = 500 };
	struct process *neighbour = new_process();
	uint64_t user[DEPTH];
	uint32_t first, whole = 0;
	size_t memory;

	(void)state;
	traces_limit(t, LIMIT);
	for (uint32_t i = 0; i < STACKS; i++) {
		for (uint32_t k = 0; k < DEPTH; k++)
			user[k] = 0x50001 + (i * 7919 + k * 31) % 0xffff;
		assert_int_equal(add(process, 1, user, DEPTH, END_ROOT), 0);
		whole += traces_last_end(t) == END_ROOT;
		if (i == 0)
			first = last_trace();
	}
	assert_in_range(whole, 4, LIMIT / (DEPTH * sizeof(*user)));
	assert_int_equal(traces_last_end(t), END_BUDGET);
	assert_int_equal(traces_get(t, last_trace())->frame_cnt, 1 + 16);
	assert_int_equal(frame_of(last_trace(), 1)->addr, user[0] - 1);
	memory = traces_memory_bytes(t);
	assert_in_range(memory, LIMIT / 4, 4 * LIMIT); /* all stacks whole: 20 times the limit */
	for (uint32_t k = 0; k < DEPTH; k++)
		user[k] = 0x50001 + k * 31 % 0xffff;
	assert_int_equal(add(process, 1, user, DEPTH, END_ROOT), 0); /* what is there already stays whole */
	assert_int_equal(last_trace(), first);
	assert_int_equal(add(neighbour, 1, user, DEPTH, END_ROOT), 0);
	assert_int_equal(traces_last_end(t), END_ROOT);
	traces_reset(t);
	assert_int_equal(add(process, 1, user, DEPTH, END_ROOT), 0);
	assert_int_equal(traces_last_end(t), END_ROOT);
	traces_reset(t);
	process_put(neighbour);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_frames, make, destroy),
		cmocka_unit_test_setup_teardown(test_sharing, make, destroy),
		cmocka_unit_test_setup_teardown(test_references, make, destroy),
		cmocka_unit_test_setup_teardown(test_events, make, destroy),
		cmocka_unit_test_setup_teardown(test_waits, make, destroy),
		cmocka_unit_test_setup_teardown(test_wakers, make, destroy),
		cmocka_unit_test_setup_teardown(test_many, make, destroy),
		cmocka_unit_test_setup_teardown(test_limit, make, destroy),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
