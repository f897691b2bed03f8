/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that nobody can use inside a request that is good otherwise. */
#ifndef HEARTH_BACKEND_INGEST_UNUSABLE_H
#define HEARTH_BACKEND_INGEST_UNUSABLE_H

#include <stddef.h>
#include <stdint.h>

struct profiles;

/*
 * Takes profiles out of @p, which nobody shares yet, that have a sample with both values and time stamps but not as many of
 * each: which belongs to which is unknown (profiles.proto, Sample). Returns how many, and writes the path to the first such
 * sample and what is wrong with it to @why.
 */
int64_t drop_unusable(struct profiles *p, char *why, size_t why_size);

#endif
