/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which things come out, stacks put together from chunks, and records that make no sense. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/samples/reorder.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

enum { CPUS = 4, MAX_AREAS = 4, MAX_OUT = 4096 };

static struct pending *p;

static int make(void **state)
{
	(void)state;
	return pending_new(CPUS, &p);
}

static int destroy(void **state)
{
	(void)state;
	pending_free(p);
	return 0;
}

/* --- records --- */

struct sample {
	struct sample_record r;
	uint64_t words[2 + 8 + 1 + sizeof(struct sample_regs) / 8];
};

/* A sample with @kernel_cnt and @user_cnt frames numbered from 1, and registers behind them when asked. */
static struct sample make_sample(uint64_t time_ns, uint32_t cpu, uint32_t seq, uint16_t kernel_cnt, uint16_t user_cnt,
				 bool has_regs)
{
	struct sample s = { .r = { .hdr = { .kind = RECORD_SAMPLE,
					    .version = RECORD_VERSION,
					    .time_ns = time_ns,
					    .cpu = cpu,
					    .seq = seq },
				   .pid = seq,
				   .end = END_ROOT } };
	struct sample_regs regs = { .start_boottime_ns = 11, .exec_id = 12, .regs = { 13 } };
	uint32_t at = 0;

	s.words[at++] = SECTION(SECTION_KERNEL, kernel_cnt * 8);
	for (uint32_t i = 0; i < kernel_cnt; i++)
		s.words[at++] = 1 + i;
	s.words[at++] = SECTION(SECTION_USER, user_cnt * 8);
	for (uint32_t i = 0; i < user_cnt; i++)
		s.words[at++] = 1 + kernel_cnt + i;
	if (has_regs) {
		s.words[at++] = SECTION(SECTION_REGS, sizeof(regs));
		memcpy(&s.words[at], &regs, sizeof(regs));
		at += sizeof(regs) / 8;
	}
	s.r.hdr.size = (uint32_t)(sizeof(s.r) + at * 8);
	return s;
}

static int add_chunk(uint32_t cpu, uint32_t seq, uint64_t addr, uint32_t len)
{
	struct stack_chunk c = { .hdr = { .kind = RECORD_STACK_CHUNK, .version = RECORD_VERSION, .cpu = cpu, .seq = seq },
				 .addr = addr,
				 .len = len };

	c.hdr.size = CHUNK_HEAD_BYTES + len;
	for (uint32_t i = 0; i < len && i < sizeof(c.data); i++)
		c.data[i] = (uint8_t)((addr + i) * 7 >> 3);
	return pending_add(p, &c.hdr);
}

static int add_sample(uint64_t time_ns, uint32_t cpu, uint32_t seq, uint16_t chunk_cnt)
{
	struct sample s = make_sample(time_ns, cpu, seq, 1, 2, chunk_cnt > 0);

	s.r.chunk_cnt = chunk_cnt;
	return pending_add(p, &s.r.hdr);
}

/* An object of @bytes of content. */
static int add_object(uint64_t time_ns, uint32_t cpu, uint32_t pid, uint16_t bytes)
{
	AUTO_FREE struct object_record *o = calloc(1, sizeof(*o) + bytes);

	assert_non_null(o);
	*o = (struct object_record){ .hdr = { .kind = RECORD_OBJECT,
					      .version = RECORD_VERSION,
					      .size = (uint32_t)sizeof(*o) + bytes,
					      .time_ns = time_ns,
					      .cpu = cpu },
				     .pid = pid,
				     .part_bytes = { bytes } };
	memset(o + 1, (int)pid, bytes);
	return pending_add(p, &o->hdr);
}

static void add_side_band(uint64_t time_ns, uint32_t pid)
{
	struct side_band_record *record = calloc(1, sizeof(*record) + 1);

	if (!record)
		abort();
	record->kind = SIDE_BAND_EXIT;
	record->time_ns = time_ns;
	record->pid = pid;
	assert_int_equal(pending_add_side_band(p, record), 0);
}

