/* SPDX-License-Identifier: Apache-2.0 */
/* Samples and their stacks for want of memory: one less is told, and what was kept before stays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/samples/reorder.h"
#include "agent/samples/traces.h"
#include "base/cleanup.h"
#include "tests/unit/failing_memory.h"

enum { SAMPLES = 60 };

static const uint64_t kernel[] = { 0xffffffff81000010, 0xffffffff81000020, 0xffffffff81000030 };
static struct file file = { .id = 1, .fd = -1 };

static int make_process(struct process **ret)
{
	struct process *p = calloc(1, sizeof(*p));
	int error;

	if (!p)
		return -ENOMEM;
	p->refs = 1;
	p->as = address_space_new();
	error = p->as ? address_space_map(&p->as, 0x10000, 0x20000, 0, &file) : -ENOMEM;
	if (error < 0) {
		process_put(p);
		return error;
	}
	*ret = p;
	return 0;
}

static int stacks(struct buf *out)
{
	struct process *process = NULL;
	struct traces *t = NULL;
	int error = make_process(&process);

	if (!error)
		error = traces_new(NULL, &t);
	for (uint32_t i = 0; !error && i < SAMPLES; i++) {
		struct sample_record record = { .hdr = { .time_ns = 1000 + i, .cpu = i % 3 },
						.tid = 50 + i % 7,
						.comm = "worker" };
		const struct pending_sample sample = {
			.record = &record, .kernel = kernel, .kernel_cnt = i % 3, .value = 1
		};
		const uint64_t user[] = { (0x10000 + 16 * (i % 20)) | FRAME_EXACT, 0x10100, 0x60000 + i };

		error = (i % 5 ? traces_add : traces_add_waker)(t, process, &sample, user, 3, END_ROOT);
		if (!error && i % 5)
			error = traces_add_more(t, 2, i);
	}
	if (!error)
		buf_printf(out, "%u events of %u stacks", traces_event_count(t), traces_frame_count(t));
	if (t && error) { /* it goes on with what it has */
		memory_suffices();
		traces_reset(t);
		assert_int_equal(traces_event_count(t), 0);
	}
	traces_free(t);
	process_put(process);
	return error;
}

/* --- their order --- */

static bool count_sample(void *arg, const struct pending_sample *sample)
{
	uint64_t *sum = arg;

	*sum = *sum * 31 + sample->record->tid;
	return false;
}

static void no_side_band(void *arg, const struct side_band_record *record)
{
	(void)arg, (void)record;
}

static int ordered(struct buf *out)
{
	static const struct pending_ops ops = { .sample = count_sample, .side_band = no_side_band };
	struct pending *p = NULL;
	int error = pending_new(4, &p);
	uint64_t sum = 0;

	for (uint32_t i = 0; !error && i < SAMPLES; i++) {
		struct {
			struct sample_record r;
			uint64_t words[2];
		} s = { .r = { .hdr = { .kind = RECORD_SAMPLE,
					.version = RECORD_VERSION,
					.size = sizeof(s),
					.time_ns = 1000 - 7 * i % 60,
					.cpu = i % 4,
					.seq = i / 4 },
			       .tid = i,
			       .end = END_ROOT },
			.words = { SECTION(SECTION_KERNEL, 8), 5 } };

		error = pending_add(p, &s.r.hdr);
	}
	if (!error) {
		pending_release(p, 2000, &ops, &sum);
		buf_printf(out, "%d", (int)sum);
		error = pending_is_empty(p) ? 0 : -EBADMSG;
	}
	pending_free(p);
	return error;
}

static const struct memory_scenario scenarios[] = {
	{ "stacks", stacks, false },
	{ "order", ordered, false },
};

static void test_scenarios(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(scenarios); i++)
		memory_fails_everywhere(&scenarios[i]);
	assert_int_equal(file.refs, 0); /* nobody holds it any more */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scenarios) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
