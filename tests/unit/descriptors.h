/* SPDX-License-Identifier: Apache-2.0 */
/* A group of tests that leaves as many descriptors open as it found. */
#ifndef HEARTH_TESTS_DESCRIPTORS_H
#define HEARTH_TESTS_DESCRIPTORS_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static inline int open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int count = -3; /* two names of folders, and the one that is read */

	if (!d)
		abort();
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

/* As cmocka_run_group_tests(), which it calls; with an output of its own for the failure, behind cmocka's. */
#define run_group_of_descriptors(tests, setup, teardown)                                                     \
	({                                                                                                   \
		int before = open_descriptors(), failed = cmocka_run_group_tests(tests, setup, teardown),    \
		    after = open_descriptors();                                                              \
                                                                                                             \
		if (after != before)                                                                         \
			printf("[  FAILED  ] %d descriptors were open before, %d are now\n", before, after); \
		failed + (after != before);                                                                  \
	})

#endif