/* --- what comes out --- */

static struct out {
	uint64_t time_ns[MAX_OUT];
	uint32_t pid[MAX_OUT];
	bool is_sample[MAX_OUT], is_object[MAX_OUT];
	uint32_t count;
	bool is_limited; /* the latest sample */
	uint32_t area_cnt;
	struct stack_area areas[MAX_AREAS];
} out;

static uint32_t not_now; /* the pid whose sample has to wait */

static bool take_sample(void *arg, const struct pending_sample *s)
{
	struct out *o = arg;
	const struct sample_record *r = s->record;

	if (r->pid == not_now)
		return true;
	assert_true(o->count < MAX_OUT);
	o->time_ns[o->count] = r->hdr.time_ns;
	o->pid[o->count] = r->pid;
	o->is_sample[o->count++] = true;
	assert_true(s->kernel_cnt == 1 && s->user_cnt == 2);
	assert_true(s->kernel[0] == 1 && s->user[0] == 2 && s->user[1] == 3);
	assert_int_equal(s->regs != NULL, r->chunk_cnt > 0);
	if (s->regs)
		assert_true(s->regs->start_boottime_ns == 11 && s->regs->exec_id == 12 && s->regs->regs[0] == 13);
	assert_true(s->area_cnt <= MAX_AREAS);
	o->is_limited = r->flags & SAMPLE_LIMITED;
	o->area_cnt = s->area_cnt;
	for (uint32_t a = 0; a < s->area_cnt; a++) {
		const struct stack_area *area = &s->areas[a];

		for (uint64_t i = 0; i < area->bytes; i++)
			assert_int_equal(area->data[i], (uint8_t)((area->addr + i) * 7 >> 3));
		o->areas[a] = *area;
	}
	return false;
}

static void take_side_band(void *arg, const struct side_band_record *record)
{
	struct out *o = arg;

	assert_true(o->count < MAX_OUT);
	o->time_ns[o->count] = record->time_ns;
	o->pid[o->count++] = record->pid;
}

static void take_object(void *arg, const struct object_record *object)
{
	const uint8_t *content = (const void *)(object + 1);
	struct out *o = arg;

	assert_true(o->count < MAX_OUT);
	o->time_ns[o->count] = object->hdr.time_ns;
	o->is_object[o->count] = true;
	o->pid[o->count++] = object->pid;
	for (uint32_t i = 0; i < object->part_bytes[0]; i++)
		assert_int_equal(content[i], (uint8_t)object->pid);
}

static void release(uint64_t before_ns)
{
	static const struct pending_ops ops = { .object = take_object, .sample = take_sample, .side_band = take_side_band };

	memset(&out, 0, sizeof(out));
	pending_release(p, before_ns, &ops, &out);
}

static void test_order(void **state)
{
	(void)state;
	assert_true(pending_is_empty(p));
	add_side_band(30, 1);
	assert_int_equal(add_sample(20, 0, 2, 0), 0);
	assert_int_equal(add_sample(30, 1, 3, 0), 0);
	assert_int_equal(add_sample(10, 2, 4, 0), 0);
	add_side_band(10, 5);
	add_side_band(40, 6);
	assert_int_equal(pending_samples(p), 3);
	release(10);
	assert_int_equal(out.count, 0);
	release(31);
	assert_int_equal(out.count, 5);
	assert_true(out.pid[0] == 5 && !out.is_sample[0]); /* the side band first at the same instant */
	assert_true(out.pid[1] == 4 && out.is_sample[1]);
	assert_true(out.pid[2] == 2);
	assert_true(out.pid[3] == 1 && out.pid[4] == 3);
	assert_int_equal(pending_samples(p), 0);
	assert_false(pending_is_empty(p));
	release(UINT64_MAX);
	assert_true(out.count == 1 && out.pid[0] == 6);
	assert_true(pending_is_empty(p));
	release(UINT64_MAX);
	assert_int_equal(out.count, 0);
}

