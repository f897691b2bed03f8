/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edit distance with insertion, deletion, replacement and the swap of two neighbours each counting one (optimal string
 * alignment), kept to three rows of the table. A name counts as near within a third of the typed word's length, at least 2;
 * a word that is the beginning of a name counts as one edit away.
 */
#include "base/text/nearest.h"

#include <string.h>

enum { NAME_MAX_LEN = 48 };

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Both words shorter than NAME_MAX_LEN. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][NAME_MAX_LEN], len_b = strlen(b);
	size_t *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= len_b; j++)
		last[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t *oldest = before;

		now[0] = i;
		for (size_t j = 1; j <= len_b; j++) {
			size_t replaced = last[j - 1] + (a[i - 1] != b[j - 1]);

			now[j] = min_size(replaced, min_size(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = min_size(now[j], before[j - 2] + 1);
		}
		before = last;
		last = now;
		now = oldest;
	}
	return last[len_b];
}

struct nearest nearest_to(const char *word)
{
	size_t third = strlen(word) / 3;

	return (struct nearest){ .word = word, .distance = (third > 2 ? third : 2) + 1 };
}

void nearest_offer(struct nearest *n, const char *name)
{
	size_t len = strlen(n->word), distance;

	if (!len || len >= NAME_MAX_LEN || strlen(name) >= NAME_MAX_LEN)
		return;
	distance = edit_distance(n->word, name);
	if (len >= 2 && !strncmp(name, n->word, len))
		distance = min_size(distance, 1);
	/* A short word is an edit or two from anything, so a part of it must match. */
	if (distance < n->distance && distance < len) {
		n->distance = distance;
		n->best = name;
	}
}
