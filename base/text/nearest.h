/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean ...?": the nearest of several known names to a mistyped one. */
#ifndef HEARTH_BASE_TEXT_NEAREST_H
#define HEARTH_BASE_TEXT_NEAREST_H

#include <stddef.h>

struct nearest {
	const char *word; /* the word that was typed */
	const char
		*best; /* the nearest name offered so far, borrowed; NULL when none is near enough to be worth a question */
	size_t distance; /* its edit distance; names further than this are not taken */
};

struct nearest nearest_to(const char *word);

/* Offers a name; the first of several equally near ones wins. */
void nearest_offer(struct nearest *n, const char *name);

#endif
