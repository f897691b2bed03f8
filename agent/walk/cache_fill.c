/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the kernel's caches. An entry that was put into one a moment ago is not put there again. Agent's thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/code/code_spaces.h"
#include "agent/walk/blocks.h"
#include "agent/walk/cache_fill.h"
#include "agent/kernel/sampler.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"

enum {
	RECENT_SLOTS = 16384,
	MAX_PREFILL = 256,		       /* pieces of a new process told to the kernel at once */
	SMALL_BYTES = 4 << MAPPING_PAGE_SHIFT, /* of a mapping that is told page by page */
	MAX_HOT_BLOCKS = 4096,		       /* of a file: a quarter of the smallest cache */
	FILL_BYTES = 4 * CODE_BLOCK_BYTES,
};

struct recent {
	uint32_t key;	  /* the bits of a hash that the slot's number does not tell */
	uint32_t time_ms; /* when, in the agent's time; 0: never */
};

struct cache_fill {
	struct files *files;
	struct code_spaces *code;
	struct sampler *sampler;
	uint64_t now_ns, kept_ns;
	struct recent recent[RECENT_SLOTS];
	struct metric *mappings, *blocks, *ahead, *errors;
};

int cache_fill_new(struct files *files, struct code_spaces *code, struct sampler *sampler, struct metrics *metrics,
		   struct cache_fill **ret)
{
	struct cache_fill *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->files = files;
	c->code = code;
	c->sampler = sampler;
	c->mappings = metrics_counter(metrics, "hearth_cache_mappings_filled_total", NULL,
				      "Entries put into the kernel's mapping cache.");
	c->blocks = metrics_counter(metrics, "hearth_cache_blocks_filled_total", NULL,
				    "Blocks of unwind rows put into the kernel's cache.");
	c->ahead = metrics_counter(metrics, "hearth_cache_blocks_ahead_total", NULL,
				   "Of these the ones put there before a sample missed them, as they ran in earlier lives.");
	c->errors = metrics_counter(metrics, "hearth_cache_fill_errors_total", NULL,
				    "Cache entries the kernel did not take.");
	*ret = c;
	return 0;
}

void cache_fill_free(struct cache_fill *c)
{
	free(c);
}

void cache_fill_begin(struct cache_fill *c, uint64_t now_ns, uint64_t kept_ns)
{
	c->now_ns = now_ns;
	c->kept_ns = kept_ns;
}

/* Is it time to put the thing with @key (a hash) into its cache? */
static bool should_fill(struct cache_fill *c, uint64_t key)
{
	struct recent *r = &c->recent[key % RECENT_SLOTS];
	uint32_t now_ms = (uint32_t)(c->now_ns / NSEC_PER_MSEC);

	if (c->kept_ns == UINT64_MAX ||
	    (r->time_ms && r->key == key >> 32 && now_ms - r->time_ms < c->kept_ns / NSEC_PER_MSEC))
		return false;
	r->key = (uint32_t)(key >> 32);
	r->time_ms = now_ms ? now_ms : 1;
	return true;
}

static uint64_t mix(uint64_t a, uint64_t b, uint64_t kind)
{
	uint64_t h = (a * 4 + kind) * 0x9E3779B97F4A7C15ull ^ b * 0xC2B2AE3D27D4EB4Full;

	h ^= h >> 29;
	return h * 0x9E3779B97F4A7C15ull;
}

static void put_mapping(struct cache_fill *c, const struct address_space *as, uint64_t addr, unsigned shift,
			const struct mapping *m, enum mapping_kind kind)
{
	uint64_t from = addr >> shift << shift, to = from + (1ull << shift);
	struct mapping_value value = {
		.asid = as->asid,
		.piece = addr >> shift,
		.start = m && m->start > from ? m->start : from,
		.end = m && m->end < to ? m->end : to,
		.bias = m ? m->bias : 0,
		.file = m && m->file ? m->file->id : 0,
		.kind = (uint16_t)kind,
		.shift = (uint16_t)shift,
	};

	if (!should_fill(c, mix((uint64_t)value.asid << 6 | shift, value.piece ^ value.end, 0)))
		return;
	metric_add(sampler_set_mapping(c->sampler, &value) ? c->errors : c->mappings, 1);
}

static bool is_of_same_code(const struct mapping *a, const struct mapping *b)
{
	return a && b && a->file && a->file->code && a->file == b->file;
}

