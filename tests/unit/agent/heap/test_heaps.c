/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps of Go programs: which processes are read, what is told of the buckets that their reader answers with, and how large
 * it is. The reader, the table of processes and the traces are stood in for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/heap/heaps.h"
#include "agent/helper/code_service.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "tests/unit/agent/heap/proc_stand_in.h"
#include "tests/unit/descriptors.h"

enum { KIND = 2, REPLIES = 9, ADDED = 16, NUMBER = 70 };

/* --- the parts around it --- */

static struct file program = { .id = 1,
			       .path = (char *)"/p",
			       .info = { .runtime = { .go_heap = { .buckets = 0x100, .rate = 0x200 } } } };
static struct file other = { .id = 2, .path = (char *)"/lib" };
static struct mapping maps[] = { { .bias = 0 }, { .bias = 0x10, .file = &other }, { .bias = 0x1000, .file = &program } };
static struct address_space space = { .asid = 9, .maps = maps, .count = ARRAY_LEN(maps) };
static struct process processes[2];
static uint32_t process_cnt;
static int held;       /* references to processes and files */
static bool is_chosen; /* by the filters for pids */

static struct {
	struct buf text;
	int status;
} replies[REPLIES];
static uint32_t reply_cnt, asked_cnt, ahead_cnt;
static struct go_heap_request asked[REPLIES];

static struct {
	uint16_t kind;
	uint64_t value, more[2 * HEAP_KINDS], user[4];
	uint32_t more_cnt, count;
	const struct process *process;
} added[ADDED];
static uint32_t added_cnt;

uint32_t code_spaces_take_number(struct code_spaces *cs)
{
	(void)cs;
	return NUMBER;
}

int code_spaces_read(struct code_spaces *cs, uint32_t number, int memory_fd, const struct code_request *what,
		     const void *more, size_t more_bytes, const struct buf **reply_ret)
{
	(void)cs;
	assert_int_equal(number, NUMBER);
	assert_true(memory_fd > 0);
	assert_int_equal(what->op, CODE_OP_HEAP);
	assert_int_equal(more_bytes, sizeof(asked[0]));
	assert_true(asked_cnt < reply_cnt);
	memcpy(&asked[asked_cnt], more, more_bytes);
	*reply_ret = &replies[asked_cnt].text;
	return replies[asked_cnt++].status;
}

bool sampler_filter_has(const struct sampler *s, uint32_t pid)
{
	(void)s, (void)pid;
	return is_chosen;
}

void processes_each(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg)
{
	(void)ps;
	for (uint32_t i = 0; i < process_cnt; i++)
		fn(arg, &processes[i]);
}

struct process *process_get(struct process *p)
{
	held++;
	return p;
}

void process_put(struct process *p)
{
	assert_non_null(p);
	held--;
}

struct file *file_get(struct file *file)
{
	held++;
	return file;
}

void file_put(struct file *file)
{
	assert_ptr_equal(file, &program);
	held--;
}

void intake_read_ahead(struct intake *in)
{
	(void)in;
	ahead_cnt++;
}

bool intake_add(struct intake *in, struct process *p, const struct pending_sample *s, const uint64_t *user, uint32_t count,
		enum walk_end end)
{
	(void)in;
	assert_true(added_cnt < ADDED && count <= 4 && s->more_cnt < HEAP_KINDS);
	assert_int_equal(end, END_ROOT);
	assert_int_equal(s->record->end, END_ROOT);
	assert_int_equal(s->record->pid, p->pid);
	assert_int_equal(s->record->tid, p->pid);
	assert_int_equal(s->record->asid, 9);
	assert_int_equal(s->record->hdr.kind, RECORD_SAMPLE);
	assert_string_equal(s->record->comm, p->comm);
	assert_true(s->is_logical && s->user == user && s->user_cnt == count && s->record->hdr.time_ns);
	added[added_cnt].kind = s->record->kind;
	added[added_cnt].value = s->value;
	added[added_cnt].more_cnt = s->more_cnt;
	added[added_cnt].process = p;
	added[added_cnt].count = count;
	memcpy(added[added_cnt].more, s->more, 16 * s->more_cnt);
	memcpy(added[added_cnt++].user, user, 8 * count);
	return true;
}

/* --- a session --- */

static struct intake in;
static struct metrics *metrics;
static struct heaps *heaps;

static uint64_t ticks(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &t), 0);
	return (uint64_t)t.tv_sec * (uint64_t)sysconf(_SC_CLK_TCK);
}

static struct process process_of(uint32_t pid, const char *comm)
{
	struct process p = { .pid = pid, .as = &space };

