/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of scripts come through the rings with the samples that have them in a chain; both are stood in for here.
 */
#include "tests/unit/agent/feed_rings.h"
#include "tests/unit/descriptors.h"

enum { CHECK = 0x12345678, FUNCTION = 0x7000 };

static struct object_record *make_object(uint32_t runtime, uint16_t head_bytes)
{
	static struct {
		struct object_record r;
		uint8_t content[12];
	} object;

	object.r = (struct object_record){
		.hdr = { .kind = RECORD_OBJECT, .version = RECORD_VERSION, .size = sizeof(object), .time_ns = 2 },
		.addr = FUNCTION,
		.pid = PID,
		.runtime = runtime,
		.check = CHECK,
		.part_bytes = { head_bytes, 4 },
		.part_state = { 0, 1 },
	};
	memcpy(object.content, "\5\0\0\0xxxxname", sizeof(object.content));
	return &object.r;
}

/* A function comes with the first sample that has it in a chain, which is found with it wherever it stands in the ring. */
static void test_scripts(void **state)
{
	enum { CODE = 0x10000, SP = 0x5000 };
	static struct file_index index;
	static struct file interpreter = { .id = 1,
					   .index = &index,
					   .info = { .runtime = { .kind = RUNTIME_FILE_CHAIN,
								  .state = { .thread = { .addr = 1 } } } } };
	static struct {
		struct sample_record sample;
		uint64_t words[17];
	} record = { .sample = { .hdr = { .kind = RECORD_SAMPLE,
					  .version = RECORD_VERSION,
					  .size = sizeof(record),
					  .time_ns = 2 },
				 .pid = PID,
				 .end = END_ROOT },
		     .words = { SECTION(SECTION_USER, 24), CODE | FRAME_EXACT, CODE + 0x1008, CODE + 0x2008,
				SECTION(SECTION_CHAIN, 48), CHAIN_WORD(CHAIN_HEAD, RUNTIME_PYTHON),
				CHAIN_OUTCOME(CHAIN_END_ROOT, CHAIN_LOCK_WAITING), CHAIN_WORD(CHAIN_FRAME, FUNCTION),
				CHAIN_PLACE(7, CHECK), CHAIN_WORD(CHAIN_MARKER, SP + 0x18), 0,
				SECTION(SECTION_STACK_POINTERS, 20), SP, 0x10ull << 32, 0x20, SECTION(SECTION_LABELS, 8),
				0 } };
	const struct chain_counts *counts = &in.counts.chains[RUNTIME_PYTHON];
	struct process *p = processes_find(in.processes, PID);
	const struct trace_frame *frame;

	(void)state;
	in.merged = malloc(sizeof(*in.merged));
	assert_true(p && in.merged && !objects_new(&in.objects));
	traces_of_objects(in.traces, in.objects);
	assert_int_equal(pending_add(in.pending, &make_object(RUNTIME_PYTHON, 8)->hdr), 0); /* nothing is mapped there */
	intake_run_all(&in);
	assert_int_equal(in.counts.chains[RUNTIME_PYTHON].malformed_objects, 1);
	assert_int_equal(address_space_map(&p->as, CODE, CODE + 0x4000, 0, &interpreter), 0);
	assert_int_equal(pending_add(in.pending, &record.sample.hdr), 0);
	assert_int_equal(pending_add(in.pending, &make_object(RUNTIME_PYTHON, 8)->hdr), 0);
	assert_int_equal(pending_add(in.pending, &make_object(RUNTIME_PYTHON, 99)->hdr), 0); /* too long */
	assert_int_equal(pending_add(in.pending, &make_object(RUNTIME_ID_MAX, 8)->hdr), 0);  /* nobody's */
	intake_run_all(&in);
	assert_int_equal(in.counts.chains[RUNTIME_PYTHON].malformed_objects, 3);
	assert_int_equal(objects_count(in.objects), 1);
	assert_true(counts->frames == 1 && counts->ends[CHAIN_END_ROOT] == 1 && !counts->unknown_objects &&
		    !counts->unplaced_segments);
	assert_int_equal(traces_get(in.traces, 0)->frame_cnt, 3);
	assert_true(traces_get(in.traces, 0)->has_script);
	assert_int_equal(traces_events(in.traces)[0].script, SCRIPT_OUTCOME(RUNTIME_PYTHON, CHAIN_END_ROOT));
	assert_int_equal(traces_events(in.traces)[0].lock, CHAIN_LOCK_WAITING);
	frame = traces_frame(in.traces, traces_frame_ids(in.traces, traces_get(in.traces, 0))[1]);
	assert_true(frame->kind == FRAME_SCRIPTED && frame->addr == 7);
	assert_true(frame->object && frame->object == objects_find(in.objects, frame->object->id));
	traces_reset(in.traces);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(test_scripts, make, destroy) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
