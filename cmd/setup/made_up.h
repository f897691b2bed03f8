/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that nobody sampled, to try a pipeline with and without privileges: a thread that hands them to a sink. */
#ifndef HEARTH_CMD_SETUP_MADE_UP_H
#define HEARTH_CMD_SETUP_MADE_UP_H

#include <stdint.h>

struct made_up;
struct metrics;
struct profiles;
struct sink;

/*
 * Starts a thread that each @interval_ns hands @sink, which it owns from the call on, also when it fails, @samples samples
 * of three processes that there are not, spread over the interval; 0: a resource with a container.id and nothing else. 0 or
 * -errno.
 */
int made_up_new(uint64_t interval_ns, uint32_t samples, struct sink *sink, struct metrics *metrics, struct made_up **ret);

/* Ends the thread. May be called again. */
void made_up_stop(struct made_up *m);

/* Stops it, and frees it and its sink. Accepts NULL. */
void made_up_free(struct made_up *m);

/* What it would hand out for the interval that ends at @end_unix_ns. 0 or -errno. */
int made_up_profiles(uint32_t samples, uint64_t end_unix_ns, uint64_t interval_ns, struct profiles **ret);

#endif