	snprintf(p.comm, sizeof(p.comm), "%s", comm);
	return p;
}

static void begin_with(bool only_sampled, bool at_end)
{
	heaps_free(heaps);
	memset(&in, 0, sizeof(in));
	processes[0] = process_of((uint32_t)getpid(), "gopher");
	processes[1] = process_of((uint32_t)getpid(), "mole");
	process_cnt = 1;
	is_chosen = false;
	born_ticks = ticks() + 1000;
	program.is_unread = false;
	assert_int_equal(heaps_new(&in, KIND, only_sampled, at_end, metrics, &heaps), 0);
}

static int begin(void **state)
{
	(void)state;
	metrics = metrics_new();
	assert_non_null(metrics);
	begin_with(false, false);
	return 0;
}

static int end(void **state)
{
	(void)state;
	heaps_free(heaps);
	heaps = NULL;
	heaps_free(NULL);
	metrics_free(metrics);
	for (uint32_t i = 0; i < REPLIES; i++) {
		buf_fini(&replies[i].text);
		replies[i].text = BUF_EMPTY;
	}
	assert_int_equal(held, 0);
	return 0;
}

static struct counted {
	const char *name;
	uint64_t value;
} counted;

static void count(void *arg, const char *name, const char *labels, uint64_t value)
{
	(void)arg, (void)labels;
	if (!strcmp(name, counted.name))
		counted.value = value;
}

static uint64_t metric_of(const char *name)
{
	counted = (struct counted){ .name = name, .value = UINT64_MAX };
	metrics_each(metrics, count, NULL);
	return counted.value;
}

static void reader_says(uint64_t rate, uint64_t next, uint64_t is_known, uint32_t torn_cnt)
{
	const struct go_heap_head head = { .rate = rate, .next = next, .is_known = is_known, .torn_cnt = torn_cnt };

	assert_true(reply_cnt < REPLIES);
	replies[reply_cnt].status = 0;
	buf_reset(&replies[reply_cnt].text);
	buf_append(&replies[reply_cnt++].text, &head, sizeof(head));
}

static void bucket(uint64_t addr, uint64_t size, uint64_t allocs, uint64_t old_allocs, uint64_t frees, uint32_t depth)
{
	const struct go_heap_bucket b = {
		.addr = addr, .size = size, .allocs = allocs, .old_allocs = old_allocs, .frees = frees, .stack_cnt = depth
	};
	struct buf *text = &replies[reply_cnt - 1].text;

	((struct go_heap_head *)(void *)text->data)->count++;
	buf_append(text, &b, sizeof(b));
	for (uint64_t i = 0; i < depth; i++)
		buf_append(text, &(uint64_t){ addr + i }, 8);
	assert_false(text->failed);
}

static void reader_fails(int error)
{
	reader_says(1, 0, 0, 0);
	replies[reply_cnt - 1].status = error;
}

static void read_at(enum heaps_moment moment)
{
	asked_cnt = added_cnt = ahead_cnt = 0;
	heaps_read(heaps, moment);
	assert_int_equal(asked_cnt, reply_cnt); /* all was asked for */
	reply_cnt = 0;
}

/* Sample number @i has these values, in the order of enum heap_kind; 0: none. */
static void told(uint32_t i, uint64_t allocs, uint64_t alloc_bytes, uint64_t used, uint64_t used_bytes)
{
	const uint64_t wanted[HEAP_KINDS] = { allocs, alloc_bytes, used, used_bytes };
	uint32_t n = 0;

	assert_true(i < added_cnt);
	for (uint16_t k = 0; k < HEAP_KINDS; k++) {
		if (!wanted[k])
			continue;
		assert_int_equal(n ? added[i].more[2 * n - 2] : added[i].kind, KIND + k);
		assert_int_equal(n ? added[i].more[2 * n - 1] : added[i].value, wanted[k]);
		n++;
	}
	assert_int_equal(added[i].more_cnt + 1, n);
}

/* --- tests --- */

