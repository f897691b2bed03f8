/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings that fill while something else takes long: what they have is kept, and applied later as if nobody had waited. The
 * kernel's rings and the side band are stood in for here.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/process/restless.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/unit/agent/feed_rings.h"
#include "tests/unit/descriptors.h"

/* A sample of kernel code into the ring, if there is room. */
static void take_sample(void)
{
	uint32_t seq = rings.seq++;

	if (rings.count == RING_RECORDS) {
		rings.lost++;
		return;
	}
	rings.ring[rings.count].sample = (struct sample_record){
		.hdr = { .kind = RECORD_SAMPLE,
			 .version = RECORD_VERSION,
			 .size = sizeof(rings.ring[0]),
			 .time_ns = clock_mono_ns(),
			 .seq = seq },
		.pid = PID,
		.tid = seq,
		.end = END_NONE,
	};
	rings.ring[rings.count].section = SECTION(SECTION_KERNEL, 8);
	rings.ring[rings.count++].kernel[0] = UINT64_MAX << 47 | seq;
}

static void tell_name(const char *name)
{
	struct side_band_record *r = calloc(1, sizeof(*r) + COMM_BYTES);

	if (!r)
		abort();
	r->kind = SIDE_BAND_COMM;
	r->time_ns = clock_mono_ns();
	r->pid = r->tid = PID;
	strncpy(r->name, name, COMM_BYTES - 1);
	assert_null(rings.told);
	rings.told = r;
}

/* Ten samples a turn into rings that hold sixteen, and in each turn somebody who takes long lets them be read. */
static void test_kept(void **state)
{
	const struct trace_event *events;

	(void)state;
	assert_non_null(processes_find(in.processes, PID));
	for (int step = 0; step < STEPS; step++) {
		char name[COMM_BYTES];

		snprintf(name, sizeof(name), "step %d", step);
		tell_name(name);
		for (int i = 0; i < 10; i++)
			take_sample();
		usleep(1100); /* more often is not worth it */
		intake_read_ahead(&in);
		if (step == STEPS / 2) { /* what is applied half-way is older than what is kept later */
			intake_run(&in);
			assert_true(intake_is_done(&in));
		}
	}
	take_sample(); /* in the ring when it is read next */
	assert_int_equal(rings.lost, 0);
	assert_false(intake_is_done(&in));
	intake_run_all(&in);
	assert_true(intake_is_done(&in));
	assert_string_equal(processes_peek(in.processes, PID)->comm, "step 199");
	assert_int_equal(traces_event_count(in.traces), rings.seq);
	events = traces_events(in.traces);
	for (uint32_t i = 0; i < rings.seq; i++)
		assert_int_equal(events[i].tid, i);
	for (int i = 0; i < LOSS_MAX; i++)
		assert_int_equal(in.counts.lost[i][0].samples, 0);
}

/* One process's copied stacks take up their part of what is kept; those of another one still have room, and so have its
 * samples. */
static void test_flood(void **state)
{
	enum { MANY = 4000, FEW = 100 };
	struct stack_chunk chunk = { .hdr = { .kind = RECORD_STACK_CHUNK, .version = RECORD_VERSION, .size = sizeof(chunk) },
				     .len = STACK_CHUNK_BYTES,
				     .pid = PID };
	uint64_t lost;

	(void)state;
	rings.flood = &chunk.hdr;
	rings.flood_count = MANY;
	intake_keep_samples(&in);
	lost = in.counts.chunks_not_kept;
	assert_in_range(MANY - lost, (7 << 20) / sizeof(chunk), (8 << 20) / sizeof(chunk));
	take_sample();
	chunk.pid = PID + 1;
	rings.flood = &chunk.hdr;
	rings.flood_count = FEW;
	intake_keep_samples(&in);
	assert_int_equal(in.counts.chunks_not_kept, lost);
	assert_int_equal(in.counts.lost[LOSS_WAITING][0].samples, 0);
	intake_run_all(&in);
	assert_int_equal(traces_event_count(in.traces), 1);
	chunk.pid = PID; /* all was applied: there is room again */
	rings.flood = &chunk.hdr;
	rings.flood_count = FEW;
	intake_keep_samples(&in);
	assert_int_equal(in.counts.chunks_not_kept, lost);
}