/* One that is not taken holds what is behind it, the side band too, and comes first the next time. */
static void test_waiting(void **state)
{
	(void)state;
	add_side_band(10, 1);
	assert_int_equal(add_sample(20, 0, 2, 0), 0);
	assert_int_equal(add_sample(30, 1, 3, 0), 0);
	add_side_band(40, 4);
	not_now = 3;
	release(UINT64_MAX);
	assert_true(out.count == 2 && out.pid[0] == 1 && out.pid[1] == 2);
	assert_int_equal(pending_samples(p), 1);
	assert_int_equal(add_sample(50, 0, 5, 0), 0);
	release(UINT64_MAX);
	assert_int_equal(out.count, 0);
	assert_int_equal(pending_samples(p), 2);
	not_now = 0;
	release(UINT64_MAX);
	assert_true(out.count == 3 && out.pid[0] == 3 && out.pid[1] == 4 && out.pid[2] == 5);
	assert_true(pending_is_empty(p) && pending_samples(p) == 0);
}

/* Many at few instants: in order of time, side band and objects, as they came, before samples. */
static void test_many(void **state)
{
	(void)state;
	srandom(5);
	for (uint32_t i = 0; i < 3000; i++) {
		uint64_t time_ns = 1 + (uint64_t)random() % 50;

		if (random() % 2)
			add_side_band(time_ns, i);
		else if (random() % 2)
			assert_int_equal(add_object(time_ns, i % CPUS, i, 24), 0);
		else
			assert_int_equal(add_sample(time_ns, i % CPUS, i, 0), 0);
	}
	release(26);
	assert_in_range(out.count, 1, 2999);
	for (uint64_t before = 26, rest = 3000 - out.count;; before = UINT64_MAX) {
		for (uint32_t i = 1; i < out.count; i++) {
			assert_true(out.time_ns[i] >= out.time_ns[i - 1] && out.time_ns[i] < before);
			if (out.time_ns[i] != out.time_ns[i - 1])
				continue;
			assert_true(out.is_sample[i] >= out.is_sample[i - 1]);
			assert_true(out.is_sample[i] != out.is_sample[i - 1] || out.pid[i] > out.pid[i - 1]);
		}
		if (before == UINT64_MAX)
			break;
		release(UINT64_MAX);
		assert_int_equal(out.count, rest);
		assert_true(out.time_ns[0] >= before);
	}
	assert_true(pending_is_empty(p));
}

/* An object comes before the samples of its time, which have frames in it, and behind the mappings that its process had by
 * then. */
static void test_objects(void **state)
{
	(void)state;
	assert_int_equal(add_sample(20, 0, 1, 0), 0);
	assert_int_equal(add_object(20, 1, 2, 100), 0);
	add_side_band(20, 3);
	add_side_band(30, 4);
	assert_int_equal(add_object(30, 1, 5, 0), 0);
	assert_int_equal(add_sample(30, 1, 6, 0), 0);
	assert_int_equal(add_object(30, 2, 7, OBJECT_DATA_BYTES), 0);
	assert_int_equal(add_object(10, 3, 8, 1), 0);
	assert_int_equal(pending_samples(p), 2); /* objects are none */
	release(UINT64_MAX);
	assert_int_equal(out.count, 8);
	for (uint32_t i = 0; i < out.count; i++) {
		static const uint32_t order[] = { 8, 2, 3, 1, 4, 5, 7, 6 };

		assert_int_equal(out.pid[i], order[i]);
		assert_int_equal(out.is_object[i], order[i] == 8 || order[i] == 2 || order[i] == 5 || order[i] == 7);
	}
	assert_true(pending_is_empty(p));
	/* A sample's copied stack is not disturbed by one between its chunks. */
	assert_int_equal(add_chunk(0, 1, 0x5000, 4096), 0);
	assert_int_equal(add_object(1, 0, 9, 8), 0);
	assert_int_equal(add_sample(1, 0, 2, 1), 0);
	release(UINT64_MAX);
	assert_true(out.count == 2 && out.is_object[0] && out.area_cnt == 1 && out.areas[0].bytes == 4096);
	assert_int_equal(add_object(1, 0, 10, 8), 0); /* freed with the rest */
}

