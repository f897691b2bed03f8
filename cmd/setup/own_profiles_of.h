/* SPDX-License-Identifier: Apache-2.0 */
/* hearth's own profile, for --pprof-address: who hearth's processes are, and what is asked where there is no store. */
#ifndef HEARTH_CMD_SETUP_OWN_PROFILES_OF_H
#define HEARTH_CMD_SETUP_OWN_PROFILES_OF_H

#include <stdint.h>

struct config;
struct own_profiles;
struct session;
struct sink;
struct store;

/* What own_profiles_wrap() filled; NULL: there is none. */
struct own_profiles *own_profiles_here(void);

/* Puts what looks for hearth's own samples in front of *@sink, where --pprof-address asks for it and there is no @store. 0
 * or -ENOMEM; *@sink is then NULL. */
int own_profiles_wrap(const struct config *config, const struct store *store, struct sink **sink);

/* Looks now, and each second until @until_ns (CLOCK_MONOTONIC), which processes are hearth's (base/ourselves.h). In the
 * process that samples, on the thread of @s's loop. */
void own_profiles_look(struct session *s, uint64_t until_ns);

/* Frees all of it, after sinks and servers and before the loop. */
void own_profiles_end(void);

#endif
