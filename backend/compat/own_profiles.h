/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of hearth itself where no store keeps any: while somebody waits for one, the samples of hearth's own processes
 * that pass are added up. Nothing is kept, and nothing is looked at, while nobody waits. Sinks fill it, servers ask; any
 * thread.
 */
#ifndef HEARTH_BACKEND_COMPAT_OWN_PROFILES_H
#define HEARTH_BACKEND_COMPAT_OWN_PROFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/sink.h"

struct buf;
struct own_profiles;
struct pprof;

/* A time that somebody waits for; a part of the asker's own object. */
struct own_window {
	uint64_t from_ns, to_ns; /* Unix: from <= t < to */
	bool hides_addresses;	 /* the asker may not read where code lies in memory */
	/* The rest is ours. */
	struct pprof *sum;
	int error; /* the first */
	struct own_window *next;
};

/* @most_bytes: what the sum of one window may take; 0: 64 MiB. NULL without memory. */
struct own_profiles *own_profiles_new(size_t most_bytes);
void own_profiles_free(struct own_profiles *o); /* when no window is open; accepts NULL */

/* A sink that passes everything on to @next, which it owns from then on also when it fails, and adds what windows of @o wait
 * for to these. 0 or -ENOMEM. */
int own_profiles_sink_new(struct own_profiles *o, struct sink *next, struct sink **ret);

/* Begins @w. 0; -EAGAIN: too many are open; -ENOMEM. */
int own_profiles_open(struct own_profiles *o, struct own_window *w);

/* Whether profiles up to the end of @w have come. */
bool own_profiles_is_whole(struct own_profiles *o, const struct own_window *w);

/* Ends @w, and appends its profile, pprof packed by gzip, to @out; NULL: nobody wants it. 0; -E2BIG: it took more memory
 * than it may; -ENOMEM. */
int own_profiles_close(struct own_profiles *o, struct own_window *w, struct buf *out);

#endif