static void test_bad_objects(void **state)
{
	struct {
		struct object_record r;
		uint8_t rest[MAX_RECORD_BYTES];
	} *o = calloc(1, sizeof(*o));
	const uint32_t bad[] = { 0, sizeof(struct record), sizeof(o->r) - 1, MAX_RECORD_BYTES + 1, UINT32_MAX };

	(void)state;
	assert_non_null(o);
	o->r.hdr = (struct record){ .kind = RECORD_OBJECT, .version = RECORD_VERSION };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		o->r.hdr.size = bad[i];
		assert_int_equal(pending_add(p, &o->r.hdr), -EBADMSG);
	}
	o->r.hdr.size = sizeof(o->r);
	o->r.hdr.version = RECORD_VERSION - 1;
	assert_int_equal(pending_add(p, &o->r.hdr), -EBADMSG);
	o->r.hdr.version = RECORD_VERSION;
	o->r.hdr.cpu = CPUS;
	assert_int_equal(pending_add(p, &o->r.hdr), -EBADMSG);
	o->r.hdr.cpu = 0;
	assert_true(pending_is_empty(p) && !pending_bytes(p));
	assert_int_equal(pending_add(p, &o->r.hdr), 0);
	o->r.hdr.size = MAX_RECORD_BYTES;
	assert_int_equal(pending_add(p, &o->r.hdr), 0);
	free(o);
	release(UINT64_MAX);
	assert_int_equal(out.count, 2);
}

/* --- stacks --- */

static void check_areas(uint32_t count)
{
	release(UINT64_MAX);
	assert_int_equal(out.count, 1);
	assert_int_equal(out.area_cnt, count);
}

/* One area; none when it has no @bytes. */
static void check_stack(uint64_t addr, uint64_t bytes)
{
	check_areas(bytes > 0);
	assert_int_equal(out.areas[0].addr, addr);
	assert_int_equal(out.areas[0].bytes, bytes);
}

