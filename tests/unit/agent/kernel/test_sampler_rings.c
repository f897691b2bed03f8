/* SPDX-License-Identifier: Apache-2.0 */
/* Rings become larger when they are found full and smaller when they have long held little, and nothing of the old one is
 * lost. libbpf's rings are made up here: each holds so many records. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/kernel/sampler_rings.h"
#include "agent/kernel/sampler_state.h"
#include "tests/unit/descriptors.h"

enum { RECORD_BYTES = 1 << 16, MB = 1 << 20 };

struct ring_buffer {
	ring_buffer_sample_fn fn;
	void *ctx;
	int map, epoll;
};

static uint32_t waiting[64];		/* records in the ring of this descriptor */
static uint32_t sizes[64];		/* its bytes; 0: it is not there, or was closed */
static uint32_t late;			/* records that programs still put into the old ring while it is replaced */
static int told[MAX_RINGS], made, fail; /* the kernel's table; rings that were made; the next is refused */
static int table;			/* the table's descriptor */
static bool table_fails, has_batches;
static uint32_t refused_ring = UINT32_MAX; /* this one may not stand in the table */

int bpf_map_create(enum bpf_map_type type, const char *name, uint32_t key, uint32_t value, uint32_t entries,
		   const struct bpf_map_create_opts *opts)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	assert_true(name && fd > 0 && fd < 64);
	if (type == BPF_MAP_TYPE_ARRAY_OF_MAPS) {
		assert_true(key == 4 && value == 4 && entries == MAX_RINGS && sizes[opts->inner_map_fd]);
		if (!table_fails)
			return fd;
		close(fd);
		errno = EPERM;
		return -1;
	}
	assert_true(type == BPF_MAP_TYPE_RINGBUF && !key && !value && !opts);
	if (fail) {
		close(fd);
		errno = ENOMEM;
		return -1;
	}
	sizes[fd] = entries;
	waiting[fd] = 0;
	made++;
	return fd;
}

int bpf_map__fd(const struct bpf_map *map)
{
	(void)map;
	return table;
}

int bpf_map__reuse_fd(struct bpf_map *map, int fd)
{
	(void)map;
	table = dup(fd);
	return 0;
}

int bpf_map_update_batch(int map, const void *keys, const void *values, __u32 *count, const struct bpf_map_batch_opts *opts)
{
	assert_true(map == table && *count > 1 && !opts);
	if (!has_batches) {
		*count = 0;
		errno = 524; /* ENOTSUPP */
		return -1;
	}
	for (uint32_t i = 0; i < *count; i++)
		told[((const uint32_t *)keys)[i]] = ((const int *)values)[i];
	return 0;
}

int bpf_map_update_elem(int map, const void *key, const void *value, __u64 flags)
{
	uint32_t at = *(const uint32_t *)key;

	assert_true(map == table && !flags);
	if (refused_ring == at) {
		errno = EINVAL;
		return -1;
	}
	if (told[at])
		waiting[told[at]] += late;
	told[at] = *(const int *)value;
	return 0;
}

struct ring_buffer *ring_buffer__new(int fd, ring_buffer_sample_fn fn, void *ctx, const struct ring_buffer_opts *opts)
{
	struct ring_buffer *r = malloc(sizeof(*r));

	assert_true(r && !opts);
	*r = (struct ring_buffer){ fn, ctx, fd, eventfd(0, EFD_CLOEXEC) };
	return r;
}

void ring_buffer__free(struct ring_buffer *r)
{
	if (r) {
		sizes[r->map] = 0;
		close(r->epoll);
	}
	free(r);
}

int ring_buffer__epoll_fd(const struct ring_buffer *r)
{
	return r->epoll;
}

int ring_buffer__consume(struct ring_buffer *r)
{
	struct record record = { .size = RECORD_BYTES };
	int n = 0;

	for (; waiting[r->map]; waiting[r->map]--, n++)
		assert_int_equal(r->fn(r->ctx, &record, RECORD_BYTES), 0);
	return n;
}

static uint64_t seen;

static void see(void *arg, const struct record *record)
{
	(void)arg, (void)record;
	seen++;
}

/* Puts @n records into the first ring and reads the rings. All are seen. Returns the first ring's bytes then. */
static uint64_t pass(struct sampler *s, uint32_t n)
{
	int before = made;

	seen = 0;
	waiting[told[0]] += n;
	assert_int_equal(sampler_drain(s, see, NULL), 0);
	assert_int_equal(seen, n + (made > before ? late : 0));
	assert_int_equal(sizes[told[0]], s->rings[0].bytes);
	return s->rings[0].bytes;
}