static void allocations_since_the_last_report_are_told(void **state)
{
	(void)state;
	reader_says(1, 0, 0, 0);
	bucket(0x40, 8, 10, 9, 2, 3);
	read_at(HEAPS_BEGIN);
	assert_int_equal(added_cnt, 0);
	assert_int_equal(asked[0].buckets, 0x1100);
	assert_int_equal(asked[0].rate, 0x1200);
	assert_true(!asked[0].from && !asked[0].known && !asked[0].is_known);
	reader_says(1, 0, 0, 0);
	bucket(0x80, 100, 1, 0, 0, 2); /* new, and before it */
	bucket(0x40, 8, 15, 12, 2, 0);
	read_at(HEAPS_GO_ON);
	assert_int_equal(asked[0].known, 0x40);
	assert_int_equal(added_cnt, 2);
	told(0, 5, 40, 10, 80);
	assert_int_equal(added[0].count, 3);
	assert_true(added[0].user[0] == 0x40 && added[0].user[2] == 0x42);
	told(1, 1, 100, 0, 0);
	assert_int_equal(added[1].count, 2);
	assert_true(added[1].user[0] == 0x80 && added[1].user[1] == 0x81);
	assert_int_equal(in.counts.made[KIND + HEAP_ALLOC_OBJECTS].samples, 2);
	assert_int_equal(in.counts.made[KIND + HEAP_ALLOC_OBJECTS].value, 6);
	assert_int_equal(in.counts.made[KIND + HEAP_ALLOC_SPACE].value, 140);
	assert_int_equal(in.counts.made[KIND + HEAP_INUSE_OBJECTS].samples, 1);
	assert_int_equal(in.counts.made[KIND + HEAP_INUSE_SPACE].value, 80);
	reader_says(1, 0, 0, 0); /* a sum that was seen twice goes back; nothing is in use */
	bucket(0x80, 100, 1, 1, 1, 0);
	bucket(0x40, 8, 14, 14, 14, 0);
	read_at(HEAPS_GO_ON);
	assert_int_equal(asked[0].known, 0x80);
	assert_int_equal(added_cnt, 0);
	reader_says(1, 0, 0, 0);
	bucket(0x40, 8, 17, 14, 13, 0);
	read_at(HEAPS_END);
	assert_int_equal(added_cnt, 1);
	told(0, 2, 16, 1, 8); /* more than 15 */
	assert_true(metric_of("hearth_heap_reads_total") == 4 && metric_of("hearth_heap_refused_total") == 0);
	assert_int_equal(ahead_cnt, 1);
}

