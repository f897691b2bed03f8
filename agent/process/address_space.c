/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address spaces: a sorted array of disjoint executable mappings, copied on write when shared. Agent's thread only.
 */
#include <errno.h>
#include <string.h>

#include "agent/process/address_space.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/search.h"

static uint32_t last_asid; /* asids are unique in the life of the process; 29 bits fit the kernel's tags */

struct address_space *address_space_new(void)
{
	struct address_space *as = calloc(1, sizeof(*as));

	if (!as)
		return NULL;
	as->refs = 1;
	as->asid = ++last_asid;
	return as;
}

struct address_space *address_space_get(struct address_space *as)
{
	as->refs++;
	return as;
}

static void put_code(struct as_code *code)
{
	if (code && !--code->refs)
		code->free(code);
}

void address_space_put(struct address_space *as)
{
	if (!as || --as->refs)
		return;
	for (uint32_t i = 0; i < as->count; i++)
		file_put(as->maps[i].file);
	put_code(as->code);
	free(as->maps);
	free(as);
}

/* A copy with an asid of its own and room for @more mappings. */
static struct address_space *copy(const struct address_space *from, uint32_t more)
{
	struct address_space *as = address_space_new();

	if (!as)
		return NULL;
	as->cap = from->count + more;
	as->maps = malloc(as->cap * sizeof(*as->maps));
	if (!as->maps) {
		free(as);
		return NULL;
	}
	if (from->count)
		memcpy(as->maps, from->maps, from->count * sizeof(*as->maps));
	as->count = from->count;
	memcpy(as->replaced, from->replaced, sizeof(as->replaced));
	as->replaced_cnt = from->replaced_cnt;
	as->replaced_ns = from->replaced_ns;
	for (uint32_t i = 0; i < as->count; i++)
		file_get(as->maps[i].file);
	as->code = from->code;
	if (as->code)
		as->code->refs++;
	return as;
}

/* The index of the first mapping that ends above @addr. */
static uint32_t first_above(const struct address_space *as, uint64_t addr)
{
	return search_first(at, as->count, as->maps[at].end > addr);
}

const struct mapping *address_space_find(const struct address_space *as, uint64_t addr)
{
	uint32_t i = first_above(as, addr);

	return i < as->count && as->maps[i].start <= addr ? &as->maps[i] : NULL;
}

const struct mapping *address_space_owner(const struct address_space *as, uint64_t addr, unsigned shift)
{
	uint64_t from = addr >> shift << shift, to = from + (1ull << shift), most = 0;
	const struct mapping *owner = NULL;

	for (uint32_t i = first_above(as, from); i < as->count && as->maps[i].start < to; i++) {
		const struct mapping *m = &as->maps[i];
		uint64_t covered = (m->end < to ? m->end : to) - (m->start > from ? m->start : from);

		if (covered > most) {
			most = covered;
			owner = m;
		}
	}
	return owner;
}

static bool same_image(const struct mapping *a, uint64_t bias, const struct file *file)
{
	return a->file == file && (!file || a->bias == bias);
}

struct mapping address_space_run(const struct address_space *as, const struct mapping *m)
{
	uint32_t first = (uint32_t)(m - as->maps), last = first;
	struct mapping run = *m;

	if (!m->file || !m->file->code)
		return run;
	while (first && same_image(&as->maps[first - 1], m->bias, m->file))
		first--;
	while (last + 1 < as->count && same_image(&as->maps[last + 1], m->bias, m->file))
		last++;
	run.start = as->maps[first].start;
	run.end = as->maps[last].end;
	return run;
}

