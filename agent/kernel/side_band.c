/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the rings of the dummy events (layout: include/uapi/linux/perf_event.h, struct perf_event_mmap_page and the
 * PERF_RECORD_* comments). One writer a ring, the kernel; we are the one reader and own data_tail. Records of all rings are
 * handed out in the order of their times: a process is made on one CPU and becomes another program on the next. Agent's
 * thread.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/kernel/side_band.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/vec.h"

enum { RING_PAGES = 128, /* perf's own default */ PAGE_BYTES = 4096, RING_BYTES = RING_PAGES * PAGE_BYTES };

struct cpu_ring {
	uint32_t cpu;
	int fd;
	struct perf_event_mmap_page *page; /* mapped: the control page, then the data */
};

struct read_record {
	struct side_band_record *record;
	uint32_t nth;
};

struct side_band {
	int epoll_fd;
	struct read_record *read; /* from the rings, and not handed out yet */
	uint32_t read_cnt, read_cap;
	struct cpu_ring *rings;
	uint32_t count;
	_Alignas(uint64_t) uint8_t scratch[PAGE_BYTES * 2]; /* a record that wraps around the ring's end */
	bool has_pids, wakes_at_once;
	struct metric *records, *lost, *outside;
};

int side_band_new(struct metrics *metrics, bool has_pids, struct side_band **ret)
{
	struct side_band *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0) {
		free(s);
		return -errno;
	}
	s->records = metrics_counter(metrics, "hearth_side_band_records_total", NULL,
				     "Records of mmap, comm, fork, exit and kernel code read from the kernel.");
	s->lost = metrics_counter(metrics, "hearth_side_band_lost_total", NULL,
				  "Such records that the kernel dropped; all processes are read again then.");
	s->outside = metrics_counter(
		metrics, "hearth_side_band_outside_total", NULL,
		"Records of mmap, comm, fork and exit of processes that have no pid in the namespace of our /proc.");
	s->has_pids = has_pids;
	*ret = s;
	return 0;
}

static void ring_close(struct cpu_ring *r)
{
	munmap(r->page, PAGE_BYTES + RING_BYTES);
	close(r->fd);
}

void side_band_free(struct side_band *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->count; i++)
		ring_close(&s->rings[i]);
	free(s->rings);
	free(s->read);
	close(s->epoll_fd);
	free(s);
}

static int open_event(uint32_t cpu, bool has_pids, bool wakes_at_once)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_period = 1,
		.watermark = 1,
		.wakeup_watermark = wakes_at_once ? 1 : RING_BYTES / 2,
		.mmap = has_pids,
		.mmap2 = has_pids,
		.comm = has_pids,
		.comm_exec = has_pids,
		.task = has_pids,
		.ksymbol = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void side_band_wake_at_once(struct side_band *s)
{
	s->wakes_at_once = true;
}

int side_band_add_cpu(struct side_band *s, uint32_t cpu)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct cpu_ring *rings;
	AUTO_CLOSE int fd = -1;
	void *page;

	for (uint32_t i = 0; i < s->count; i++)
		if (s->rings[i].cpu == cpu)
			return -EEXIST;
	rings = realloc(s->rings, (s->count + 1) * sizeof(*rings));
	if (!rings)
		return -ENOMEM;
	s->rings = rings;
	fd = open_event(cpu, s->has_pids, s->wakes_at_once);
	if (fd < 0)
		return fd;
	page = mmap(NULL, PAGE_BYTES + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
		munmap(page, PAGE_BYTES + RING_BYTES);
		return -errno;
	}
	s->rings[s->count++] = (struct cpu_ring){ .cpu = cpu, .fd = MOVE_FD(fd), .page = page };
	return 0;
}

void side_band_remove_cpu(struct side_band *s, uint32_t cpu)
{
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->rings[i].cpu != cpu)
			continue;
		ring_close(&s->rings[i]);
		s->rings[i] = s->rings[--s->count];
		return;
	}
}

int side_band_fd(const struct side_band *s)
{
	return s->epoll_fd;
}

/* The fields of the records, behind struct perf_event_header. sample_id (pid, tid, time) ends each. */
struct mmap2_body {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char name[];
};

struct comm_body {
	uint32_t pid, tid;
	char name[];
};

struct task_body { /* fork and exit */
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct ksymbol_body {
	uint64_t addr;
	uint32_t len;
	uint16_t type, flags;
	char name[];
};

struct lost_body {
	uint64_t id, lost;
};

enum { SAMPLE_ID_BYTES = 16 };

static struct side_band_record *new_record(enum side_band_kind kind, uint32_t pid, uint32_t tid, const char *name,
					   size_t name_max)
{
	size_t len = strnlen(name, name_max);
	struct side_band_record *r = calloc(1, sizeof(*r) + len + 1);

	if (!r)
		return NULL;
	r->kind = kind;
	r->pid = pid;
	r->tid = tid;
	memcpy(r->name, name, len);
	return r;
}

static struct side_band_record *parse_mmap2(const struct perf_event_header *h, const struct mmap2_body *b, size_t len)
{
	struct side_band_record *r;