/* It is so in runtime/pprof: a sampled allocation stands for 1 / (1 - e^(-size / rate)). */
static void numbers_are_scaled_by_size_and_rate(void **state)
{
	static const struct {
		uint64_t rate, size, count, objects, bytes;
	} cases[] = {
		{ 1, 100, 7, 7, 700 },
		{ 2, 0, 7, 7, 0 },
		{ 1000, 1000, 100, 158, 158198 },
		{ 524288, 16, 3, 98306, 1572888 },
		{ 2, 1, 1000, 2541, 2541 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin_with(false, false);
		reader_says(cases[i].rate, 0, 0, 0);
		bucket(0x40, cases[i].size, cases[i].count, 0, 0, 1);
		read_at(HEAPS_GO_ON);
		told(0, cases[i].objects, cases[i].bytes, 0, 0);
		reader_says(cases[i].rate, 0, 0, 0);
		bucket(0x40, cases[i].size, cases[i].count, cases[i].count, 0, 0);
		read_at(HEAPS_GO_ON);
		told(0, 0, 0, cases[i].objects, cases[i].bytes);
	}
}

static void memory_in_use_is_told_at_the_end_if_so_wanted(void **state)
{
	(void)state;
	begin_with(false, true);
	reader_says(1, 0, 0, 0);
	bucket(0x40, 8, 10, 10, 4, 1);
	read_at(HEAPS_GO_ON);
	told(0, 10, 80, 0, 0);
	reader_says(1, 0, 0, 0);
	bucket(0x40, 8, 11, 11, 4, 0);
	read_at(HEAPS_END);
	told(0, 1, 8, 7, 56);
	processes[0].has_exited = true; /* told when it is gone, of the last read */
	read_at(HEAPS_GO_ON);
	assert_int_equal(added_cnt, 1);
	told(0, 0, 0, 7, 56);
	assert_int_equal(held, 0);
	read_at(HEAPS_GO_ON);
	assert_int_equal(added_cnt, 0);
	/* and at the end of one that cannot be read any more */
	begin_with(false, true);
	reader_says(1, 0, 0, 0);
	bucket(0x40, 8, 10, 10, 4, 1);
	read_at(HEAPS_GO_ON);
	reader_fails(-ETIMEDOUT);
	read_at(HEAPS_END);
	told(0, 0, 0, 6, 48);
	begin_with(false, false);
	reader_says(1, 0, 0, 0);
	bucket(0x40, 8, 10, 10, 4, 1);
	read_at(HEAPS_GO_ON);
	reader_fails(-ETIMEDOUT);
	read_at(HEAPS_END);
	assert_int_equal(added_cnt, 0);
	processes[0].has_exited = true; /* without that nothing is told behind its back */
	read_at(HEAPS_GO_ON);
	assert_int_equal(added_cnt, 0);
}

/* Of a process that was there before sampling began all up to its first read was before. */
static void of_older_processes_the_first_read_counts_not(void **state)
{
	static const struct {
		int64_t born;
		bool is_old;
	} cases[] = { { -300, true }, { -101, true }, { 0, false }, { 200, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin_with(false, false);
		born_ticks = ticks() + (uint64_t)cases[i].born;
		reader_says(1, 0, 0, 0);
		bucket(0x40, 8, 10, 3, 1, 1);
		read_at(HEAPS_GO_ON);
		told(0, cases[i].is_old ? 0 : 10, cases[i].is_old ? 0 : 80, 2, 16);
		reader_says(1, 0, 0, 0);
		bucket(0x40, 8, 11, 3, 1, 0);
		read_at(HEAPS_GO_ON);
		told(0, 1, 8, 2, 16);
	}
}

static void lists_are_read_on_until_they_end(void **state)
{
	(void)state;
	reader_says(1, 0x300, 0, 2);
	bucket(0x400, 8, 1, 0, 0, 1);
	reader_says(1, 0x200, 1, 3);
	bucket(0x300, 8, 2, 0, 0, 1);
	reader_says(1, 0, 1, 0);
	read_at(HEAPS_GO_ON);
	assert_int_equal(added_cnt, 2);
	assert_true(asked[0].from == 0 && asked[1].from == 0x300 && asked[2].from == 0x200);
	assert_true(asked[1].is_known == 0 && asked[2].is_known == 1);
	assert_int_equal(metric_of("hearth_heap_torn_total"), 5);
	assert_int_equal(metric_of("hearth_heap_left_out_total"), 0);
	for (uint64_t i = 0; i < 8; i++) { /* as often as it may be asked */
		reader_says(1, 0x100 + i, 0, 0);
		bucket(0x500 + i, 8, 1, 0, 0, 1);
	}
	read_at(HEAPS_GO_ON);
	assert_int_equal(added_cnt, 8);
	assert_int_equal(asked[0].known, 0x400);
	assert_int_equal(metric_of("hearth_heap_left_out_total"), 1);
	reader_says(1, 0, 0, 0);
	read_at(HEAPS_GO_ON);
	assert_int_equal(asked[0].known, 0x400); /* not all were read */
}

static void buckets_without_a_stack_or_room_are_left_out(void **state)
{
	enum { DEEPEST = GO_HEAP_STACK, MOST = 1 << 22 };

	(void)state;
	reader_says(1, 0, 0, 0);
	bucket(0x40, 8, 1, 0, 0, 0);
	bucket(0x50, 8, 1, 0, 0, 1);
	read_at(HEAPS_GO_ON);
	assert_int_equal(added_cnt, 1);
	assert_int_equal(metric_of("hearth_heap_left_out_total"), 1);
	reader_says(1, 0, 0, 0); /* with the one before: no room for the last frame */
	for (uint64_t i = 0; i < MOST / DEEPEST; i++)
		bucket(0x10000 + i, 8, 0, 0, 0, DEEPEST);
	read_at(HEAPS_GO_ON);
	assert_int_equal(metric_of("hearth_heap_left_out_total"), 2);
	reader_says(1, 0, 0, 0);
	bucket(0x60, 8, 0, 0, 0, DEEPEST - 1);
	bucket(0x70, 8, 0, 0, 0, 1);
	read_at(HEAPS_GO_ON);
	assert_int_equal(metric_of("hearth_heap_left_out_total"), 3);
	begin_with(false, false);
	reader_says(1, 0, 0, 0);
	for (uint64_t i = 0; i < (1 << 17) + 1; i++)
		bucket(0x10000 + i, 8, 0, 0, 0, 1);
	read_at(HEAPS_GO_ON);
	assert_int_equal(metric_of("hearth_heap_left_out_total"), 4);
}

static void heaps_that_cannot_be_read_are_asked_once_or_met_anew(void **state)
{
	(void)state;
	reader_says(1, 0, 0, 0);
	bucket(0x40, 8, 1, 0, 0, 1);
	bucket(0x50, 8, 1, 0, 0, 1);
	bucket(0x40, 8, 1, 0, 0, 0); /* no list */
	read_at(HEAPS_GO_ON);
	assert_int_equal(added_cnt, 0);
	assert_int_equal(metric_of("hearth_heap_refused_total"), 1);
	read_at(HEAPS_GO_ON);
	assert_int_equal(ahead_cnt, 0);
	assert_int_equal(metric_of("hearth_heap_refused_total"), 1);
	for (int i = 0; i < 2; i++) {
		begin_with(false, false);
		reader_fails(i ? -ESRCH : -EFAULT); /* another program, or gone: met anew */
		read_at(HEAPS_GO_ON);
		assert_int_equal(metric_of("hearth_heap_refused_total"), 2 + i);
		assert_int_equal(held, 2);
		reader_says(1, 0, 0, 0);
		bucket(0x40, 8, 1, 0, 0, 1);
		read_at(HEAPS_GO_ON);
		told(0, 1, 8, 0, 0);
		assert_int_equal(held, 2);
	}
	begin_with(false, false);
	processes[0].pid = 1 << 30; /* no such memory */
	read_at(HEAPS_GO_ON);
	assert_int_equal(held, 0);
}

static void programs_without_samples_are_counted_once(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		reader_says(0, 0, 0, 0);
		read_at(HEAPS_GO_ON);
	}
	assert_int_equal(metric_of("hearth_heap_silent_total"), 1);
	reader_says(1, 0, 0, 0);
	bucket(0x40, 8, 1, 0, 0, 1);
	read_at(HEAPS_GO_ON);
	told(0, 1, 8, 0, 0);
}

static void chosen_processes_with_a_go_program_are_read(void **state)
{
	static const struct {
		bool only_sampled, is_met, is_chosen, has_exited, is_outside, is_unread, is_read;
	} cases[] = {
		{ .is_read = true },
		{ .has_exited = true },
		{ .is_outside = true },
		{ .is_unread = true },
		{ .only_sampled = true },
		{ .only_sampled = true, .is_met = true, .is_read = true },
		{ .only_sampled = true, .is_chosen = true, .is_read = true },
		{ .only_sampled = true, .is_met = true, .has_exited = true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin_with(cases[i].only_sampled, false);
		processes[0].is_met = cases[i].is_met;
		processes[0].has_exited = cases[i].has_exited;
		processes[0].is_outside = cases[i].is_outside;
		is_chosen = cases[i].is_chosen;
		program.is_unread = cases[i].is_unread;
		if (cases[i].is_read)
			reader_says(1, 0, 0, 0);
		read_at(HEAPS_GO_ON);
		assert_int_equal(held, cases[i].is_read ? 2 : 0);
	}
	begin_with(false, false);
	program.code = (void *)&space;
	read_at(HEAPS_GO_ON);
	program.code = NULL;
}

static void each_process_and_place_has_its_heap(void **state)
{
	(void)state;
	process_cnt = 2;
	for (int i = 0; i < 2; i++) {
		reader_says(1, 0, 0, 0);
		bucket(0x40, 8, 1, 0, 0, 1);
	}
	read_at(HEAPS_GO_ON);
	assert_int_equal(added_cnt, 2);
	assert_ptr_not_equal(added[0].process, added[1].process);
	assert_int_equal(ahead_cnt, 2);
	assert_int_equal(held, 4);
	process_cnt = 1;
	reader_says(1, 0, 0, 0);
	bucket(0x40, 8, 3, 0, 0, 0);
	read_at(HEAPS_GO_ON);
	assert_int_equal(held, 2);
	told(0, 2, 16, 0, 0);
	assert_ptr_equal(added[0].process, &processes[0]);
	maps[2].bias = 0x2000; /* it has become the same program again */
	reader_says(1, 0, 0, 0);
	bucket(0x40, 8, 5, 0, 0, 1);
	read_at(HEAPS_GO_ON);
	assert_int_equal(asked[0].buckets, 0x2100);
	assert_int_equal(asked[0].known, 0);
	told(0, 5, 40, 0, 0);
	assert_int_equal(held, 2);
	maps[2].bias = 0x1000;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(allocations_since_the_last_report_are_told, begin, end),
		cmocka_unit_test_setup_teardown(numbers_are_scaled_by_size_and_rate, begin, end),
		cmocka_unit_test_setup_teardown(memory_in_use_is_told_at_the_end_if_so_wanted, begin, end),
		cmocka_unit_test_setup_teardown(of_older_processes_the_first_read_counts_not, begin, end),
		cmocka_unit_test_setup_teardown(lists_are_read_on_until_they_end, begin, end),
		cmocka_unit_test_setup_teardown(buckets_without_a_stack_or_room_are_left_out, begin, end),
		cmocka_unit_test_setup_teardown(heaps_that_cannot_be_read_are_asked_once_or_met_anew, begin, end),
		cmocka_unit_test_setup_teardown(programs_without_samples_are_counted_once, begin, end),
		cmocka_unit_test_setup_teardown(chosen_processes_with_a_go_program_are_read, begin, end),
		cmocka_unit_test_setup_teardown(each_process_and_place_has_its_heap, begin, end),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