/* Samples have more room than copied stacks; those for which there is none are lost by a name of its own. */
static void test_flood_of_samples(void **state)
{
	enum { MANY = 4000 };
	union {
		struct sample_record sample;
		uint8_t room[STACK_CHUNK_BYTES];
	} record = { .sample = { .hdr = { .kind = RECORD_SAMPLE, .version = RECORD_VERSION, .size = sizeof(record) },
				 .pid = PID } };
	uint64_t lost;

	(void)state;
	rings.flood = &record.sample.hdr;
	rings.flood_count = MANY;
	intake_keep_samples(&in);
	lost = in.counts.lost[LOSS_WAITING][0].samples;
	assert_in_range(MANY - lost, (9 << 20) / sizeof(record), (10 << 20) / sizeof(record));
	assert_int_equal(in.counts.chunks_not_kept, 0);
	assert_int_equal(in.counts.lost[LOSS_MEMORY][0].samples, 0);
}

/* Counts @count records of @p, all at @time_ns; returns how many of them are to be passed over. */
static uint32_t count_maps(struct process *p, uint32_t count, uint64_t time_ns, uint32_t *began)
{
	uint32_t passed = 0;

	for (uint32_t i = 0; i < count; i++) {
		bool is_first;

		passed += restless_count(p, time_ns, &is_first);
		*began += is_first;
	}
	return passed;
}

/* Who maps code without end has no mappings, whatever is told of them, until a second was calm; then those of /proc. */
static void test_restless(void **state)
{
	struct processes *ps = in.processes;
	struct process *p = processes_renew(ps, (uint32_t)getpid()), *changed;
	struct side_band_record map = {
		.kind = SIDE_BAND_MMAP, .pid = p->pid, .tid = p->pid, .start = 0x10000, .end = 0x20000
	};
	const uint64_t second = NSEC_PER_SEC, half = second / 2;
	uint32_t began = 0, mappings = p->as->count, asid = p->as->asid;

	(void)state;
	assert_int_not_equal(mappings, 0);
	for (uint64_t s = 1; s <= 3; s++)
		assert_int_equal(count_maps(p, RESTLESS_MAPS_A_SECOND, s * second, &began), 0);
	assert_int_equal(count_maps(p, 10, 3 * second + half, &began), 10);
	assert_int_equal(began, 1);
	assert_true(p->is_restless);
	assert_int_equal(p->as->count, 0);
	assert_int_not_equal(p->as->asid, asid);
	assert_int_equal(processes_apply(ps, &map, &changed), 0);
	assert_int_equal(process_reread(ps, p), 0);
	assert_int_equal(p->as->count, 0);
	assert_int_equal(restless_ends(ps, p, 4 * second + half), 0); /* that second had too many */
	assert_int_equal(count_maps(p, RESTLESS_MAPS_A_SECOND + 1, 4 * second + half, &began), RESTLESS_MAPS_A_SECOND + 1);
	assert_int_equal(count_maps(p, 1, 5 * second + half, &began), 1);
	assert_int_equal(restless_ends(ps, p, 6 * second), 0); /* and so had the one before */
	assert_int_equal(count_maps(p, 1, 6 * second + half, &began), 1);
	assert_int_equal(restless_ends(ps, p, 6 * second + half), 1); /* a few more make no difference */
	assert_false(p->is_restless);
	assert_in_range(p->as->count, 1, mappings + 10);
	assert_int_equal(began, 1);

	assert_int_equal(count_maps(p, RESTLESS_MAPS_A_SECOND + 2, 9 * second, &began), 2);
	assert_int_equal(restless_ends(ps, p, 9 * second + half), 0);
	assert_int_equal(restless_ends(ps, p, 11 * second), 1); /* nothing came any more */
}