static void begin(struct sampler *s, struct sampler_bpf *skel, uint64_t wanted, unsigned freq_hz)
{
	*s = (struct sampler){ .skel = skel, .possible_cpus = 8 };
	made = 0;
	sampler_rings_choose(s, wanted, freq_hz);
	assert_int_equal(sampler_rings_make(s), 0);
	assert_int_equal(sampler_rings_wait(s), 0);
	assert_int_equal(made, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(told[i], s->rings[i].fd);
}

static void end(struct sampler *s)
{
	sampler_rings_free(s);
	for (int i = 0; i < 2; i++)
		assert_int_equal(sizes[told[i]], 0);
	told[0] = told[1] = 0;
	close(table);
}

static void test_growth(void **state)
{
	struct sampler_bpf skel = { 0 };
	struct sampler s;

	(void)state;
	late = 3;
	begin(&s, &skel, 0, 99);
	assert_int_equal(sampler_rings_bytes(&s), 4 * MB);
	assert_int_equal(pass(&s, 12), 2 * MB);
	assert_int_equal(pass(&s, 13), 4 * MB);
	assert_int_equal(pass(&s, 24), 4 * MB);
	assert_int_equal(pass(&s, 64), 8 * MB);
	assert_int_equal(pass(&s, 128), 8 * MB);
	assert_int_equal(sampler_rings_bytes(&s), 10 * MB); /* the other was empty */
	for (int i = 0; i < 11; i++) {
		assert_int_equal(pass(&s, 1), 8 * MB);
		sampler_rings_settle(&s);
	}
	assert_int_equal(pass(&s, 17), 8 * MB); /* not calm: from the beginning */
	sampler_rings_settle(&s);
	for (int i = 0; i < 12; i++) {
		assert_int_equal(pass(&s, 16), 8 * MB);
		sampler_rings_settle(&s);
	}
	assert_int_equal(pass(&s, 1), 4 * MB);
	for (int i = 0; i < 12; i++)
		sampler_rings_settle(&s);
	assert_int_equal(pass(&s, 1), 2 * MB);
	for (int i = 0; i < 30; i++)
		sampler_rings_settle(&s);
	assert_int_equal(pass(&s, 1), 2 * MB);
	end(&s);
}

/* Without memory for a larger one the ring stays, and is read on. */
static void test_no_room(void **state)
{
	struct sampler_bpf skel = { 0 };
	struct sampler s;

	(void)state;
	begin(&s, &skel, 0, 99);
	fail = 1;
	assert_int_equal(pass(&s, 30), 2 * MB);
	assert_int_equal(pass(&s, 5), 2 * MB);
	fail = 0;
	assert_int_equal(pass(&s, 30), 4 * MB);
	end(&s);
}

static void test_chosen(void **state)
{
	struct sampler_bpf skel = { 0 };
	struct sampler s;

	(void)state;
	begin(&s, &skel, 3 * MB, 4999); /* for good, a power of two */
	assert_int_equal(pass(&s, 64), 4 * MB);
	for (int i = 0; i < 30; i++)
		sampler_rings_settle(&s);
	assert_int_equal(pass(&s, 1), 4 * MB);
	end(&s);
	begin(&s, &skel, 0, 500); /* known to be much */
	assert_int_equal(pass(&s, 1), 4 * MB);
	end(&s);
	begin(&s, &skel, 0, 4999);
	assert_int_equal(pass(&s, 128), 8 * MB);
	end(&s);
}

/* Rings that cannot be placed, in a kernel that takes them all at once and in one that does not. */
static void test_places(void **state)
{
	struct sampler_bpf skel = { 0 };
	struct sampler s;

	(void)state;
	for (int batches = 0; batches < 2; batches++) {
		has_batches = batches;
		begin(&s, &skel, 0, 99);
		assert_int_equal(pass(&s, 13), 4 * MB);
		refused_ring = 0;
		assert_int_equal(pass(&s, 64), 4 * MB); /* it stays, as the new one may not stand in its place */
		refused_ring = UINT32_MAX;
		assert_int_equal(pass(&s, 64), 8 * MB);
		end(&s);
	}
	has_batches = false;
	s = (struct sampler){ .skel = &skel, .possible_cpus = 8 };
	sampler_rings_choose(&s, 0, 99);
	refused_ring = 1;
	assert_int_equal(sampler_rings_make(&s), 0);
	assert_int_equal(sampler_rings_wait(&s), -EINVAL);
	refused_ring = UINT32_MAX;
	told[1] = told[0];
	end(&s);
	s = (struct sampler){ .skel = &skel, .possible_cpus = 8 };
	sampler_rings_choose(&s, 0, 99);
	table_fails = true;
	assert_int_equal(sampler_rings_make(&s), -EPERM);
	table_fails = false;
	sampler_rings_free(&s);
}

/* Of few CPUs a ring is smaller to begin with. */
static void test_first_size(void **state)
{
	static const struct {
		uint32_t cpus;
		unsigned freq_hz;
		uint64_t bytes;
	} cases[] = { { 1, 999, 2 * MB },  { 2, 999, 4 * MB }, { 3, 999, 8 * MB },
		      { 64, 999, 8 * MB }, { 64, 99, 2 * MB }, { 1, 4999, 8 * MB } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sampler s = { .possible_cpus = cases[i].cpus };

		sampler_rings_choose(&s, 0, cases[i].freq_hz);
		assert_int_equal(s.ring_bytes, cases[i].bytes);
		assert_int_equal(s.most_ring_bytes, 8 * MB);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places), cmocka_unit_test(test_growth),	  cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_chosen), cmocka_unit_test(test_first_size),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
