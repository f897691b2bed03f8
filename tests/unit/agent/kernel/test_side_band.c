/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the kernel's side band, laid out as perf_event_open(2) has them, through a ring made up here: each kind,
 * records too short, records that wrap around. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "agent/kernel/side_band.c"
#include "tests/unit/descriptors.h"

enum { NAME_BYTES = 64, TIME = 0x123456789a };

static struct side_band *band;
static struct metrics *metrics;
static struct cpu_ring *ring;
static uint64_t made_ns; /* the time of what is made */

static int begin(void **state)
{
	(void)state;
	metrics = metrics_new();
	assert_non_null(metrics);
	assert_int_equal(side_band_new(metrics, true, &band), 0);
	band->count = 2;
	band->rings = calloc(band->count, sizeof(*band->rings));
	assert_non_null(band->rings);
	for (uint32_t i = 0; i < band->count; i++) {
		ring = &band->rings[i];
		ring->fd = -1;
		ring->page = mmap(NULL, PAGE_BYTES + RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(ring->page, MAP_FAILED);
		ring->page->data_offset = PAGE_BYTES;
	}
	ring = band->rings;
	made_ns = TIME;
	return 0;
}

static int end(void **state)
{
	(void)state;
	side_band_free(band);
	metrics_free(metrics);
	return 0;
}

/* --- what the kernel writes --- */

static struct {
	struct perf_event_header head;
	union {
		struct mmap2_body mmap;
		struct comm_body comm;
		struct task_body task;
		struct ksymbol_body symbol;
		struct lost_body lost;
		uint8_t bytes[512];
	};
} made;

static void write_bytes(const void *bytes, size_t len)
{
	uint8_t *data = (uint8_t *)ring->page + PAGE_BYTES;

	for (size_t i = 0; i < len; i++)
		data[(ring->page->data_head + i) % RING_BYTES] = ((const uint8_t *)bytes)[i];
	ring->page->data_head += len;
}

/* made, of so many bytes behind the header, then sample_id. */
static void write_made(uint32_t type, uint16_t misc, size_t body_bytes)
{
	const struct {
		uint32_t pid, tid;
		uint64_t time;
	} id = { 11, 22, made_ns };

	made.head = (struct perf_event_header){ .type = type,
						.misc = misc,
						.size = (uint16_t)(sizeof(made.head) + body_bytes + sizeof(id)) };
	write_bytes(&made, sizeof(made.head) + body_bytes);
	write_bytes(&id, sizeof(id));
}

static struct side_band_record *got;
static int got_count;

static void take(void *arg, struct side_band_record *record)
{
	(void)arg;
	free(got);
	got = record;
	got_count++;
}

/* How many records were handed out; the last is in got. */
static int drain(void)
{
	free(got);
	got = NULL;
	got_count = 0;
	side_band_drain(band, take, NULL);
	assert_int_equal(ring->page->data_tail, ring->page->data_head);
	return got_count;
}

static uint64_t counter(const char *name)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	const char *line;

	metrics_write(metrics, &text);
	line = strstr(buf_text(&text), name);
	while (line && (line == buf_text(&text) ? false : line[-1] != '\n'))
		line = strstr(line + 1, name);
	assert_non_null(line);
	return strtoull(line + strlen(name), NULL, 10);
}

/* --- tests --- */

static void test_mmap(void **state)
{
	(void)state;
	made.mmap = (struct mmap2_body){ 5, 6, 0x1000, 0x300, 0x4000, 8, 1, 77, 99, 5, 0 };
	strcpy(made.mmap.name, "/usr/bin/x");
	write_made(PERF_RECORD_MMAP2, 0, sizeof(made.mmap) + 16);
	assert_int_equal(drain(), 1);
	assert_int_equal(got->kind, SIDE_BAND_MMAP);
	assert_true(got->pid == 5 && got->tid == 6 && got->time_ns == TIME);
	assert_true(got->start == 0x1000 && got->end == 0x1300 && got->pgoff == 0x4000);
	assert_true(got->key.dev_major == 8 && got->key.dev_minor == 1 && got->key.inode == 77);
	assert_true(got->key.generation == 99 && got->key.has_generation);
	assert_string_equal(got->name, "/usr/bin/x");
	made.mmap.inode = 0; /* memory without a file */
	write_made(PERF_RECORD_MMAP2, 0, sizeof(made.mmap) + 16);
	assert_int_equal(drain(), 1);
	assert_false(got->key.has_generation);
	/* a name that fills its bytes, and none */
	memset(made.mmap.name, 'n', 8);
	write_made(PERF_RECORD_MMAP2, 0, sizeof(made.mmap) + 8);
	assert_int_equal(drain(), 1);
	assert_string_equal(got->name, "nnnnnnnn");
	write_made(PERF_RECORD_MMAP2, 0, sizeof(made.mmap));
	assert_int_equal(drain(), 1);
	assert_string_equal(got->name, "");
	write_made(PERF_RECORD_MMAP2, 0, sizeof(made.mmap) - 8);
	assert_int_equal(drain(), 0);
	write_made(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, sizeof(made.mmap) + 16);
	assert_int_equal(drain(), 0);
}

