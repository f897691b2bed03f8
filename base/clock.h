/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time: CLOCK_MONOTONIC nanoseconds inside the program, Unix nanoseconds in the profile model. The offset between the two is
 * kept here; code that learns that the wall clock was set refreshes it.
 */
#ifndef HEARTH_BASE_CLOCK_H
#define HEARTH_BASE_CLOCK_H

#include <stdint.h>

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull
#define MINUTE_NS     (60 * NSEC_PER_SEC)
#define HOUR_NS	      (60 * MINUTE_NS)

uint64_t clock_mono_ns(void);
uint64_t clock_unix_ns(void);

/* Measures the offset anew (best of several readings). Called once implicitly. */
void clock_refresh(void);

/* Monotonic to Unix nanoseconds with the current offset. */
uint64_t clock_mono_to_unix_ns(uint64_t mono_ns);

#endif