	if (len < sizeof(*b) || h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		return NULL;
	r = new_record(SIDE_BAND_MMAP, b->pid, b->tid, b->name, len - sizeof(*b));
	if (!r)
		return NULL;
	r->start = b->addr;
	r->end = b->addr + b->len;
	r->pgoff = b->pgoff;
	r->key = (struct file_key){ .dev_major = b->major,
				    .dev_minor = b->minor,
				    .inode = b->inode,
				    .generation = b->generation,
				    .has_generation = b->inode != 0 };
	return r;
}

/*
 * @len is the length of everything behind the header. The kernel (perf_event_ksymbol_output) adds the size of sample_id to
 * the header's once more for each further event that gets the record, also another profiler's, so sample_id is looked for
 * behind the name.
 */
static struct side_band_record *parse_ksymbol(const struct ksymbol_body *b, size_t len)
{
	size_t name_bytes = len > sizeof(*b) ? strnlen(b->name, len - sizeof(*b)) + 1 : 0;
	size_t id = sizeof(*b) + ((name_bytes + 7) & ~7ull);
	struct side_band_record *r;

	if (!name_bytes || id + SAMPLE_ID_BYTES > len)
		return NULL;
	r = new_record(SIDE_BAND_KSYMBOL, 0, 0, b->name, name_bytes);
	if (!r)
		return NULL;
	r->start = b->addr;
	r->end = b->addr + b->len;
	r->is_unregister = b->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	memcpy(&r->time_ns, (const uint8_t *)b + id + sizeof(uint64_t), sizeof(r->time_ns));
	return r;
}

/* Converts one record into our form; NULL when it is none of ours (or without memory). */
static struct side_band_record *parse_record(struct side_band *s, const struct perf_event_header *h)
{
	const void *body = h + 1;
	size_t len = h->size - sizeof(*h);
	struct side_band_record *r = NULL;
	const struct task_body *task = body;
	const struct comm_body *comm = body;

	if (h->type == PERF_RECORD_LOST && len >= sizeof(struct lost_body)) {
		metric_add(s->lost, ((const struct lost_body *)body)->lost);
		r = new_record(SIDE_BAND_LOST, 0, 0, "", 0);
	}
	if (h->type == PERF_RECORD_KSYMBOL)
		return parse_ksymbol(body, len);
	if (len < SAMPLE_ID_BYTES)
		return r;
	len -= SAMPLE_ID_BYTES;
	if (h->type == PERF_RECORD_MMAP2) {
		r = parse_mmap2(h, body, len);
	} else if (h->type == PERF_RECORD_COMM && len > sizeof(*comm)) {
		r = new_record(SIDE_BAND_COMM, comm->pid, comm->tid, comm->name, len - sizeof(*comm));
		if (r)
			r->is_exec = h->misc & PERF_RECORD_MISC_COMM_EXEC;
	} else if ((h->type == PERF_RECORD_FORK || h->type == PERF_RECORD_EXIT) && len >= sizeof(*task)) {
		r = new_record(h->type == PERF_RECORD_FORK ? SIDE_BAND_FORK : SIDE_BAND_EXIT, task->pid, task->tid, "", 0);
		if (r)
			r->parent_pid = task->ppid;
	}
	if (r && r->kind != SIDE_BAND_LOST && !r->pid) {
		metric_add(s->outside, 1);
		free(MOVE(r));
	}
	if (r)
		memcpy(&r->time_ns, (const uint8_t *)h + h->size - sizeof(uint64_t), sizeof(uint64_t));
	return r;
}

/* Keeps @record until all rings are read; without memory it goes to @fn at once. */
static void keep(struct side_band *s, struct side_band_record *record, void (*fn)(void *, struct side_band_record *),
		 void *arg)
{
	if (vec_reach(&s->read, &s->read_cap, s->read_cnt)) {
		fn(arg, record);
		return;
	}
	s->read[s->read_cnt] = (struct read_record){ record, s->read_cnt };
	s->read_cnt++;
}

static void drain_ring(struct side_band *s, struct cpu_ring *ring, void (*fn)(void *, struct side_band_record *), void *arg)
{
	const uint8_t *data = (const uint8_t *)ring->page + ring->page->data_offset;
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;

	while (tail < head) {
		uint64_t at = tail & (RING_BYTES - 1), first = RING_BYTES - at;
		const struct perf_event_header *h = (const void *)(data + at); /* headers never wrap: 8-byte units */
		struct side_band_record *record;

		if (h->size < sizeof(*h) || h->size > sizeof(s->scratch) || h->size > head - tail)
			break;
		tail += h->size;
		if (h->size > first) {
			size_t size = h->size;

			memcpy(s->scratch, h, first);
			memcpy(s->scratch + first, data, size - first);
			h = (const void *)s->scratch;
		}
		metric_add(s->records, 1);
		record = parse_record(s, h);
		if (record)
			keep(s, record, fn, arg);
	}
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
	const struct read_record *left = a, *right = b;
	uint64_t left_ns = left->record->time_ns, right_ns = right->record->time_ns;

	if (left_ns != right_ns)
		return left_ns < right_ns ? -1 : 1;
	return left->nth < right->nth ? -1 : 1;
}

void side_band_drain(struct side_band *s, void (*fn)(void *arg, struct side_band_record *record), void *arg)
{
	for (uint32_t i = 0; i < s->count; i++)
		drain_ring(s, &s->rings[i], fn, arg);
	if (s->read_cnt)
		qsort(s->read, s->read_cnt, sizeof(*s->read), by_time);
	for (uint32_t i = 0; i < s->read_cnt; i++)
		fn(arg, s->read[i].record);
	s->read_cnt = 0;
}
