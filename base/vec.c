/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays: doubling, with every product checked. Stateless. */
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 8 };

int vec_grow(void *items, size_t *cap, size_t need, size_t max, size_t element_bytes, bool is_zero)
{
	size_t wanted = *cap > max / 2 ? max : *cap * 2;
	char *array;

	if (wanted < FIRST_CAP)
		wanted = FIRST_CAP;
	if (wanted < need)
		wanted = need;
	if (wanted > max)
		wanted = max;
	if (wanted < need)
		return -ENOMEM;
	memcpy(&array, items, sizeof(array));
	array = reallocarray(array, wanted, element_bytes);
	if (!array)
		return -ENOMEM;
	if (is_zero)
		memset(array + *cap * element_bytes, 0, (wanted - *cap) * element_bytes);
	memcpy(items, &array, sizeof(array));
	*cap = wanted;
	return 0;
}

void vec_shrink(void *items, size_t *cap, size_t count, size_t element_bytes)
{
	size_t wanted = count ? count : 1;
	char *array;

	if (wanted >= *cap)
		return;
	memcpy(&array, items, sizeof(array));
	array = realloc(array, wanted * element_bytes);
	if (!array)
		return;
	memcpy(items, &array, sizeof(array));
	*cap = wanted;
}
