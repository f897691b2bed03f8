/* SPDX-License-Identifier: Apache-2.0 */
/* Records are counted in windows of a second; those of several CPUs are not quite in the order of time. */
#include "agent/process/restless.h"

#include "agent/process/processes.h"
#include "base/clock.h"

static int64_t age_ns(const struct process *p, uint64_t now_ns)
{
	return (int64_t)(now_ns - p->maps.since_ns);
}

static bool forget_mappings(struct process *p)
{
	struct address_space *empty = address_space_new();

	if (!empty)
		return false;
	address_space_put(p->as);
	p->as = empty;
	p->is_restless = true;
	return true;
}

bool restless_count(struct process *p, uint64_t time_ns, bool *began_ret)
{
	int64_t age = age_ns(p, time_ns);

	*began_ret = false;
	if (!p->maps.since_ns || age >= (int64_t)NSEC_PER_SEC) {
		p->maps.before = age < (int64_t)(2 * NSEC_PER_SEC) ? p->maps.count : 0;
		p->maps.count = 0;
		p->maps.since_ns = time_ns;
	}
	p->maps.count++;
	if (p->is_restless)
		return true;
	if (p->maps.count <= RESTLESS_MAPS_A_SECOND && p->as->count < RESTLESS_MAPPINGS)
		return false;
	*began_ret = forget_mappings(p);
	return *began_ret;
}

static bool is_calm(const struct process *p, uint64_t now_ns)
{
	int64_t age = age_ns(p, now_ns);

	return age >= (int64_t)(2 * NSEC_PER_SEC) ||
	       (p->maps.count <= RESTLESS_MAPS_A_SECOND &&
		(age >= (int64_t)NSEC_PER_SEC || p->maps.before <= RESTLESS_MAPS_A_SECOND));
}

int restless_ends(struct processes *ps, struct process *p, uint64_t now_ns)
{
	if (!is_calm(p, now_ns) || !allowance_is_left(&p->reading, clock_mono_ns()))
		return 0;
	p->is_restless = false;
	(void)process_reread(ps, p);
	return 1;
}
