/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_AGENT_FEED_RINGS_H
#define TESTS_UNIT_AGENT_FEED_RINGS_H

/*
 * An intake without a kernel: the sampler's rings and the side band are stood in for by @rings, the helper by a service that
 * reads no file. A test includes it once.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/feed.h"
#include "base/metrics.h"

/* --- the kernel's side --- */

enum { RING_RECORDS = 16, PID = 1 << 30 /* nobody's */, STEPS = 200 };

static struct {
	struct {
		struct sample_record sample;
		uint64_t section, kernel[1];
	} ring[RING_RECORDS];
	uint32_t count, lost, seq;
	struct side_band_record *told; /* one at most */
	const struct record *flood;    /* behind the ring; NULL: nothing */
	uint32_t flood_count;
} rings;

int sampler_drain(struct sampler *s, void (*fn)(void *arg, const struct record *record), void *arg)
{
	(void)s;
	for (uint32_t i = 0; i < rings.count; i++)
		fn(arg, &rings.ring[i].sample.hdr);
	for (uint32_t i = 0; rings.flood && i < rings.flood_count; i++)
		fn(arg, rings.flood);
	rings.flood = NULL;
	rings.count = 0;
	return 0;
}

void side_band_drain(struct side_band *s, void (*fn)(void *arg, struct side_band_record *record), void *arg)
{
	struct side_band_record *record = rings.told;

	(void)s;
	rings.told = NULL;
	record ? fn(arg, record) : (void)0;
}

uint64_t sampler_malformed(const struct sampler *s)
{
	(void)s;
	return 0;
}

uint64_t sampler_rings_bytes(const struct sampler *s)
{
	(void)s;
	return sizeof(rings.ring);
}

int sampler_forget_proc(struct sampler *s, uint32_t pid)
{
	(void)s, (void)pid;
	return 0;
}

static struct {
	uint32_t parent, child, ended;
} followed;

void sampler_process_began(struct sampler *s, uint32_t parent, uint32_t child)
{
	(void)s;
	followed.parent = parent;
	followed.child = child;
}

void sampler_process_changed(struct sampler *s, uint32_t pid)
{
	(void)s, (void)pid;
}

void sampler_process_mapped(struct sampler *s, uint32_t pid, const char *path)
{
	(void)s, (void)pid, (void)path;
}

void sampler_process_ended(struct sampler *s, uint32_t pid)
{
	(void)s;
	followed.ended = pid;
}

int sampler_set_proc(struct sampler *s, struct proc_value *value)
{
	(void)s, (void)value;
	return 0;
}

int sampler_set_program(struct sampler *s, const struct program_key *key, const struct program_value *value)
{
	(void)s, (void)key, (void)value;
	return 0;
}

int sampler_set_chain(struct sampler *s, struct chain_state *state)
{
	(void)s, (void)state;
	return 0;
}

int sampler_set_mapping(struct sampler *s, struct mapping_value *value)
{
	(void)s, (void)value;
	return 0;
}

void sampler_forget_block(struct sampler *s, uint32_t file, uint32_t block)
{
	(void)s, (void)file, (void)block;
}

int sampler_set_capture(struct sampler *s, uint32_t number, const struct capture_class *what)
{
	(void)s, (void)number, (void)what;
	return 0;
}

int sampler_set_block(struct sampler *s, struct unwind_block *block)
{
	(void)s, (void)block;
	return 0;
}

/* --- the agent's --- */

static int answer(struct elf_service *s, const struct elf_request *request, int fd, const void *payload, size_t bytes,
		  struct buf *reply)
{
	(void)s, (void)request, (void)fd, (void)payload, (void)bytes, (void)reply;
	return -ENOEXEC; /* files are opened here, not read */
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
	in = (struct intake){ .metrics = metrics_new(), .kind_cnt = 1 };
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
	objects_free(in.objects);
	free(in.merged);
	files_free(in.files);
	metrics_free(in.metrics);
	return 0;
}

#endif
