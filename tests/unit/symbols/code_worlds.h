/* SPDX-License-Identifier: Apache-2.0 */
/* Random functions, inlined calls and lines, told to a struct code_names: what its tests and those of the index ask about.
 */
#ifndef HEARTH_TESTS_CODE_WORLDS_H
#define HEARTH_TESTS_CODE_WORLDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "symbols/code/names.h"

static inline uint32_t add_function(struct code_names *c, const char *name)
{
	return code_names_function(c, name, strlen(name), 0);
}

static inline uint32_t add_file(struct code_names *c, const char *path)
{
	return code_names_file(c, path, strlen(path));
}

enum { SPACE = 400, SOURCES = 3, RANGES = 40, ROWS = 60 };

struct random_range {
	uint64_t start, end;
	uint32_t source, node, depth;
};

struct random_row {
	uint64_t addr;
	uint32_t source, sequence, line; /* line 0: the sequence's end */
};

struct world {
	struct random_range ranges[SOURCES * RANGES];
	size_t range_count;
	struct random_row rows[SOURCES * ROWS * 2];
	size_t row_count;
	uint32_t depth[SOURCES * RANGES], parent[SOURCES * RANGES];
};

static inline uint32_t below(uint32_t *seed, uint32_t limit)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % limit;
}

static inline void make_world(struct world *w, uint32_t *seed)
{
	uint32_t nodes = 0, sequence = 0;

	*w = (struct world){ 0 };
	for (uint32_t s = 0; s < SOURCES; s++) {
		uint32_t first = nodes, rows = 0;

		for (uint32_t i = below(seed, RANGES); i > 0; i--, nodes++) {
			struct random_range *r = &w->ranges[w->range_count++];

			w->parent[nodes] = nodes > first && below(seed, 3) ? first + below(seed, nodes - first) : CODE_NONE;
			w->depth[nodes] = w->parent[nodes] == CODE_NONE ? 0 : w->depth[w->parent[nodes]] + 1;
			*r = (struct random_range){ .start = below(seed, SPACE), .source = s, .node = nodes };
			r->end = r->start + below(seed, 60);
			r->depth = w->depth[nodes];
		}
		/* Sequences that ascend and do not overlap within their source, told in an order of their own. */
		for (uint64_t addr = below(seed, 50); rows < ROWS && addr < SPACE; sequence++, addr += below(seed, 3) * 10) {
			for (uint32_t n = 1 + below(seed, 8); n > 0; n--, rows++, addr += below(seed, 12))
				w->rows[w->row_count++] = (struct random_row){ addr, s, sequence,
									       sequence % 5 ? w->row_count / 3 + 1 : 7 };
			w->rows[w->row_count++] = (struct random_row){ ++addr, s, sequence, 0 };
		}
	}
}

static inline struct code_names *tell_world(const struct world *w, const uint64_t *wanted, size_t count, bool is_backwards)
{
	struct code_names *c = code_names_new(wanted, count);
	char name[16];

	for (uint32_t s = 0; s < SOURCES; s++) {
		uint32_t last_sequence = 0;

		code_names_begin(c, CODE_SOURCE_GO + (int)s);
		for (size_t i = 0; i < w->range_count; i++) {
			const struct random_range *r = &w->ranges[i];

			if (r->source != s)
				continue;
			snprintf(name, sizeof(name), "n%u", r->node);
			assert_int_equal(code_names_node(c, w->parent[r->node], add_function(c, name), add_file(c, "call"),
							 r->node, 0),
					 r->node);
			code_names_range(c, r->start, r->end, r->node);
		}
		for (size_t i = 0; i < w->row_count; i++)
			last_sequence = w->rows[i].source == s ? w->rows[i].sequence : last_sequence;
		for (uint32_t n = 0; n <= last_sequence; n++) {
			uint32_t sequence = is_backwards ? last_sequence - n : n;

			for (size_t i = 0; i < w->row_count; i++) {
				const struct random_row *r = &w->rows[i];

				if (r->source == s && r->sequence == sequence)
					code_names_line(c, r->addr, r->line ? add_file(c, "line") : CODE_NONE, r->line, 1);
			}
		}
	}
	assert_int_equal(code_names_finish(c), 0);
	return c;
}

#endif
