/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of a store to a question, a line each, in whatever order they come; included after cmocka. */
#ifndef HEARTH_TESTS_STORE_TOLD_H
#define HEARTH_TESTS_STORE_TOLD_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct store;

struct told {
	struct store *s; /* that is asked, where what it tells needs another question */
	char lines[32][256];
	size_t count;
};

static int compare_lines(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The lines of @t are these, sorted, and are forgotten. */
static void check_told(struct told *t, const char *expected)
{
	char text[4096] = "";

	qsort(t->lines, t->count, sizeof(t->lines[0]), compare_lines);
	for (size_t i = 0; i < t->count; i++) {
		strcat(text, t->lines[i]);
		strcat(text, "\n");
	}
	assert_string_equal(text, expected);
	t->count = 0;
}

#endif
