/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of sets of slots, a slot for a group. A slot owns the places where rules hold; the rules are numbered, once for
 * all. When there are more places than are kept, those not used for longest go; when there are more rules than honest files
 * have, everything is forgotten. Agent's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/row_cache.h"
#include "base/intern.h"
#include "base/search.h"

enum {
	SETS = 2048,
	WAYS = 4,
	MAX_RULES = UINT16_MAX,
	MAX_PLACES = 3 << 18, /* 4.5 MB */
};

struct slot {
	uint32_t file; /* 0: free */
	uint32_t used; /* the clock at the last use */
	uint64_t group;
	uint16_t place_cnt, hot;
	struct row_place *places; /* owned */
};

struct row_cache {
	struct slot slots[SETS * WAYS];
	struct intern *rules;
	uint32_t place_cnt; /* of all */
	uint32_t clock;
};

int row_cache_new(struct row_cache **ret)
{
	struct row_cache *c = calloc(1, sizeof(*c));

	if (c)
		c->rules = intern_new();
	if (!c || !c->rules) {
		free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

static void empty(struct row_cache *c, struct slot *s)
{
	c->place_cnt -= s->place_cnt;
	free(s->places);
	*s = (struct slot){ 0 };
}

void row_cache_free(struct row_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < SETS * WAYS; i++)
		free(c->slots[i].places);
	intern_free(c->rules);
	free(c);
}

static struct slot *set_of(struct row_cache *c, uint32_t file, uint64_t group)
{
	return &c->slots[(group * 31 + file * 7919u) % SETS * WAYS];
}

static struct slot *find_slot(struct row_cache *c, uint32_t file, uint64_t addr)
{
	uint64_t group = addr / ROW_GROUP_BYTES;
	struct slot *set = set_of(c, file, group);

	for (int i = 0; i < WAYS; i++) {
		if (set[i].file != file || set[i].group != group)
			continue;
		set[i].used = ++c->clock;
		return &set[i];
	}
	return NULL;
}

/* The slot of the group of @addr, or one for it: a free one, else the one not used for longest. */
static struct slot *take_slot(struct row_cache *c, uint32_t file, uint64_t addr)
{
	struct slot *set = set_of(c, file, addr / ROW_GROUP_BYTES), *s = find_slot(c, file, addr);

	if (s)
		return s;
	s = set;
	for (int i = 1; i < WAYS && s->file; i++)
		if (!set[i].file || set[i].used - c->clock < s->used - c->clock)
			s = &set[i];
	return s;
}

/* The number of @row's rule, or -ENOMEM. */
static int number_rule(struct row_cache *c, const struct row *row)
{
	uint32_t number;
	struct row rule;

	memset(&rule, 0, sizeof(rule)); /* what is between the members counts too */
	rule.cfa = row->cfa;
	rule.cfa_reg = row->cfa_reg;
	rule.is_signal_frame = row->is_signal_frame;
	rule.is_guess = row->is_guess;
	rule.is_followed = row->is_followed;
	rule.is_behind_syscall = row->is_behind_syscall;
	rule.is_end = row->is_end;
	rule.wrong_cnt = row->wrong_cnt;
	rule.capture = row->capture;
	rule.cfa_off = row->cfa_off;
	rule.cfa_off2 = row->cfa_off2;
	memcpy(rule.saved, row->saved, sizeof(rule.saved));
	return intern_add(c->rules, &rule, sizeof(rule), &number) < 0 ? -ENOMEM : (int)number;
}

static int compare_ages(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Forgets the quarter of the groups that was not used for longest. */
static void drop_oldest(struct row_cache *c)
{
	uint32_t ages[SETS * WAYS], limit;
	size_t count = 0;

	for (size_t i = 0; i < SETS * WAYS; i++)
		if (c->slots[i].file)
			ages[count++] = c->clock - c->slots[i].used;
	if (!count)
		return;
	qsort(ages, count, sizeof(*ages), compare_ages);
	limit = ages[count - 1 - count / 4];
	for (size_t i = 0; i < SETS * WAYS; i++)
		if (c->slots[i].file && c->clock - c->slots[i].used >= limit)
			empty(c, &c->slots[i]);
}

/* Makes room for as many rules and places as @count rows may need. */
static void make_room(struct row_cache *c, size_t count)
{
	while (c->place_cnt && c->place_cnt + count > MAX_PLACES)
		drop_oldest(c);
	if (intern_count(c->rules) + count <= MAX_RULES)
		return;
	for (size_t i = 0; i < SETS * WAYS; i++)
		empty(c, &c->slots[i]);
	intern_shrink(c->rules);
}

/* The first place that reaches beyond @off. */
static uint32_t first_behind(const struct slot *s, uint64_t off)
{
	return search_first(at, s->place_cnt, s->places[at].end > off);
}

/* The byte at @off alone says from now on what its row does, and that stacks end there. There is room. 0 or -ENOMEM. */
static int end_at(struct row_cache *c, struct slot *s, uint64_t off)
{
	uint32_t i = first_behind(s, off), n = i, old_cnt = s->place_cnt;
	bool is_covered = i < old_cnt && s->places[i].start <= off;
	struct row rule = { .cfa = ROW_CFA_NONE };
	struct row_place *places, covering = { (uint16_t)off, (uint16_t)(off + 1), 0 };
	int number;

	if (is_covered) {
		covering = s->places[i];
		rule = *row_cache_rule(c, covering.rule);
	}
	rule.is_end = true;
	number = number_rule(c, &rule);
	places = number < 0 ? NULL : realloc(s->places, (old_cnt + 2) * sizeof(*places));
	if (!places)
		return -ENOMEM;
	memmove(&places[i + 2], &places[i], (old_cnt - i) * sizeof(*places));
	if (covering.start < off)
		places[n++] = (struct row_place){ covering.start, (uint16_t)off, covering.rule };
	places[n++] = (struct row_place){ (uint16_t)off, (uint16_t)(off + 1), (uint16_t)number };
	if (covering.end > off + 1)
		places[n++] = (struct row_place){ (uint16_t)(off + 1), covering.end, covering.rule };
	memmove(&places[n], &places[i + 2 + is_covered], (old_cnt - i - is_covered) * sizeof(*places));
	s->places = places;
	s->place_cnt = (uint16_t)(n + old_cnt - i - is_covered);
	c->place_cnt += s->place_cnt - old_cnt;
	return 0;
}

int row_cache_put(struct row_cache *c, uint32_t file, uint64_t addr, const struct row *rows, size_t count)
{
	uint64_t base = addr / ROW_GROUP_BYTES * ROW_GROUP_BYTES;
	struct row_place *places = malloc((count + 1) * sizeof(*places));
	struct slot *s = find_slot(c, file, addr), old = { 0 };
	int error = 0;

	if (!places)
		return -ENOMEM;
	make_room(c, count + (s ? 2 * s->place_cnt : 0));
	for (size_t i = 0; i < count; i++) {
		int rule = number_rule(c, &rows[i]);

		if (rule < 0) {
			free(places);
			return rule;
		}
		places[i] = (struct row_place){ (uint16_t)(rows[i].start - base), (uint16_t)(rows[i].end - base),
						(uint16_t)rule };
	}
	s = take_slot(c, file, addr);
	if (s->file == file && s->group == addr / ROW_GROUP_BYTES) {
		old = *s;
		s->places = NULL;
	}
	empty(c, s);
	*s = (struct slot){ .file = file,
			    .used = ++c->clock,
			    .group = addr / ROW_GROUP_BYTES,
			    .place_cnt = (uint16_t)count,
			    .hot = old.hot,
			    .places = places };
	c->place_cnt += (uint32_t)count;
	for (uint32_t i = 0; i < old.place_cnt && !error; i++)
		if (row_cache_rule(c, old.places[i].rule)->is_end)
			error = end_at(c, s, old.places[i].start);
	free(old.places);
	return error;
}

int row_cache_end(struct row_cache *c, uint32_t file, uint64_t addr)
{
	struct slot *s;

	make_room(c, 2);
	s = find_slot(c, file, addr);
	return s ? end_at(c, s, addr % ROW_GROUP_BYTES) : 0;
}

bool row_cache_has(struct row_cache *c, uint32_t file, uint64_t addr)
{
	return find_slot(c, file, addr);
}

static struct row row_at(const struct row_cache *c, const struct slot *s, uint32_t i)
{
	const struct row_place *place = &s->places[i];
	struct row row = *row_cache_rule(c, place->rule);

	row.start = s->group * ROW_GROUP_BYTES + place->start;
	row.end = s->group * ROW_GROUP_BYTES + place->end;
	return row;
}

/* The place of @addr, which may be in a gap. */
static struct row_place *find_place(struct slot *s, uint64_t addr)
{
	uint64_t off = addr % ROW_GROUP_BYTES;
	uint32_t i = s ? first_behind(s, off) : 0;

	return !s || i == s->place_cnt || s->places[i].start > off ? NULL : &s->places[i];
}

bool row_cache_find(struct row_cache *c, uint32_t file, uint64_t addr, struct row *ret)
{
	struct slot *s = find_slot(c, file, addr);
	const struct row_place *place = find_place(s, addr);

	if (place)
		*ret = row_at(c, s, (uint32_t)(place - s->places));
	return place;
}

size_t row_cache_block(struct row_cache *c, uint32_t file, uint64_t addr, struct row *rows)
{
	const struct slot *s = find_slot(c, file, addr);
	uint64_t off = addr % ROW_GROUP_BYTES / CODE_BLOCK_BYTES * CODE_BLOCK_BYTES;
	size_t count = 0;

	if (!s)
		return 0;
	for (uint32_t i = first_behind(s, off); i < s->place_cnt && s->places[i].start < off + CODE_BLOCK_BYTES; i++)
		rows[count++] = row_at(c, s, i);
	return count;
}

int row_cache_learn(struct row_cache *c, uint32_t file, uint64_t addr, const struct row *row)
{
	struct row_place *place;
	int rule;

	make_room(c, 1);
	place = find_place(find_slot(c, file, addr), addr);
	rule = place ? number_rule(c, row) : 0;
	if (place && rule >= 0)
		place->rule = (uint16_t)rule;
	return rule < 0 ? rule : 0;
}

void row_cache_mark(struct row_cache *c, uint32_t file, uint64_t addr)
{
	struct slot *s = find_slot(c, file, addr);

	if (s)
		s->hot |= (uint16_t)(1u << addr % ROW_GROUP_BYTES / CODE_BLOCK_BYTES);
}

void row_cache_forget(struct row_cache *c, uint32_t file)
{
	for (size_t i = 0; i < SETS * WAYS; i++)
		if (c->slots[i].file == file)
			empty(c, &c->slots[i]);
}

bool row_cache_next(const struct row_cache *c, size_t *pos, struct row_group *ret)
{
	while (*pos < SETS * WAYS) {
		const struct slot *s = &c->slots[(*pos)++];

		if (!s->file)
			continue;
		*ret = (struct row_group){ s->group, s->file, s->place_cnt, s->hot, s->places };
		return true;
	}
	return false;
}

uint32_t row_cache_rule_count(const struct row_cache *c)
{
	return intern_count(c->rules);
}

const struct row *row_cache_rule(const struct row_cache *c, uint32_t number)
{
	return intern_get(c->rules, number, NULL);
}

size_t row_cache_memory_bytes(const struct row_cache *c)
{
	return sizeof(*c) + c->place_cnt * sizeof(struct row_place) + intern_memory_bytes(c->rules);
}
