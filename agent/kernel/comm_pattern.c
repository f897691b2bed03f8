/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pattern is a row of items with a star before some of them (or at its end). Each item is one bit of the automaton, and so
 * is the end. Several patterns stand side by side; no character leads out of an end, so they do not run into each other.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "agent/kernel/comm_pattern.h"

enum { STATES = 64 };

struct compiler {
	struct comm_automaton *a;
	unsigned state; /* the next free one */
};

static void accept_range(struct compiler *c, unsigned first, unsigned last)
{
	for (unsigned i = first; i <= last; i++)
		c->a->accepts[i] |= 1ull << c->state;
}

/*
 * The set at @p, behind its '['. Returns the place behind the ']', or NULL: the set has no end, so '[' is a plain character.
 */
static const char *compile_set(struct compiler *c, const char *p)
{
	bool is_inverse = *p == '!' || *p == '^';
	const char *first = p + is_inverse, *end;
	uint64_t bit = 1ull << c->state;

	if (!*first)
		return NULL;
	end = strchr(first + 1, ']'); /* the first character may be ']' itself */
	if (!end)
		return NULL;
	for (p = first; p < end; p++) {
		unsigned from = (unsigned char)*p, to = from;

		if (p[1] == '-' && p + 2 < end) {
			to = (unsigned char)p[2];
			p += 2;
		}
		accept_range(c, from, to);
	}
	for (unsigned i = 1; i < 256 && is_inverse; i++)
		c->a->accepts[i] ^= bit;
	return end + 1;
}

/* Reads one item at @p; returns the place behind it. */
static const char *compile_item(struct compiler *c, const char *p)
{
	const char *behind = *p == '[' ? compile_set(c, p + 1) : NULL;

	if (behind)
		return behind;
	if (*p == '?') {
		accept_range(c, 1, 255);
		return p + 1;
	}
	if (*p == '\\' && p[1])
		p++;
	accept_range(c, (unsigned char)*p, (unsigned char)*p);
	return p + 1;
}

static int compile_pattern(struct compiler *c, const char *p)
{
	unsigned items = 0, stars = 0;

	if (!*p)
		return -EINVAL;
	if (c->state >= STATES)
		return -E2BIG;
	c->a->start |= 1ull << c->state;
	while (*p && (stars || items < COMM_BYTES - 1 || strchr(p, '*'))) {
		if (*p == '*') {
			c->a->stays |= 1ull << c->state;
			stars++;
			p++;
			continue;
		}
		p = compile_item(c, p);
		if (++c->state >= STATES)
			return -E2BIG;
		if (++items >= COMM_BYTES)
			return -EINVAL;
	}
	c->a->end |= 1ull << c->state++;
	return 0;
}

int comm_patterns_compile(const char *const *patterns, size_t count, struct comm_automaton *ret, size_t *which_ret)
{
	struct compiler c = { .a = ret };

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < count; i++) {
		int err = compile_pattern(&c, patterns[i]);

		*which_ret = i;
		if (err)
			return err;
	}
	return 0;
}

bool comm_automaton_matches(const struct comm_automaton *a, const char *comm)
{
	uint64_t states = a->start;

	for (int i = 0; i < COMM_BYTES - 1 && comm[i]; i++)
		states = (states & a->accepts[(unsigned char)comm[i]]) << 1 | (states & a->stays);
	return states & a->end;
}
