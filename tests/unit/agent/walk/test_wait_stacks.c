/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of threads that wait: what is taken off, what is kept for how long, and what is read of a thread that sleeps. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/kernel/kernel_ranges.h"
#include "agent/walk/wait_stacks.h"
#include "base/cleanup.h"
#include "base/metrics.h"

static struct metrics *metrics;
static struct wait_stacks *stacks;

static int make(void **state)
{
	(void)state;
	metrics = metrics_new();
	return !metrics || wait_stacks_new(metrics, &stacks);
}

static int destroy(void **state)
{
	(void)state;
	wait_stacks_free(stacks);
	metrics_free(metrics);
	return 0;
}

static uint64_t find_symbol(const char *name)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], found[256];
	unsigned long long addr;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*c %255s", &addr, found) == 2 && !strcmp(found, name))
			return addr;
	return 0;
}

/* The frames of the interrupt and the scheduler's go; what called the scheduler is the innermost. */
static void test_trim(void **state)
{
	uint64_t from = find_symbol("__sched_text_start"), to = find_symbol("__sched_text_end");
	uint64_t frames[] = { to + 100, to + 200, from + 8, to - 8, to + 300, from + 16, to + 400 };
	struct sample_record record = { .kind = 1 };
	struct wait_info wait = { .since_ns = 1000 };
	struct pending_sample s = { .record = &record, .wait = &wait, .kernel = frames, .kernel_cnt = 7 };

	(void)state;
	if (!from || !to)
		skip(); /* the kernel hides its addresses */
	wait_stacks_mend(&s);
	assert_int_equal(s.kernel_cnt, 3);
	assert_ptr_equal(s.kernel, &frames[4]);
	s = (struct pending_sample){
		.record = &record, .wait = &wait, .kernel = &frames[2], .kernel_cnt = 2
	}; /* nothing else: the outermost stays */
	wait_stacks_mend(&s);
	assert_true(s.kernel_cnt == 1 && s.kernel == &frames[3]);
	s = (struct pending_sample){
		.record = &record, .wait = &wait, .kernel = frames, .kernel_cnt = 2
	}; /* a thread that has never run */
	wait_stacks_mend(&s);
	assert_true(s.kernel_cnt == 1 && s.kernel == &frames[1]);
	s = (struct pending_sample){ .record = &record, .wait = &wait, .kernel = NULL };
	wait_stacks_mend(&s);
	assert_int_equal(s.kernel_cnt, 0);
}

/* Of a waker the frames of the interrupt that came for it go, and those of the scheduler's inside; of an interrupt that woke
 * none but these. */
static void test_waker(void **state)
{
	const struct kernel_ranges *ranges = kernel_ranges();
	uint64_t irq = ranges->irqs[0].start + 8, waking = ranges->waking.start + 8;
	uint64_t frames[] = { 1, 2, irq, 3, waking, 4, 5 };
	const struct wake wake = { .woken_ns = 7 };
	struct sample_record record = { .kind = 1 };
	struct pending_sample s = { .record = &record, .wakes = &wake, .wake_cnt = 1, .kernel = frames, .kernel_cnt = 7 };

	(void)state;
	if (!ranges->irqs[0].end || !ranges->waking.end)
		skip(); /* the kernel hides its addresses */
	wait_stacks_mend(&s);
	assert_true(s.kernel_cnt == 3 && s.kernel == &frames[4] && !s.is_irq);
	s = (struct pending_sample){ .record = &record, .wakes = &wake, .kernel = frames, .kernel_cnt = 4 };
	wait_stacks_mend(&s);
	assert_true(s.kernel_cnt == 1 && s.kernel == &frames[3]);
	record.flags = SAMPLE_IRQ;
	s = (struct pending_sample){ .record = &record, .wakes = &wake, .kernel = &frames[3], .kernel_cnt = 4 };
	wait_stacks_mend(&s);
	assert_true(s.kernel_cnt == 3 && s.kernel == &frames[4] && s.is_irq);
}

