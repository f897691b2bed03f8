/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings: one for each few CPUs, made by size, and made anew, larger, when one was found so full that what comes next may
 * not fit, or smaller when it has long held little. The new ring stands in the table of rings before the old one is read for
 * the last time: the kernel returns from that update when no program uses the old one any more, so nothing is lost between.
 * It waits as long, 10 to 20 ms, where there was no old one: the first rings are put in place by a thread, while the
 * programs are loaded. All else is the agent's thread.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/kernel/sampler_rings.h"
#include "agent/kernel/sampler_state.h"
#include "base/log.h"
#include "base/thread.h"

enum {
	CPUS_A_RING = 4,
	MIN_RING_BYTES = 2 << 20,
	MAX_RING_BYTES = 8 << 20,
	CPU_BYTES_A_HZ = 2 * 10240 / 10,
	CALM_INTERVALS = 12, /* that a ring holds little before it is made smaller: a minute */
};

static uint64_t round_up_pow2(uint64_t n)
{
	uint64_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/*
 * The bytes of one ring to begin with. Half of it is for stacks of samples that missed, about 10 KB each. If all miss, that
 * holds the stacks that its CPUs make in 100 ms; a busy machine may let us wait that long.
 */
static uint64_t default_bytes(unsigned freq_hz, uint32_t possible_cpus)
{
	uint64_t bytes = MIN_RING_BYTES, cpus = possible_cpus < CPUS_A_RING ? possible_cpus : CPUS_A_RING;

	while (bytes < freq_hz * cpus * CPU_BYTES_A_HZ && bytes < MAX_RING_BYTES)
		bytes *= 2;
	return bytes;
}

void sampler_rings_choose(struct sampler *s, uint64_t wanted_bytes, unsigned freq_hz)
{
	s->ring_cnt = (uint32_t)round_up_pow2((s->possible_cpus + CPUS_A_RING - 1) / CPUS_A_RING);
	if (s->ring_cnt > MAX_RINGS)
		s->ring_cnt = MAX_RINGS;
	s->ring_bytes = wanted_bytes ? round_up_pow2(wanted_bytes) : default_bytes(freq_hz, s->possible_cpus);
	s->most_ring_bytes = wanted_bytes ? s->ring_bytes : MAX_RING_BYTES;
}

static int handle_record(void *ctx, void *data, size_t len)
{
	struct sample_ring *ring = ctx;
	struct sampler *s = ring->sampler;
	const struct record *record = data;

	ring->drained += len;
	if (len < sizeof(*record) || record->size > len)
		s->malformed++;
	else
		s->fn(s->arg, record);
	return 0;
}

static void close_ring(struct sample_ring *ring)
{
	ring_buffer__free(ring->reader);
	if (ring->fd > 0)
		close(ring->fd);
	ring->reader = NULL;
	ring->fd = 0;
}

/* Makes @to, a ring of @bytes that is read through s->rings_fd and whose records are counted at number @at. 0 or -errno. */
static int make_ring(struct sampler *s, uint32_t at, uint64_t bytes, struct sample_ring *to)
{
	struct epoll_event event = { .events = EPOLLIN };
	int error = 0;

	*to = (struct sample_ring){ .sampler = s, .bytes = bytes };
	to->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, (uint32_t)bytes, NULL);
	if (to->fd < 0)
		return -errno;
	to->reader = ring_buffer__new(to->fd, handle_record, &s->rings[at], NULL);
	if (!to->reader || epoll_ctl(s->rings_fd, EPOLL_CTL_ADD, ring_buffer__epoll_fd(to->reader), &event))
		error = -errno;
	if (error)
		close_ring(to);
	return error;
}

/* Makes the kernel's table of rings; the programs, which are not loaded yet, will use it. 0 or -errno. */
static int make_table(struct sampler *s)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)s->rings[0].fd);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "rings", sizeof(uint32_t), sizeof(uint32_t), MAX_RINGS, &opts);
	int error;

	if (fd < 0)
		return -errno;
	error = bpf_map__reuse_fd(s->skel->maps.rings, fd); /* it takes a copy */
	close(fd);
	return error;
}

