/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One array of jumps that leave their function for a place that is no function's start, sorted by target. It has near jumps,
 * conditional or not, wherever bytes look like one: users check that a path leads there. The array is made once and only
 * read afterwards. Only x86-64 has one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/jumps.h"
#include "base/search.h"
#include "base/vec.h"

enum { LONGEST_JUMP = 6, MAX_JUMPS = 1 << 20, MAX_SCAN_BYTES = 64 << 20 };

struct jump {
	uint32_t to, from; /* distances from base; all code is within 4 GB of it, see code_starts_new */
};

struct code_jumps {
	uint64_t base;	  /* the first segment's address */
	struct jump *all; /* by target */
	uint32_t count, room;
};

static int add(struct code_jumps *j, uint64_t from, uint64_t to)
{
	if (j->count == MAX_JUMPS)
		return 0;
	if (vec_reach(&j->all, &j->room, j->count))
		return -ENOMEM;
	j->all[j->count++] = (struct jump){ (uint32_t)(to - j->base), (uint32_t)(from - j->base) };
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct jump *x = a, *y = b;

	return x->to != y->to ? (x->to < y->to ? -1 : 1) : x->from < y->from ? -1 : x->from > y->from;
}

/* The length of the jump with a 32-bit distance that may start at @code. */
static uint64_t jump_bytes(const uint8_t *code)
{
	if (CPU_HAS_LR)
		return 0;
	return code[0] == 0xe9 ? 5 : code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 6 : 0;
}

/* Does the jump leave its function, and not for the start of another one (its last call)? */
static int leaves(struct code_starts *starts, uint64_t from, uint64_t to)
{
	struct code_function f;
	int r = code_starts_find(starts, from, from + 1, &f);

	if (r || to - f.start < f.end - f.start)
		return r == -ENOENT ? 0 : r;
	r = code_starts_find(starts, to, to + 1, &f);
	return r == -ENOENT ? 1 : r ? r : f.start != to;
}

static int scan(struct code_jumps *j, struct code_starts *starts, const uint8_t *code, uint64_t addr, uint64_t len)
{
	int r = 0;

	for (uint64_t at = 0; r >= 0 && len <= MAX_SCAN_BYTES && len - at >= LONGEST_JUMP; at++) {
		uint64_t bytes = jump_bytes(code + at), to;
		int32_t distance;

		if (!bytes)
			continue;
		memcpy(&distance, code + at + bytes - sizeof(distance), sizeof(distance));
		to = at + bytes + (uint64_t)(int64_t)distance;
		r = to < len ? leaves(starts, addr + at, addr + to) : 0;
		if (r > 0)
			r = add(j, addr + at, addr + to);
	}
	return r < 0 ? r : 0;
}

int code_jumps_new(struct code_starts *starts, struct code_jumps **ret)
{
	struct code_jumps *j = calloc(1, sizeof(*j));
	uint64_t addr, len;
	const uint8_t *code;
	int r = j ? 0 : -ENOMEM;

	for (uint32_t i = 0; !r && (code = code_starts_segment(starts, i, &addr, &len)); i++) {
		j->base = i ? j->base : addr;
		r = scan(j, starts, code, addr, len);
	}
	if (r) {
		code_jumps_free(j);
		return r;
	}
	if (j->count)
		qsort(j->all, j->count, sizeof(*j->all), compare);
	vec_fit(&j->all, &j->room, j->count);
	*ret = j;
	return 0;
}

void code_jumps_free(struct code_jumps *j)
{
	if (!j)
		return;
	free(j->all);
	free(j);
}

int code_jumps_into(const struct code_jumps *j, uint64_t low, uint64_t high, uint64_t *from)
{
	uint32_t first = search_first(at, j->count, j->base + j->all[at].to >= low);
	int n = 0;

	for (uint32_t i = first; i < j->count && j->base + j->all[i].to < high; i++) {
		uint64_t place = j->base + j->all[i].from;

		if (place >= low && place < high)
			continue;
		if (n == CODE_JUMPS_MAX)
			return 0;
		from[n++] = place;
	}
	return n;
}
