/* SPDX-License-Identifier: Apache-2.0 */
/* Files with holes may be larger than the soft limit that a test was started with. */
#ifndef HEARTH_TESTS_LARGE_FILES_H
#define HEARTH_TESTS_LARGE_FILES_H

#include <stdlib.h>
#include <sys/resource.h>

static inline void allow_large_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit))
		abort();
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_FSIZE, &limit))
		abort();
}

#endif