/* Puts the first rings in their places. One call of a batch waits once, in Linux 6.8 and later. */
static void *place_rings(void *arg)
{
	struct sampler *s = arg;
	uint32_t at[MAX_RINGS], count = s->ring_cnt;
	int fds[MAX_RINGS], table = bpf_map__fd(s->skel->maps.rings);

	for (uint32_t i = 0; i < count; i++) {
		at[i] = i;
		fds[i] = s->rings[i].fd;
	}
	if (count > 1 && !bpf_map_update_batch(table, at, fds, &count, NULL))
		return NULL;
	for (uint32_t i = 0; i < s->ring_cnt && !s->place_error; i++)
		s->place_error = bpf_map_update_elem(table, &at[i], &fds[i], BPF_ANY) ? -errno : 0;
	return NULL;
}

int sampler_rings_make(struct sampler *s)
{
	int error = 0;

	s->rings_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->rings_fd < 0)
		return -errno;
	for (uint32_t i = 0; i < s->ring_cnt && !error; i++)
		error = make_ring(s, i, s->ring_bytes, &s->rings[i]);
	if (!error)
		error = make_table(s);
	if (!error)
		error = thread_start(&s->placer, "rings", place_rings, s);
	s->is_placing = !error;
	return error;
}

int sampler_rings_wait(struct sampler *s)
{
	if (s->is_placing)
		pthread_join(s->placer, NULL);
	s->is_placing = false;
	return s->place_error;
}

/* Puts a ring of @bytes in the place of ring @at, which is read to its end. */
static void replace(struct sampler *s, uint32_t at, uint64_t bytes)
{
	struct sample_ring fresh, *ring = &s->rings[at];
	int error = make_ring(s, at, bytes, &fresh);

	if (!error && bpf_map_update_elem(bpf_map__fd(s->skel->maps.rings), &at, &fresh.fd, BPF_ANY)) {
		error = -errno;
		close_ring(&fresh);
	}
	if (error) {
		log_debug("ring %u stays at %llu KB: %s", at, (unsigned long long)ring->bytes >> 10, strerror(-error));
		return;
	}
	(void)ring_buffer__consume(ring->reader);
	log_debug("ring %u: %llu KB, and %llu KB from now on", at, (unsigned long long)ring->bytes >> 10,
		  (unsigned long long)bytes >> 10);
	close_ring(ring);
	*ring = fresh;
}

int sampler_drain(struct sampler *s, void (*fn)(void *arg, const struct record *record), void *arg)
{
	int result = 0;

	s->fn = fn;
	s->arg = arg;
	for (uint32_t i = 0; i < s->ring_cnt; i++) {
		struct sample_ring *ring = &s->rings[i];
		int n;

		ring->drained = 0;
		n = ring_buffer__consume(ring->reader);
		if (n < 0 && !result)
			result = n;
		if (ring->most < ring->drained)
			ring->most = ring->drained;
		/* The kernel wakes us at a quarter. At half it cuts stacks. */
		if (ring->drained > ring->bytes / 8 * 3 && ring->bytes < s->most_ring_bytes)
			replace(s, i, ring->bytes * 2);
		else if (ring->calm >= CALM_INTERVALS && ring->bytes > s->ring_bytes)
			replace(s, i, ring->bytes / 2);
	}
	return result;
}

void sampler_rings_settle(struct sampler *s)
{
	for (uint32_t i = 0; i < s->ring_cnt; i++) {
		struct sample_ring *ring = &s->rings[i];

		ring->calm = ring->most > ring->bytes / 8 ? 0 : ring->calm + 1;
		ring->most = 0;
	}
}

void sampler_rings_free(struct sampler *s)
{
	(void)sampler_rings_wait(s);
	for (uint32_t i = 0; i < s->ring_cnt; i++)
		close_ring(&s->rings[i]);
	if (s->rings_fd > 0)
		close(s->rings_fd);
}

int sampler_fd(const struct sampler *s)
{
	return s->rings_fd;
}

uint32_t sampler_rings(const struct sampler *s)
{
	return s->ring_cnt;
}

uint64_t sampler_rings_bytes(const struct sampler *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->ring_cnt; i++)
		sum += s->rings[i].bytes;
	return sum;
}