/* The largest pieces around @addr that belong to @m, or, if that is NULL, to none. */
static unsigned shift_of(const struct address_space *as, uint64_t addr, const struct mapping *m)
{
	static const unsigned shifts[] = { MAPPING_HUGE_SHIFT, MAPPING_BIG_SHIFT };

	for (size_t i = 0; i < ARRAY_LEN(shifts); i++) {
		const struct mapping *owner = address_space_owner(as, addr, shifts[i]);

		if (owner == m || is_of_same_code(owner, m))
			return shifts[i];
	}
	return MAPPING_PAGE_SHIFT;
}

void cache_fill_mapping(struct cache_fill *c, struct address_space *as, uint64_t addr, const struct mapping *m,
			enum mapping_kind kind)
{
	unsigned shift = shift_of(as, addr, m);
	struct mapping run;

	if (!m)
		address_space_note_not_code(as, addr >> shift << shift, ((addr >> shift) + 1) << shift);
	else
		run = address_space_run(as, m);
	put_mapping(c, as, addr, shift, m ? &run : NULL, kind);
}

static enum mapping_kind kind_of(const struct mapping *m)
{
	return m->file && m->file->state == FILE_READABLE ? MAPPING_ROWS : MAPPING_FP;
}

void cache_fill_address_space(struct cache_fill *c, const struct address_space *as)
{
	uint32_t left = MAX_PREFILL;
	bool makes_code = c->code && code_spaces_has_runtime(c->code, as);

	if (!should_fill(c, mix(as->asid, 0, 3)))
		return;
	for (uint32_t i = 0; i < as->count; i++) {
		const struct mapping *m = &as->maps[i];
		struct mapping run = address_space_run(as, m);

		if ((!m->file || m->is_foreign) && makes_code) /* a runtime may yet say that it keeps code there */
			continue;
		for (uint64_t addr = run.start; addr < run.end && left; left--) {
			unsigned shift = shift_of(as, addr, m);

			if (shift == MAPPING_PAGE_SHIFT && run.end - run.start > SMALL_BYTES)
				shift = MAPPING_BIG_SHIFT;
			else
				put_mapping(c, as, addr, shift, &run, kind_of(m));
			addr = ((addr >> shift) + 1) << shift;
		}
		while (i + 1 < as->count && as->maps[i + 1].start < run.end)
			i++;
	}
}

static void put_block(struct cache_fill *c, const struct file *file, uint64_t va, const struct row *rows, size_t count)
{
	struct unwind_block parts[MAX_BLOCK_PARTS];
	uint64_t block = va / CODE_BLOCK_BYTES;
	uint32_t n;

	n = blocks_pack(file->id, block, rows, count, parts);
	for (uint32_t i = 0; i < n; i++)
		if (sampler_set_block(c->sampler, &parts[i]))
			metric_add(c->errors, 1);
	metric_add(c->blocks, n);
}

void cache_fill_block(struct cache_fill *c, const struct file *file, uint64_t va)
{
	struct row rows[CODE_BLOCK_BYTES];
	size_t count = files_block(c->files, file, va, rows);

	code_map_captures(c->code, file, rows, count);
	put_block(c, file, va, rows, count);
}

void cache_fill_piece(struct cache_fill *c, const struct file *file, const struct code_piece_range *piece)
{
	struct row rows[2 * CODE_BLOCK_BYTES];

	if (!piece->is_new && !should_fill(c, mix(file->id, piece->start, 2)))
		return;
	for (uint64_t at = piece->start / CODE_BLOCK_BYTES * CODE_BLOCK_BYTES; at < piece->end; at += CODE_BLOCK_BYTES)
		put_block(c, file, at, rows, code_block_rows(c->code, file, at, rows));
}

struct ahead {
	struct cache_fill *fill;
	const struct file *file;
};

static void put_ahead(void *arg, uint64_t va, const struct row *rows, size_t count)
{
	const struct ahead *a = arg;
	struct row mapped[CODE_BLOCK_BYTES];

	if (count > CODE_BLOCK_BYTES)
		return;
	memcpy(mapped, rows, count * sizeof(*rows));
	code_map_captures(a->fill->code, a->file, mapped, count);
	put_block(a->fill, a->file, va, mapped, count);
	metric_add(a->fill->ahead, 1);
}

void cache_fill_blocks(struct cache_fill *c, struct file *file, uint64_t va)
{
	uint64_t start = va / FILL_BYTES * FILL_BYTES;

	if (!file->is_filled_ahead) {
		struct ahead ahead = { c, file };

		file->is_filled_ahead = true;
		files_hot(c->files, file, MAX_HOT_BLOCKS, put_ahead, &ahead);
	}
	if (!should_fill(c, mix(file->id, start, 1)))
		return;
	for (uint64_t at = start; at < start + FILL_BYTES; at += CODE_BLOCK_BYTES)
		cache_fill_block(c, file, at);
}