static void test_chunks(void **state)
{
	(void)state;
	/* three chunks, the first and the last not full; those of other CPUs between them */
	assert_int_equal(add_chunk(0, 10, 0x7e00, 0x200), 0);
	assert_int_equal(add_chunk(1, 10, 0x1000, 4096), 0);
	assert_int_equal(add_chunk(0, 11, 0x8000, 4096), 0);
	assert_int_equal(add_chunk(0, 12, 0x9000, 24), 0);
	assert_int_equal(pending_samples(p), 0);
	assert_true(pending_is_empty(p));
	assert_int_equal(add_sample(1, 0, 13, 3), 0);
	check_stack(0x7e00, 0x200 + 4096 + 24);
	assert_false(out.is_limited);
	assert_int_equal(add_sample(2, 1, 11, 1), 0);
	check_stack(0x1000, 4096);

	/* the sample of the first two was lost */
	assert_int_equal(add_chunk(0, 14, 0x5000, 4096), 0);
	assert_int_equal(add_chunk(0, 15, 0x6000, 4096), 0);
	assert_int_equal(add_chunk(0, 17, 0x6000, 8), 0);
	assert_int_equal(add_sample(3, 0, 18, 1), 0);
	check_stack(0x6000, 8);
	assert_int_equal(add_chunk(0, 19, 0x5000, 8), 0);
	assert_int_equal(add_sample(4, 0, 21, 0), 0);
	check_stack(0, 0);

	/* nothing is left for the next */
	assert_int_equal(add_sample(5, 0, 22, 3), 0);
	check_stack(0, 0);
	assert_true(out.is_limited);

	/* a page in the middle could not be read, or its chunk was lost: two areas */
	assert_int_equal(add_chunk(0, 30, 0x5000, 4096), 0);
	assert_int_equal(add_chunk(0, 32, 0x7000, 4096), 0);
	assert_int_equal(add_sample(6, 0, 33, 3), 0);
	check_areas(2);
	assert_true(out.is_limited);
	assert_true(out.areas[0].addr == 0x5000 && out.areas[0].bytes == 4096);
	assert_true(out.areas[1].addr == 0x7000 && out.areas[1].bytes == 4096);

	/* a second stack, below the first */
	assert_int_equal(add_chunk(0, 40, 0x9800, 2048), 0);
	assert_int_equal(add_chunk(0, 41, 0xa000, 4096), 0);
	assert_int_equal(add_chunk(0, 42, 0x2010, 4096 - 16), 0);
	assert_int_equal(add_chunk(0, 43, 0x3000, 8), 0);
	assert_int_equal(add_sample(6, 0, 44, 4), 0);
	check_areas(2);
	assert_true(out.areas[0].addr == 0x2010 && out.areas[0].bytes == 4096 - 8);
	assert_true(out.areas[1].addr == 0x9800 && out.areas[1].bytes == 2048 + 4096);
	assert_ptr_equal(stack_area_find(out.areas, 2, 0x9800, 8), &out.areas[1]);
	assert_ptr_equal(stack_area_find(out.areas, 2, 0xaff8, 8), &out.areas[1]);
	assert_ptr_equal(stack_area_find(out.areas, 2, 0x3000, 8), &out.areas[0]);
	assert_null(stack_area_find(out.areas, 2, 0xaff9, 8));
	assert_null(stack_area_find(out.areas, 2, 0x97ff, 8));
	assert_null(stack_area_find(out.areas, 2, UINT64_MAX - 3, 8));
	assert_null(stack_area_find(out.areas, 0, 0x9800, 8));

	/* a long stack comes with its ends first */
	assert_int_equal(add_chunk(0, 50, 0x5800, 2048), 0);
	assert_int_equal(add_chunk(0, 51, 0x8000, 4096), 0);
	assert_int_equal(add_chunk(0, 52, 0x6000, 4096), 0);
	assert_int_equal(add_chunk(0, 53, 0x7000, 4096), 0);
	assert_int_equal(add_sample(6, 0, 54, 4), 0);
	check_stack(0x5800, 2048 + 3 * 4096);

	/* numbers start again at 0 */
	assert_int_equal(add_chunk(0, UINT32_MAX, 0x5000, 4096), 0);
	assert_int_equal(add_chunk(0, 0, 0x6000, 4096), 0);
	assert_int_equal(add_sample(7, 0, 1, 2), 0);
	check_stack(0x5000, 8192);

	/* as many as there may be */
	for (uint32_t i = 0; i < MAX_STACK_CHUNKS; i++)
		assert_int_equal(add_chunk(3, i, 0x10000 + i * 4096ull, 4096), 0);
	assert_int_equal(add_sample(8, 3, MAX_STACK_CHUNKS, MAX_STACK_CHUNKS), 0);
	check_stack(0x10000, MAX_STACK_CHUNKS * 4096ull);

	/* freed with the rest */
	assert_int_equal(add_chunk(2, 1, 0x5000, 4096), 0);
	assert_int_equal(add_sample(9, 1, 1, 0), 0);
	add_side_band(9, 1);
}

