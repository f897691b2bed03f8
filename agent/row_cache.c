/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of slots, one for each group that falls on it. A slot owns one piece of memory: its rules, then the places where
 * they hold. Agent's thread.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/row_cache.h"

enum {
	SLOTS = 2048,
	RECENT_RULES = 32, /* so many are looked through for an equal one: a file's size is its own choice */
};

struct place { /* from the group's start */
	uint16_t start, end;
	uint16_t rule;
};

struct slot {
	uint32_t file; /* 0: free */
	uint32_t place_cnt, rule_cnt;
	uint64_t group;
	struct row *rules; /* whose ranges say nothing; the places stand behind them */
};

struct row_cache {
	struct slot slots[SLOTS];
};

int row_cache_new(struct row_cache **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void row_cache_free(struct row_cache *c)
{
	for (size_t i = 0; c && i < SLOTS; i++)
		free(c->slots[i].rules);
	free(c);
}

static struct slot *slot_of(const struct row_cache *c, uint32_t file, uint64_t group)
{
	return (struct slot *)&c->slots[(group * 31 + file * 7919u) % SLOTS];
}

static struct slot *find_slot(const struct row_cache *c, uint32_t file, uint64_t addr)
{
	struct slot *s = slot_of(c, file, addr / ROW_GROUP_BYTES);

	return s->file == file && s->group == addr / ROW_GROUP_BYTES ? s : NULL;
}

static struct place *places_of(const struct slot *s)
{
	return (struct place *)(s->rules + s->rule_cnt);
}

/* All but the range. Bytes between the members may differ: then a rule is kept twice. */
static bool is_same_rule(const struct row *a, const struct row *b)
{
	enum { FIRST = offsetof(struct row, cfa), END = offsetof(struct row, saved) + sizeof(a->saved) };

	return memcmp((const uint8_t *)a + FIRST, (const uint8_t *)b + FIRST, END - FIRST) == 0;
}

/* The index of @rule among the last of @rules, where it is put if it is none of them. */
static uint32_t add_rule(struct row *rules, uint32_t *count, const struct row *rule)
{
	for (uint32_t i = *count; i > 0 && i + RECENT_RULES > *count; i--)
		if (is_same_rule(&rules[i - 1], rule))
			return i - 1;
	memcpy(&rules[*count], rule, sizeof(*rule));
	return (*count)++;
}

int row_cache_put(struct row_cache *c, uint32_t file, uint64_t addr, const struct row *rows, size_t count)
{
	uint64_t group = addr / ROW_GROUP_BYTES, base = group * ROW_GROUP_BYTES;
	struct slot *old = slot_of(c, file, group), s = { .file = file, .group = group, .place_cnt = (uint32_t)count };
	struct row *rules = malloc((count + 1) * (sizeof(*rules) + sizeof(struct place))), *fitted;
	uint16_t *of = rules ? (uint16_t *)(rules + count) : NULL; /* where the places will be, which are larger */

	if (!rules)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		of[i] = (uint16_t)add_rule(rules, &s.rule_cnt, &rows[i]);
	s.rules = malloc(s.rule_cnt * sizeof(*rules) + (count + 1) * sizeof(struct place));
	fitted = s.rules;
	if (fitted) {
		memcpy(fitted, rules, s.rule_cnt * sizeof(*rules));
		for (size_t i = 0; i < count; i++)
			places_of(&s)[i] = (struct place){ (uint16_t)(rows[i].start - base), (uint16_t)(rows[i].end - base),
							   of[i] };
		free(old->rules);
		*old = s;
	}
	free(rules);
	return fitted ? 0 : -ENOMEM;
}

bool row_cache_has(const struct row_cache *c, uint32_t file, uint64_t addr)
{
	return find_slot(c, file, addr);
}

/* The first place that reaches beyond @off. */
static uint32_t first_behind(const struct slot *s, uint64_t off)
{
	const struct place *places = places_of(s);
	uint32_t low = 0;

	for (uint32_t high = s->place_cnt; low < high;) {
		uint32_t mid = low + (high - low) / 2;

		if (places[mid].end <= off)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct row row_at(const struct slot *s, uint32_t i)
{
	const struct place *place = &places_of(s)[i];
	struct row row = s->rules[place->rule];

	row.start = s->group * ROW_GROUP_BYTES + place->start;
	row.end = s->group * ROW_GROUP_BYTES + place->end;
	return row;
}

bool row_cache_find(const struct row_cache *c, uint32_t file, uint64_t addr, struct row *ret)
{
	const struct slot *s = find_slot(c, file, addr);
	uint64_t off = addr % ROW_GROUP_BYTES;
	uint32_t i = s ? first_behind(s, off) : 0;

	if (!s || i == s->place_cnt || places_of(s)[i].start > off)
		return false;
	*ret = row_at(s, i);
	return true;
}

size_t row_cache_block(const struct row_cache *c, uint32_t file, uint64_t addr, struct row *rows)
{
	const struct slot *s = find_slot(c, file, addr);
	uint64_t off = addr % ROW_GROUP_BYTES / CODE_BLOCK_BYTES * CODE_BLOCK_BYTES;
	size_t count = 0;

	if (!s)
		return 0;
	for (uint32_t i = first_behind(s, off); i < s->place_cnt && places_of(s)[i].start < off + CODE_BLOCK_BYTES; i++)
		rows[count++] = row_at(s, i);
	return count;
}

int row_cache_learn(struct row_cache *c, uint32_t file, uint64_t addr, const struct row *row)
{
	struct slot *s = find_slot(c, file, addr);
	uint64_t off = addr % ROW_GROUP_BYTES;
	uint32_t i = s ? first_behind(s, off) : 0;
	struct row *rules;

	if (!s || i == s->place_cnt || places_of(s)[i].start > off)
		return 0;
	rules = malloc((s->rule_cnt + 1) * sizeof(*rules) + (s->place_cnt + 1) * sizeof(struct place));
	if (!rules)
		return -ENOMEM;
	memcpy(rules, s->rules, s->rule_cnt * sizeof(*rules));
	rules[s->rule_cnt] = *row;
	memcpy(rules + s->rule_cnt + 1, places_of(s), s->place_cnt * sizeof(struct place));
	free(s->rules);
	s->rules = rules;
	s->rule_cnt++;
	places_of(s)[i].rule = (uint16_t)(s->rule_cnt - 1);
	return 0;
}

void row_cache_forget(struct row_cache *c, uint32_t file)
{
	for (size_t i = 0; i < SLOTS; i++) {
		if (c->slots[i].file != file)
			continue;
		free(c->slots[i].rules);
		c->slots[i] = (struct slot){ 0 };
	}
}