/* Mappings without end, however slowly: the kernel tells of none that goes. */
static void test_mappings(void **state)
{
	struct processes *ps = in.processes;
	struct process *p = processes_renew(ps, (uint32_t)getpid());
	uint32_t began = 0;

	(void)state;
	for (uint64_t i = 0; i < 2 * RESTLESS_MAPPINGS; i++) {
		bool is_first = false;

		if (!restless_count(p, NSEC_PER_SEC + i * NSEC_PER_MSEC, &is_first))
			assert_in_range(address_space_map(&p->as, (i + 16) << 13, ((i + 16) << 13) + 4096, 0, NULL), 0, 1);
		assert_true(p->as->count <= RESTLESS_MAPPINGS);
		began += is_first;
	}
	assert_int_equal(began, 1);
	assert_int_equal(restless_ends(ps, p, 1000 * NSEC_PER_SEC), 1);
	assert_in_range(p->as->count, 1, 1000);
}

/* A program maps a file, and is gone with it before anything is applied: it was opened when the record was read. */
static void test_opened_early(void **state)
{
	char path[] = "/tmp/hearth-intake-XXXXXX";
	AUTO_CLOSE int fd = mkstemp(path);
	void *map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	struct side_band_record *r = calloc(1, sizeof(*r) + sizeof(path));
	const struct mapping *m;
	struct stat st;

	(void)state;
	if (!r || map == MAP_FAILED || fstat(fd, &st))
		abort();
	r->kind = SIDE_BAND_MMAP;
	r->time_ns = clock_mono_ns();
	r->pid = r->tid = (uint32_t)getpid();
	r->start = (uintptr_t)map;
	r->end = r->start + 4096;
	r->key = (struct file_key){ .dev_major = major(st.st_dev), .dev_minor = minor(st.st_dev), .inode = st.st_ino };
	memcpy(r->name, path, sizeof(path));
	rings.told = r;
	intake_read_ahead(&in);
	munmap(map, 4096);
	unlink(path);
	intake_run_all(&in);
	m = address_space_find(processes_peek(in.processes, (uint32_t)getpid())->as, (uintptr_t)map);
	assert_non_null(m);
	assert_non_null(m->file);
	assert_true(m->file->fd >= 0);
}

static void tell_task(enum side_band_kind kind, uint32_t pid, uint32_t tid, uint32_t parent)
{
	struct side_band_record *r = calloc(1, sizeof(*r) + 1);

	if (!r)
		abort();
	*r = (struct side_band_record){
		.kind = kind, .time_ns = clock_mono_ns(), .pid = pid, .tid = tid, .parent_pid = parent
	};
	rings.told = r;
	intake_read_side_band(&in);
}

/* Processes that begin and end are told to the sampler when the record is read; threads are not. */
static void test_children(void **state)
{
	(void)state;
	tell_task(SIDE_BAND_FORK, PID, PID + 1, PID);
	tell_task(SIDE_BAND_EXIT, PID, PID + 1, 0);
	assert_int_equal(followed.child, 0);
	assert_int_equal(followed.ended, 0);
	tell_task(SIDE_BAND_FORK, PID + 1, PID + 1, PID);
	assert_int_equal(followed.parent, PID);
	assert_int_equal(followed.child, PID + 1);
	tell_task(SIDE_BAND_EXIT, PID + 1, PID + 1, 0);
	assert_int_equal(followed.ended, PID + 1);
	intake_run_all(&in);
}