/* What waits is counted until it is let out, chunks whose sample was lost until the next one of their CPU. */
static void test_bytes(void **state)
{
	size_t lost, one;

	(void)state;
	assert_int_equal(pending_bytes(p), 0);
	assert_int_equal(add_chunk(0, 1, 0x1000, 4096), 0);
	lost = pending_bytes(p);
	assert_true(lost > 4096);
	assert_int_equal(add_chunk(1, 1, 0x1000, 100), 0);
	assert_int_equal(add_sample(1, 1, 2, 1), 0);
	assert_true(pending_bytes(p) > lost + 100);
	assert_int_equal(add_sample(2, 0, 3, 0), 0);
	one = pending_bytes(p);
	assert_in_range(one, 1, lost);
	add_side_band(3, 1);
	assert_int_equal(pending_bytes(p), one);
	release(2);
	assert_true(pending_bytes(p) && pending_bytes(p) < one);
	release(UINT64_MAX);
	assert_int_equal(pending_bytes(p), 0);
	one = pending_memory_bytes(p);
	assert_int_equal(add_object(4, 0, 1, 1000), 0);
	assert_in_range(pending_bytes(p), sizeof(struct object_record) + 1000, sizeof(struct object_record) + 1100);
	assert_true(pending_memory_bytes(p) >= one + sizeof(struct object_record) + 1000);
	release(UINT64_MAX);
	assert_int_equal(pending_bytes(p), 0);
	assert_int_equal(pending_memory_bytes(p), one);
}

/* A sample that interrupted another one while that was sent has its own chunks, and numbers of its own. */
static void test_levels(void **state)
{
	struct stack_chunk c = { .hdr = { .kind = RECORD_STACK_CHUNK,
					  .level = 1,
					  .version = RECORD_VERSION,
					  .size = CHUNK_HEAD_BYTES + 8,
					  .seq = 1 },
				 .addr = 0x9000,
				 .len = 8 };
	struct sample s = make_sample(2, 0, 2, 1, 2, true);

	(void)state;
	for (uint32_t i = 0; i < c.len; i++)
		c.data[i] = (uint8_t)((c.addr + i) * 7 >> 3);
	s.r.hdr.level = 1;
	s.r.chunk_cnt = 1;
	assert_int_equal(add_chunk(0, 1, 0x5000, 4096), 0);
	assert_int_equal(pending_add(p, &c.hdr), 0);
	assert_int_equal(pending_add(p, &s.r.hdr), 0);
	assert_int_equal(add_chunk(0, 2, 0x6000, 8), 0);
	assert_int_equal(add_sample(1, 0, 3, 2), 0);
	release(2);
	assert_true(out.area_cnt == 1 && out.areas[0].addr == 0x5000 && out.areas[0].bytes == 4104);
	release(UINT64_MAX);
	assert_true(out.area_cnt == 1 && out.areas[0].addr == 0x9000 && out.areas[0].bytes == 8);
}

/* --- nonsense --- */