static int reserve(struct address_space *as, uint32_t count)
{
	struct mapping *maps;
	uint32_t cap = count + count / 4 + 4;

	if (count <= as->cap)
		return 0;
	maps = realloc(as->maps, cap * sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	as->maps = maps;
	as->cap = cap;
	return 0;
}

/* Cuts [start, end) out of the mappings and puts @new there. Room for two more is reserved. Returns true when something else
 * was mapped there. */
static bool overlay(struct address_space *as, const struct mapping *new)
{
	uint32_t i = first_above(as, new->start), n;
	bool replaced = false;

	if (i < as->count && as->maps[i].start < new->start) { /* its front stays */
		struct mapping *old = &as->maps[i];

		replaced |= !same_image(old, new->bias, new->file);
		if (old->end > new->end) { /* and its back too: split */
			memmove(old + 1, old, (as->count - i) * sizeof(*old));
			as->count++;
			file_get(old->file);
			old[1].start = new->end;
		}
		old->end = new->start;
		i++;
	}
	for (n = i; n < as->count && as->maps[n].end <= new->end; n++) {
		replaced |= !same_image(&as->maps[n], new->bias, new->file);
		file_put(as->maps[n].file);
	}
	if (n < as->count && as->maps[n].start < new->end) { /* its back stays */
		replaced |= !same_image(&as->maps[n], new->bias, new->file);
		as->maps[n].start = new->end;
	}
	memmove(&as->maps[i + 1], &as->maps[n], (as->count - n) * sizeof(*as->maps));
	as->count = as->count - (n - i) + 1;
	as->maps[i] = *new;
	return replaced;
}

/* A part of the kernel's entries under the old asid is wrong. */
static void renew_asid(struct address_space *as)
{
	as->asid = ++last_asid;
	as->chains_told = false;
	as->not_code_cnt = 0;
}

/* The range gets a new asid. */
static void note_replaced(struct address_space *as, uint64_t start, uint64_t end)
{
	uint32_t i = as->replaced_cnt++ % REPLACED_KEPT;

	renew_asid(as);
	as->replaced[i].start = start;
	as->replaced[i].end = end;
	as->replaced[i].asid = as->asid;
	as->replaced_ns = clock_mono_ns();
}

static struct mapping new_mapping(uint64_t start, uint64_t end, uint64_t pgoff, const struct file *file)
{
	struct mapping new = { .start = start, .end = end, .bias = start - pgoff, .file = (struct file *)(uintptr_t)file };

	if (file)
		new.is_foreign = file->state == FILE_UNREADABLE || file_bias(file, start, pgoff, &new.bias);
	return new;
}

bool address_space_would_replace(const struct address_space *as, uint64_t start, uint64_t end, uint64_t pgoff,
				 const struct file *file)
{
	struct mapping new = new_mapping(start, end, pgoff, file);

	for (uint32_t i = first_above(as, start); i < as->count && as->maps[i].start < end; i++)
		if (!same_image(&as->maps[i], new.bias, file))
			return true;
	return false;
}

void address_space_note_not_code(struct address_space *as, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < as->not_code_cnt && i < NOT_CODE_KEPT; i++)
		if (as->not_code[i].start <= start && as->not_code[i].end >= end)
			return;
	if (as->not_code_cnt < NOT_CODE_KEPT) {
		as->not_code[as->not_code_cnt].start = start;
		as->not_code[as->not_code_cnt].end = end;
	}
	as->not_code_cnt++;
}

/* Is it in the midst of generated code, but of something else? The kernel may take all there for that code. */
static bool is_among_code(const struct address_space *as, uint64_t start, uint64_t end, const struct file *file)
{
	uint64_t off;
	const struct file *code = address_space_code_file(as, start, end, &off);

	return code && code != file;
}

static bool was_not_code(const struct address_space *as, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < as->not_code_cnt && i < NOT_CODE_KEPT; i++)
		if (as->not_code[i].start < end && as->not_code[i].end > start)
			return true;
	return as->not_code_cnt > NOT_CODE_KEPT;
}

int address_space_map(struct address_space **as_p, uint64_t start, uint64_t end, uint64_t pgoff, struct file *file)
{
	struct address_space *as = *as_p;
	struct mapping new = new_mapping(start, end, pgoff, file);
	const struct mapping *there = address_space_find(as, start);
	bool changed = false;

	if (there && there->end >= end && same_image(there, new.bias, file))
		return 0;
	if (as->refs > 1) {
		as = copy(*as_p, 2);
		if (!as)
			return -ENOMEM;
		address_space_put(*as_p);
		*as_p = as;
		changed = true;
	}
	if (reserve(as, as->count + 2)) /* a copy has the room already */
		return -ENOMEM;
	file_get(file);
	if (file && file->info.runtime.kind)
		as->chains_told = false;
	if (overlay(as, &new)) {
		note_replaced(as, start, end);
		changed = true;
	} else if (was_not_code(as, start, end) || is_among_code(as, start, end, file)) {
		renew_asid(as);
		changed = true;
	}
	return changed;
}

bool address_space_is_stale(const struct address_space *as, uint32_t asid, uint64_t addr)
{
	uint32_t kept = as->replaced_cnt < REPLACED_KEPT ? as->replaced_cnt : REPLACED_KEPT;

	/* Older changes than those kept are forgotten: a row from before the oldest may be older than any of them. */
	if (as->replaced_cnt > REPLACED_KEPT && asid < as->replaced[as->replaced_cnt % REPLACED_KEPT].asid)
		return true;
	for (uint32_t i = 0; i < kept; i++)
		if (as->replaced[i].asid > asid && addr >= as->replaced[i].start && addr < as->replaced[i].end)
			return true;
	return false;
}

struct file *address_space_code_file(const struct address_space *as, uint64_t start, uint64_t end, uint64_t *off_ret)
{
	return as->code ? as->code->file_at(as->code, start, end, off_ret) : NULL;
}

void address_space_renew(struct address_space *as)
{
	renew_asid(as);
}

/* Gives the mapping, which has no file, or a foreign one, the one that stands for its code, if there is one. */
static void take_code_file(const struct address_space *as, struct mapping *m)
{
	uint64_t off;
	struct file *file = m->file && !m->is_foreign ? NULL : address_space_code_file(as, m->start, m->end, &off);

	if (!file)
		return;
	file_put(m->file);
	*m = new_mapping(m->start, m->end, off, file);
	file_get(file);
}

int address_space_set_code(struct address_space **as_p, struct as_code *code)
{
	struct address_space *as = *as_p;

	if (as->refs > 1) {
		as = copy(*as_p, 2);
		if (!as) {
			put_code(code);
			return -ENOMEM;
		}
		address_space_put(*as_p);
		*as_p = as;
	}
	put_code(as->code);
	as->code = code;
	for (uint32_t i = 0; i < as->count; i++)
		take_code_file(as, &as->maps[i]);
	renew_asid(as);
	return 1;
}