/* Walked by the rows of a library that another has replaced since: what stands below its frame is not believed. */
static void test_stale(void **state)
{
	enum { CODE = 0x10000 };
	static struct file_index index;
	static struct file program = { .id = 1, .index = &index }, old = { .id = 2, .index = &index },
			   new = { .id = 3, .index = &index };
	const uint64_t user[] = { CODE + 1, CODE + 0x1008, CODE + 0x2008 };
	struct {
		struct sample_record sample;
		uint64_t section, user[3];
	} record = { .sample = { .hdr = { .kind = RECORD_SAMPLE, .version = RECORD_VERSION, .size = sizeof(record) },
				 .pid = PID,
				 .end = END_ROOT },
		     .section = SECTION(SECTION_USER, sizeof(user)) };
	struct process *p = processes_find(in.processes, PID);

	(void)state;
	assert_non_null(p);
	assert_int_equal(address_space_map(&p->as, CODE, CODE + 0x4000, 0, &program), 0);
	assert_int_equal(address_space_map(&p->as, CODE + 0x1000, CODE + 0x2000, 0, &old), 1);
	memcpy(record.user, user, sizeof(user));
	record.sample.asid = p->as->asid;
	assert_int_equal(address_space_map(&p->as, CODE + 0x1000, CODE + 0x2000, 0, &new), 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pending_add(in.pending, &record.sample.hdr), 0);
		record.sample.asid = p->as->asid; /* the second one's rows are the new library's */
	}
	intake_run_all(&in);
	assert_int_equal(in.counts.ends[END_STALE], 1);
	assert_int_equal(in.counts.ends[END_ROOT], 1);
	assert_int_equal(traces_get(in.traces, 0)->frame_cnt, 2);
	assert_int_equal(traces_get(in.traces, 1)->frame_cnt, 3);
	traces_reset(in.traces);
}

/* A task that has no pid in our namespace is nobody of those we know, whatever its pid is elsewhere. */
static void test_outside(void **state)
{
	struct sample_record sample = { .hdr = { .kind = RECORD_SAMPLE, .version = RECORD_VERSION, .size = sizeof(sample) },
					.flags = SAMPLE_OUTSIDE,
					.end = END_OUTSIDE };
	const struct process *idle = processes_find(in.processes, 0), *p;

	(void)state;
	assert_non_null(idle);
	assert_int_equal(pending_add(in.pending, &sample.hdr), 0);
	intake_run_all(&in);
	assert_int_equal(in.counts.ends[END_OUTSIDE], 1);
	p = traces_events(in.traces)[0].process;
	assert_ptr_not_equal(p, idle);
	assert_true(p->is_outside);
	assert_string_equal(p->comm, "[not in /proc]");
	assert_int_equal(traces_get(in.traces, 0)->frame_cnt, 0);
	traces_reset(in.traces);
}

/* A sample of a kind that the session does not have makes no sense, wherever it comes from. */
static void test_unknown_kind(void **state)
{
	struct sample_record sample = { .hdr = { .kind = RECORD_SAMPLE, .version = RECORD_VERSION, .size = sizeof(sample) },
					.pid = PID,
					.kind = 1 };

	(void)state;
	assert_int_equal(pending_add(in.pending, &sample.hdr), 0);
	intake_run_all(&in);
	intake_run_all(&in);
	assert_int_equal(in.counts.lost[LOSS_MALFORMED][0].samples, 1);
	assert_int_equal(traces_event_count(in.traces), 0);
	in.kind_cnt = 2;
	assert_int_equal(pending_add(in.pending, &sample.hdr), 0);
	intake_run_all(&in);
	assert_int_equal(in.counts.malformed, 1);
	assert_int_equal(traces_events(in.traces)[0].kind, 1);
	traces_reset(in.traces);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kept, make, destroy),
		cmocka_unit_test_setup_teardown(test_flood_of_samples, make, destroy),
		cmocka_unit_test_setup_teardown(test_flood, make, destroy),
		cmocka_unit_test_setup_teardown(test_restless, make, destroy),
		cmocka_unit_test_setup_teardown(test_mappings, make, destroy),
		cmocka_unit_test_setup_teardown(test_opened_early, make, destroy),
		cmocka_unit_test_setup_teardown(test_children, make, destroy),
		cmocka_unit_test_setup_teardown(test_stale, make, destroy),
		cmocka_unit_test_setup_teardown(test_outside, make, destroy),
		cmocka_unit_test_setup_teardown(test_unknown_kind, make, destroy),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
