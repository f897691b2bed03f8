/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the target, with the place, where something does not hold. */
#ifndef HEARTH_TESTS_REQUIRE_H
#define HEARTH_TESTS_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

#endif
