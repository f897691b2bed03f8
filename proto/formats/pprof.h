/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles as one pprof profile (google/pprof, proto/profile.proto), which `go tool pprof` and its kin read. Samples of
 * equal stack and labels are added up; equal functions, locations and mappings stand there once. Facts that the format
 * cannot express are counted. Not shared between threads.
 */
#ifndef HEARTH_PROTO_FORMATS_PPROF_H
#define HEARTH_PROTO_FORMATS_PPROF_H

#include "proto/profiles.h"

struct buf;
struct pprof;

/* NULL without memory. */
struct pprof *pprof_new(void);
void pprof_free(struct pprof *pp);

/*
 * Adds all samples of @p: a column for each kind of sample, and one of CPU nanoseconds where the period says what a sample
 * stands for. Attributes of resources and samples become labels under their own keys. A frame without a name becomes the
 * function module+0xaddress, so that nobody looks for symbols again. 0 or -ENOMEM (it then misses samples).
 */
int pprof_add(struct pprof *pp, const struct profiles *p);

/* Bytes of memory held. */
size_t pprof_memory_bytes(const struct pprof *pp);

/* Appends the message, not compressed, to @out. 0 or -ENOMEM. */
int pprof_write(const struct pprof *pp, struct buf *out);

/* The same, compressed by gzip as it is made, so that no more of it than a piece is there as it was. */
int pprof_write_packed(const struct pprof *pp, struct buf *out);

/* The counts of what was left out of the added samples. */
struct pprof_losses {
	uint64_t timestamps;	   /* times of samples */
	uint64_t frame_attributes; /* attributes of locations: types of frames */
	uint64_t other_attributes; /* of mappings besides the build id, of profiles; values that are neither text nor number
				    */
	uint64_t events;	   /* samples of a kind for which there was no column left */
};
const struct pprof_losses *pprof_losses(const struct pprof *pp);

#endif
