/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that map code more often than anybody can follow, or in more places than are kept. Nobody knows which
 * file of such a process lies where until it has been calm for a second: it has no mappings, its frames are holes, and its
 * records are passed over, so that it costs itself alone. Then its mappings are read once. Agent's thread.
 */
#ifndef HEARTH_AGENT_PROCESS_RESTLESS_H
#define HEARTH_AGENT_PROCESS_RESTLESS_H

#include <stdbool.h>
#include <stdint.h>

struct process;
struct processes;

enum {
	RESTLESS_MAPS_A_SECOND =
		1 << 15,	     /* one that opens and closes a library as fast as it can makes a quarter of these */
	RESTLESS_MAPPINGS = 1 << 16, /* of code, of one process; 2.6 MB. vm.max_map_count is 65,530 */
};

/* Counts a record of a mapping of @p, of @time_ns. Returns whether it is to be passed over; *@began_ret tells that it is the
 * first of those, and @p has no mappings any more. */
bool restless_count(struct process *p, uint64_t time_ns, bool *began_ret);

/* Is @p, whose mappings are not known, calm at @now_ns again? Then they are read. 1: they are; 0: not yet. */
int restless_ends(struct processes *ps, struct process *p, uint64_t now_ns);

#endif