static void test_comm(void **state)
{
	(void)state;
	made.comm = (struct comm_body){ 5, 6 };
	strcpy(made.comm.name, "name");
	write_made(PERF_RECORD_COMM, 0, sizeof(made.comm) + 8);
	assert_int_equal(drain(), 1);
	assert_int_equal(got->kind, SIDE_BAND_COMM);
	assert_true(got->pid == 5 && got->tid == 6 && got->time_ns == TIME && !got->is_exec);
	assert_string_equal(got->name, "name");
	write_made(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, sizeof(made.comm) + 8);
	assert_int_equal(drain(), 1);
	assert_true(got->is_exec);
	write_made(PERF_RECORD_COMM, 0, sizeof(made.comm));
	assert_int_equal(drain(), 0);
}

static void test_fork_and_exit(void **state)
{
	(void)state;
	made.task = (struct task_body){ .pid = 5, .ppid = 4, .tid = 6, .ptid = 3, .time = 1 };
	write_made(PERF_RECORD_FORK, 0, sizeof(made.task));
	assert_int_equal(drain(), 1);
	assert_true(got->kind == SIDE_BAND_FORK && got->pid == 5 && got->tid == 6 && got->parent_pid == 4);
	assert_int_equal(got->time_ns, TIME);
	write_made(PERF_RECORD_EXIT, 0, sizeof(made.task));
	assert_int_equal(drain(), 1);
	assert_true(got->kind == SIDE_BAND_EXIT && got->pid == 5 && got->tid == 6);
	write_made(PERF_RECORD_EXIT, 0, sizeof(made.task) - 8);
	assert_int_equal(drain(), 0);
	write_made(PERF_RECORD_SAMPLE, 0, sizeof(made.task)); /* nothing that was asked for */
	assert_int_equal(drain(), 0);
	/* of a process that has no number in our namespace */
	made.task.pid = 0;
	write_made(PERF_RECORD_FORK, 0, sizeof(made.task));
	assert_int_equal(drain(), 0);
	assert_int_equal(counter("hearth_side_band_outside_total "), 1);
	assert_int_equal(counter("hearth_side_band_records_total "), 5);
}

/* Where other profilers listen, too, the kernel leaves unused bytes behind sample_id. */
static void test_ksymbol(void **state)
{
	static const char *const names[] = { "bpf_x", "bpf_prog", "seven77" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		for (size_t more = 0; more <= 32; more += 16) {
			size_t name_bytes = (strlen(names[i]) + 1 + 7) / 8 * 8;
			uint64_t time_ns = TIME;

			memset(&made, 0, sizeof(made));
			made.symbol = (struct ksymbol_body){ 0xffffffffc0000000, 0x80, 1, 0 };
			strcpy(made.symbol.name, names[i]);
			memcpy(made.bytes + sizeof(made.symbol) + name_bytes + 8, &time_ns, 8);
			made.head.type = PERF_RECORD_KSYMBOL;
			made.head.size = (uint16_t)(sizeof(made.head) + sizeof(made.symbol) + name_bytes + SAMPLE_ID_BYTES +
						    more);
			write_bytes(&made, made.head.size);
			assert_int_equal(drain(), 1);
			assert_int_equal(got->kind, SIDE_BAND_KSYMBOL);
			assert_string_equal(got->name, names[i]);
			assert_true(got->start == 0xffffffffc0000000 && got->end == 0xffffffffc0000080);
			assert_true(got->time_ns == TIME && !got->is_unregister);
			made.symbol.flags = PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
			write_bytes(&made, made.head.size);
			assert_int_equal(drain(), 1);
			assert_true(got->is_unregister);
			made.head.size = (uint16_t)(made.head.size - 8 - more); /* sample_id is cut */
			write_bytes(&made, made.head.size);
			assert_int_equal(drain(), 0);
		}
	}
}

static void test_lost(void **state)
{
	(void)state;
	made.lost = (struct lost_body){ 1, 40 };
	write_made(PERF_RECORD_LOST, 0, sizeof(made.lost));
	assert_int_equal(drain(), 1);
	assert_true(got->kind == SIDE_BAND_LOST && got->time_ns == TIME);
	made.lost.lost = 2;
	write_made(PERF_RECORD_LOST, 0, sizeof(made.lost));
	assert_int_equal(drain(), 1);
	assert_int_equal(counter("hearth_side_band_lost_total "), 42);
}