/* A stack is kept for as long as its thread sleeps the same sleep, in the same address space, and is told each time. */
static void test_kept(void **state)
{
	struct sample_record record = { .tid = 7 };
	struct wait_info wait = { .since_ns = 1000 };
	const struct pending_sample s = { .record = &record, .wait = &wait };
	const uint64_t frames[] = { 1, 2, 3 };
	const struct wait_stack *found;
	size_t empty = wait_stacks_memory_bytes(stacks);

	(void)state;
	wait_stacks_begin(stacks);
	assert_null(wait_stacks_find(stacks, &s, 5));
	wait_stacks_keep(stacks, &s, 5, frames, 3, END_ROOT);
	found = wait_stacks_find(stacks, &s, 5);
	assert_true(found && found->count == 3 && found->end == END_ROOT);
	assert_memory_equal(found->frames, frames, sizeof(frames));
	assert_null(wait_stacks_find(stacks, &s, 6));
	wait.since_ns = 2000;
	assert_null(wait_stacks_find(stacks, &s, 5));
	wait.since_ns = 1000;
	for (int i = 0; i < 3; i++) {
		wait_stacks_begin(stacks);
		assert_non_null(wait_stacks_find(stacks, &s, 5));
	}
	wait_stacks_keep(stacks, &s, 5, frames, 2, END_DEPTH); /* in place of the other */
	assert_int_equal(wait_stacks_find(stacks, &s, 5)->count, 2);
	assert_true(wait_stacks_memory_bytes(stacks) > empty);
	wait_stacks_begin(stacks);
	wait_stacks_begin(stacks); /* it was not told in between */
	assert_null(wait_stacks_find(stacks, &s, 5));
}

static int wake[2];
static volatile int sleeper_tid;

static void *sleeper(void *arg)
{
	char byte;

	(void)arg;
	sleeper_tid = (int)syscall(SYS_gettid);
	return read(wake[0], &byte, 1) == 1 ? NULL : arg;
}

/* Where the thread sleeps, by the kernel. False: it does not sleep. */
static bool find_place(int tid, __u64 *sp, __u64 *pc)
{
	char path[64], line[256];
	AUTO_FCLOSE FILE *f = NULL;
	unsigned long long a, b;

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f) || sscanf(line, "%*d %*x %*x %*x %*x %*x %*x %llx %llx", &a, &b) != 2)
		return false;
	*sp = a;
	*pc = b;
	return true;
}

static void test_read(void **state)
{
	struct sample_regs regs = { 0 };
	struct sample_record record = { .flags = SAMPLE_ASLEEP };
	struct wait_info wait = { .since_ns = 1000 };
	const struct pending_sample s = { .record = &record, .wait = &wait, .regs = &regs };
	struct asleep_sample asleep;
	pthread_t thread;

	(void)state;
	if (access("/proc/self/syscall", R_OK))
		skip();
	assert_int_equal(pipe(wake), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleeper, &record), 0);
	while (!sleeper_tid || !find_place(sleeper_tid, &regs.regs[REG_SP], &regs.regs[REG_PC]))
		usleep(1000);
	record.tid = (uint32_t)sleeper_tid;
	assert_true(wait_stacks_read(stacks, &s, false, &asleep));
	assert_int_equal(asleep.sample.area_cnt, 1);
	assert_int_equal(asleep.area.addr, regs.regs[REG_SP] - RED_ZONE_BYTES);
	assert_memory_equal(asleep.area.data, (const void *)asleep.area.addr,
			    4096 < asleep.area.bytes ? 4096 : asleep.area.bytes);
	assert_false(asleep.record.flags & SAMPLE_LIMITED);
	regs.regs[REG_SP] += 8; /* it sleeps elsewhere by now */
	assert_false(wait_stacks_read(stacks, &s, false, &asleep));
	assert_true(!asleep.sample.area_cnt && asleep.record.flags & SAMPLE_LIMITED);
	assert_int_equal(write(wake[1], "x", 1), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(wait_stacks_read(stacks, &s, true, &asleep));
	close(wake[0]);
	close(wake[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_trim, make, destroy),
		cmocka_unit_test_setup_teardown(test_waker, make, destroy),
		cmocka_unit_test_setup_teardown(test_kept, make, destroy),
		cmocka_unit_test_setup_teardown(test_read, make, destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