static void test_bad_samples(void **state)
{
	static const struct {
		const char *name;
		size_t field, bytes;
		uint32_t value;
	} bad[] = {
#define FIELD(f) offsetof(struct sample_record, f), sizeof(((struct sample_record *)NULL)->f)
		{ "kind 0", FIELD(hdr.kind), 0 },
		{ "kind 4", FIELD(hdr.kind), 4 },
		{ "version 0", FIELD(hdr.version), 0 },
		{ "a later version", FIELD(hdr.version), RECORD_VERSION + 1 },
		{ "size 0", FIELD(hdr.size), 0 },
		{ "shorter than its head", FIELD(hdr.size), sizeof(struct sample_record) - 1 },
		{ "shorter than its frames", FIELD(hdr.size), sizeof(struct sample_record) + 3 * 8 },
		{ "huge", FIELD(hdr.size), UINT32_MAX },
		{ "end", FIELD(end), END_MAX },
		{ "CPU", FIELD(hdr.cpu), CPUS },
		{ "no CPU", FIELD(hdr.cpu), UINT32_MAX },
		{ "level", FIELD(hdr.level), MAX_LEVELS },
#undef FIELD
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct sample s = make_sample(1, 0, 1, 1, 2, true);

		print_message("%s\n", bad[i].name);
		memcpy((uint8_t *)&s + bad[i].field, &bad[i].value, bad[i].bytes);
		assert_int_equal(pending_add(p, &s.r.hdr), -EBADMSG);
		assert_true(pending_is_empty(p) && pending_samples(p) == 0);
	}
	/* A sample that is none takes its chunks with it. */
	for (int is_bad = 1; is_bad >= 0; is_bad--) {
		struct sample s = make_sample(1, 0, 2, 1, 2, true);

		assert_int_equal(add_chunk(0, 1, 0x5000, 4096), 0);
		s.r.chunk_cnt = 1;
		s.r.end = is_bad ? END_MAX : END_ROOT;
		assert_int_equal(pending_add(p, &s.r.hdr), is_bad ? -EBADMSG : 0);
		s.r.end = END_ROOT;
		assert_int_equal(pending_add(p, &s.r.hdr), 0);
		release(UINT64_MAX);
		assert_int_equal(out.count, is_bad ? 1 : 2);
		assert_int_equal(out.area_cnt, 0); /* of the latest */
	}
}

/* A section of a later version: the sample counts all the same, and so does what was passed over of it. */
static void test_unknown_sections(void **state)
{
	struct sample s = make_sample(1, 0, 1, 1, 2, false);

	(void)state;
	s.words[5] = SECTION(UINT16_MAX - 1, 0);
	s.words[6] = SECTION(UINT16_MAX, 5);
	s.r.hdr.size += 3 * 8;
	assert_int_equal(pending_add(p, &s.r.hdr), 0);
	assert_int_equal(pending_unknown_sections(p), 2);
	release(UINT64_MAX);
	assert_int_equal(out.count, 1);
	assert_int_equal(add_sample(2, 0, 2, 0), 0);
	assert_int_equal(pending_unknown_sections(p), 2);
}

static void test_bad_chunks(void **state)
{
	struct stack_chunk bad = { .hdr = { .kind = RECORD_STACK_CHUNK, .version = RECORD_VERSION }, .len = 8 };
	const uint32_t sizes[] = { CHUNK_HEAD_BYTES - 1, sizeof(struct record), CHUNK_HEAD_BYTES + 7 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		bad.hdr.size = sizes[i];
		assert_int_equal(pending_add(p, &bad.hdr), -EBADMSG);
	}
	assert_int_equal(add_chunk(0, 1, 0x5000, STACK_CHUNK_BYTES + 1), -EBADMSG);
	assert_int_equal(add_chunk(0, 1, 0x5000, UINT32_MAX), -EBADMSG);
	assert_int_equal(add_chunk(CPUS, 1, 0x5000, 8), -EBADMSG);
	assert_int_equal(add_chunk(0, 2, 0x5000, 0), 0);
	assert_int_equal(add_chunk(0, 3, 0x5000, 8), 0);
	assert_int_equal(add_sample(1, 0, 4, 3), 0);
	check_stack(0x5000, 8);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, make, destroy),
		cmocka_unit_test_setup_teardown(test_waiting, make, destroy),
		cmocka_unit_test_setup_teardown(test_many, make, destroy),
		cmocka_unit_test_setup_teardown(test_objects, make, destroy),
		cmocka_unit_test_setup_teardown(test_bad_objects, make, destroy),
		cmocka_unit_test_setup_teardown(test_chunks, make, destroy),
		cmocka_unit_test_setup_teardown(test_bytes, make, destroy),
		cmocka_unit_test_setup_teardown(test_levels, make, destroy),
		cmocka_unit_test_setup_teardown(test_bad_samples, make, destroy),
		cmocka_unit_test_setup_teardown(test_unknown_sections, make, destroy),
		cmocka_unit_test_setup_teardown(test_bad_chunks, make, destroy),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