/* Several at once, over the ring's end and all over again; what makes no sense ends the reading, and nothing is read twice.
 */
static void test_ring(void **state)
{
	struct perf_event_header senseless = { .type = PERF_RECORD_COMM, .size = 4 };

	(void)state;
	made.comm = (struct comm_body){ 5, 6 };
	strcpy(made.comm.name, "wrapped");
	for (int i = 0; i < 3 * RING_BYTES / 40; i++) {
		write_made(PERF_RECORD_COMM, 0, sizeof(made.comm) + 8);
		if (i % 7)
			continue;
		assert_int_equal(drain(), i ? 7 : 1);
		assert_string_equal(got->name, "wrapped");
		assert_true(got->pid == 5 && got->time_ns == TIME);
	}
	(void)drain();
	write_made(PERF_RECORD_COMM, 0, sizeof(made.comm) + 8);
	write_bytes(&senseless, sizeof(senseless));
	write_made(PERF_RECORD_COMM, 0, sizeof(made.comm) + 8);
	assert_int_equal(drain(), 1);
	senseless.size = 4096; /* more than there is */
	write_bytes(&senseless, sizeof(senseless));
	assert_int_equal(drain(), 0);
	write_made(PERF_RECORD_COMM, 0, sizeof(made.comm) + 8);
	assert_int_equal(drain(), 1);
}

static char order[16];

static void note_name(void *arg, struct side_band_record *record)
{
	(void)arg;
	strcat(order, record->name);
	free(record);
}

/* What one CPU did after another's comes after it, whichever ring is read first; records of one time stay as they came. */
static void test_order(void **state)
{
	static const struct {
		const char *name;
		int ring, time;
	} written[] = { { "c", 0, 3 }, { "e", 0, 5 }, { "f", 0, 5 }, { "a", 1, 1 }, { "b", 1, 2 }, { "d", 1, 4 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(written); i++) {
		ring = &band->rings[written[i].ring];
		made_ns = TIME + (uint64_t)written[i].time;
		made.comm = (struct comm_body){ 5, 6 };
		strcpy(made.comm.name, written[i].name);
		write_made(PERF_RECORD_COMM, 0, sizeof(made.comm) + 8);
	}
	side_band_drain(band, note_name, NULL);
	assert_string_equal(order, "abcdef");
	side_band_drain(band, note_name, NULL);
	assert_string_equal(order, "abcdef"); /* once */
}

/* A CPU is followed once, until it is left; the kernel's own ring, where it may be had. */
static void test_cpus(void **state)
{
	uint32_t cpu = (uint32_t)sched_getcpu();
	struct side_band *s;
	cpu_set_t set;
	int error;

	(void)state;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set); /* the events below happen where they are listened to */
	assert_int_equal(side_band_new(metrics, true, &s), 0);
	error = side_band_add_cpu(s, cpu);
	if (error == -EACCES || error == -EPERM || error == -ENOENT || error == -ENOSYS) {
		side_band_free(s);
		skip();
	}
	assert_int_equal(error, 0);
	assert_int_equal(side_band_add_cpu(s, cpu), -EEXIST);
	assert_true(side_band_add_cpu(s, 100000) < 0);
	assert_int_equal(s->count, 1);
	side_band_remove_cpu(s, cpu + 1);
	assert_int_equal(s->count, 1);
	got_count = 0;
	for (int i = 0; i < 1000 && !got_count; i++) {
		if (!fork())
			_exit(0);
		wait(NULL);
		side_band_drain(s, take, NULL);
	}
	assert_true(got_count > 0);
	side_band_remove_cpu(s, cpu);
	assert_int_equal(s->count, 0);
	assert_int_equal(side_band_add_cpu(s, cpu), 0);
	side_band_free(s);
}

static int free_got(void **state)
{
	(void)state;
	free(got);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mmap, begin, end),
		cmocka_unit_test_setup_teardown(test_comm, begin, end),
		cmocka_unit_test_setup_teardown(test_fork_and_exit, begin, end),
		cmocka_unit_test_setup_teardown(test_ksymbol, begin, end),
		cmocka_unit_test_setup_teardown(test_lost, begin, end),
		cmocka_unit_test_setup_teardown(test_ring, begin, end),
		cmocka_unit_test_setup_teardown(test_order, begin, end),
		cmocka_unit_test_setup_teardown(test_cpus, begin, end),
	};

	return run_group_of_descriptors(tests, NULL, free_got);
}
