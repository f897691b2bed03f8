/* SPDX-License-Identifier: Apache-2.0 */
/* The time and memory that hearth takes: of this process and, where it is one of two halves, of the other, which tells. */
#ifndef HEARTH_BASE_USAGE_H
#define HEARTH_BASE_USAGE_H

#include <stdint.h>

struct usage {
	uint64_t cpu_ns; /* of the process and the children it has waited for */
	uint64_t resident_bytes;
	int32_t pid;
};

/* Of this process, now. Any thread. */
struct usage usage_of_process(void);

/* The other half's, as it said last; all zeros: there is none. Any thread. */
struct usage usage_of_other(void);
void usage_set_other(const struct usage *u);

#endif
