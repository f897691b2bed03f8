/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings that fill while something else takes long: what they have is kept, and applied later as if nobody had waited. The
 * kernel's rings and the side band are stood in for here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/intake.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"

/* --- the kernel's side --- */

enum { RING_RECORDS = 16, PID = 1 << 30 /* nobody's */, STEPS = 200 };

static struct {
	struct {
		struct sample_record sample;
		uint64_t kernel[1];
	} ring[RING_RECORDS];
	uint32_t count, lost, seq;
	struct side_band_record *told; /* one at most */
} rings;

int sampler_drain(struct sampler *s, void (*fn)(void *arg, const struct record *record), void *arg)
{
	(void)s;
	for (uint32_t i = 0; i < rings.count; i++)
		fn(arg, &rings.ring[i].sample.hdr);
	rings.count = 0;
	return 0;
}

void side_band_drain(struct side_band *s, void (*fn)(void *arg, struct side_band_record *record), void *arg)
{
	struct side_band_record *record = rings.told;

	(void)s;
	rings.told = NULL;
	if (record)
		fn(arg, record);
}

uint64_t sampler_malformed(const struct sampler *s)
{
	(void)s;
	return 0;
}

uint32_t sampler_rings(const struct sampler *s)
{
	(void)s;
	return 1;
}

uint64_t sampler_ring_bytes(const struct sampler *s)
{
	(void)s;
	return sizeof(rings.ring);
}

int sampler_forget_proc(struct sampler *s, uint32_t pid)
{
	(void)s, (void)pid;
	return 0;
}

int sampler_set_proc(struct sampler *s, uint32_t pid, uint64_t start_boottime_ns, uint64_t exec_id, uint32_t asid)
{
	(void)s, (void)pid, (void)start_boottime_ns, (void)exec_id, (void)asid;
	return 0;
}

int sampler_set_mapping(struct sampler *s, struct mapping_value *value)
{
	(void)s, (void)value;
	return 0;
}

int sampler_set_block(struct sampler *s, struct unwind_block *block)
{
	(void)s, (void)block;
	return 0;
}

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
		.kernel_cnt = 1,
		.end = END_NONE,
	};
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

/* --- the agent's --- */

static int answer(struct elf_service *s, const struct elf_request *request, int fd, const void *payload, size_t bytes,
		  struct buf *reply)
{
	(void)s, (void)request, (void)fd, (void)payload, (void)bytes, (void)reply;
	fail_msg("nobody is asked about a file here");
	return -1;
}

static void no_free(struct elf_service *s)
{
	(void)s;
}

static const struct elf_service_ops ops = { .call = answer, .free = no_free };
static struct elf_service service = { .ops = &ops };
static struct intake in;

static int make(void **state)
{
	struct file_opener *opener;

	(void)state;
	memset(&rings, 0, sizeof(rings));
	in = (struct intake){ .metrics = metrics_new() };
	return !in.metrics || file_opener_new(in.metrics, &opener) || files_new(&service, opener, in.metrics, &in.files) ||
	       processes_new(in.files, &in.processes) || pending_new(1, &in.pending) || traces_new(NULL, &in.traces);
}

static int destroy(void **state)
{
	(void)state;
	intake_fini(&in);
	traces_free(in.traces);
	pending_free(in.pending);
	processes_free(in.processes);
	files_free(in.files);
	metrics_free(in.metrics);
	return 0;
}

/* --- tests --- */

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
		assert_int_equal(in.lost[i], 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(test_kept, make, destroy) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
