/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring records with any content. The input is cut into records by a length of our own in front of each, as the ring buffer
 * keeps one; the size a record claims is at most that length (sampler.c sees to it), and nothing else in it is true. A bit
 * beside the length gives the record a version, a size and a CPU that pass the first look; another makes it a sample whose
 * first section has a length that fits, and which says so itself when it parses. The chains of samples are merged into their
 * stacks, in a process that has an interpreter's loop at 0 to 4095 and functions of scripts at 0, 8, ... 56.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/objects/objects.h"
#include "agent/process/process_objects.h"
#include "agent/samples/merge.h"
#include "agent/samples/reorder.h"
#include "base/cleanup.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CPUS = 4, PLAUSIBLE = 0x8000, SAMPLE = 0x4000, LENGTH_MASK = 0x3fff, FUNCTIONS = 8 };

struct counts {
	uint64_t latest_ns;
	uint32_t samples, objects;
	uint8_t sum; /* of all bytes handed out: each must be readable */
};

static void read_all(struct counts *c, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < len; i++)
		c->sum = (uint8_t)(c->sum + p[i]);
}

static void take_object(void *arg, const struct object_record *r)
{
	struct counts *c = arg;

	if (r->hdr.time_ns < c->latest_ns || r->hdr.size < sizeof(*r))
		abort();
	c->latest_ns = r->hdr.time_ns;
	c->objects++;
	read_all(c, r, r->hdr.size);
}

static const struct process *known_process(void)
{
	static struct file interpreter = { .id = 1,
					   .info = { .segment_count = 1,
						     .segments = { { .size_bytes = 4096 } },
						     .runtime = { .kind = RUNTIME_FILE_CHAIN, .loop = { 0, 4096 } } } };
	static struct process process = { .refs = 1 };
	static struct objects *objects;

	if (objects)
		return &process;
	process.as = address_space_new();
	REQUIRE(process.as && address_space_map(&process.as, 0, 4096, 0, &interpreter) >= 0 && !objects_new(&objects));
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		struct object *object;

		REQUIRE(!objects_add(objects, RUNTIME_PYTHON, &i, sizeof(i), &object) &&
			!process_set_object(&process, i * 8, 0, object));
	}
	return &process;
}

/* The native frames of what comes out are some of @s, in their order; the others are frames of its chains, no more than are
 * in them. */
static void merge(const struct pending_sample *s)
{
	static struct merged merged;
	struct chain_counts counts[RUNTIME_ID_MAX] = { 0 };
	uint64_t user[MAX_USER_FRAMES], sps[MAX_USER_FRAMES];
	uint32_t at = 0, scripts = 0;

	for (uint32_t i = 0; i < s->user_cnt; i++) {
		user[i] = s->user[i] & (FRAME_EXACT | FRAME_EXACT >> 8 | (FRAME_EXACT >> 8) - 1);
		sps[i] = sample_sp(s, i);
	}
	merge_chains(known_process(), s, user, sps, s->user_cnt, counts, &merged);
	REQUIRE(merged.count <= MAX_MERGED_FRAMES);
	for (uint32_t i = 0; i < merged.count; i++) {
		if (FRAME_IS_SCRIPT(merged.frames[i])) {
			REQUIRE(FRAME_OBJECT(merged.frames[i]) <= FUNCTIONS);
			scripts++;
			continue;
		}
		while (at < s->user_cnt && user[at] != merged.frames[i])
			at++;
		REQUIRE(at++ < s->user_cnt);
	}
	REQUIRE(scripts <= s->chain_cnt / 2 && scripts >= counts[RUNTIME_PYTHON].frames);
	REQUIRE(counts[RUNTIME_PYTHON].unknown_objects <= counts[RUNTIME_PYTHON].frames);
}

static bool take_sample(void *arg, const struct pending_sample *s)
{
	struct counts *c = arg;

	if (s->record->hdr.time_ns < c->latest_ns || s->record->end >= END_MAX)
		abort();
	c->latest_ns = s->record->hdr.time_ns;
	c->samples++;
	if (s->kernel_cnt > MAX_KERNEL_FRAMES || s->user_cnt > MAX_USER_FRAMES || !s->user != !s->user_cnt ||
	    s->wake_cnt > MAX_WAKES || s->chain_cnt > MAX_CHAIN_WORDS || !s->chain != !s->chain_cnt ||
	    s->sp_cnt > MAX_USER_FRAMES)
		abort();
	read_all(c, s->kernel, s->kernel_cnt * sizeof(*s->kernel));
	read_all(c, s->user, s->user_cnt * sizeof(*s->user));
	for (uint32_t i = 0; i < s->area_cnt; i++)
		read_all(c, s->areas[i].data, s->areas[i].bytes);
	if (s->regs)
		read_all(c, s->regs, sizeof(*s->regs));
	if (s->wait)
		read_all(c, s->wait, sizeof(*s->wait));
	if (s->target)
		read_all(c, s->target, sizeof(*s->target));
	read_all(c, s->wakes, s->wake_cnt * sizeof(*s->wakes));
	read_all(c, s->sps, s->sp_cnt * sizeof(*s->sps));
	if (s->chain_cnt)
		merge(s);
	return false;
}

static void take_side_band(void *arg, const struct side_band_record *record)
{
	(void)arg, (void)record;
	abort(); /* none was added */
}

/* @record, which has room for a section's content, as a sample that begins with a section of a length that fits. */
static void make_sample(struct record *record)
{
	struct sample_record *r = (void *)record;
	uint64_t *words = (void *)(r + 1), rest;

	record->kind = RECORD_SAMPLE;
	record->size &= ~7u;
	r->end %= END_MAX;
	rest = (record->size - sizeof(*r)) / 8 - 1;
	words[0] = SECTION(1 + SECTION_TYPE(words[0]) % SECTION_TARGET, SECTION_BYTES(words[0]) % (rest * 8 + 1));
}

/* One record in a block of exactly its length. 1 when a sample was taken in. */
static uint32_t add(struct pending *p, const uint8_t *data, size_t len, uint32_t head)
{
	AUTO_FREE struct record *record = malloc(len);

	if (!record)
		return 0;
	memcpy(record, data, len);
	if (head & PLAUSIBLE) {
		record->version = RECORD_VERSION;
		record->size = (uint32_t)len;
		record->cpu %= CPUS;
	}
	if (record->size > len)
		return 0;
	if (head & SAMPLE && record->size > sizeof(struct sample_record) + 8)
		make_sample(record);
	return pending_add(p, record) == 0 && record->kind == RECORD_SAMPLE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct pending_ops ops = { .object = take_object, .sample = take_sample, .side_band = take_side_band };
	struct counts counts = { 0 };
	uint32_t added = 0;
	struct pending *p;

	if (pending_new(CPUS, &p))
		return 0;
	while (size >= 2) {
		uint32_t head = (uint32_t)data[0] << 8 | data[1];
		size_t len = head & LENGTH_MASK;

		data += 2;
		size -= 2;
		len = len < size ? len : size;
		if (len < sizeof(struct record))
			break;
		added += add(p, data, len, head);
		data += len;
		size -= len;
	}
	if (pending_samples(p) != added)
		abort();
	pending_release(p, UINT64_MAX, &ops, &counts);
	/* A time of UINT64_MAX is not before it: such a sample stays, and is freed with the rest. */
	if (counts.samples + pending_samples(p) != added)
		abort();
	pending_free(p);
	return 0;
}
