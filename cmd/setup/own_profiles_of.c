/* SPDX-License-Identifier: Apache-2.0 */
/* One of each a process, as there is one address. Main thread, which is the one that samples. */
#include "cmd/setup/own_profiles_of.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "agent/proc/proc_root.h"
#include "backend/compat/own_profiles.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/ourselves.h"
#include "cmd/options/config.h"
#include "cmd/setup/session.h"
#include "proto/sink.h"

static struct own_profiles *here;
static struct loop_watch *timer; /* NULL: nobody has asked yet */
static uint64_t look_until_ns;

struct own_profiles *own_profiles_here(void)
{
	return here;
}

int own_profiles_wrap(const struct config *config, const struct store *store, struct sink **sink)
{
	struct sink *next = *sink;

	if (!config->pprof_address || store)
		return 0;
	*sink = NULL;
	if (!here)
		here = own_profiles_new(0);
	if (here)
		return own_profiles_sink_new(here, next, sink);
	sink_free(next);
	return -ENOMEM;
}

static void look(void *arg)
{
	struct ourselves us;
	uint32_t pid = 0;

	(void)arg;
	if (!proc_root_pid((uint32_t)getpid(), &pid)) {
		ourselves_read(proc_root(), pid, &us);
		ourselves_saw(&us);
	}
	if (timer && clock_mono_ns() > look_until_ns)
		(void)loop_set_timer(timer, 0, 0);
}

void own_profiles_look(struct session *s, uint64_t until_ns)
{
	look_until_ns = until_ns > look_until_ns ? until_ns : look_until_ns;
	look(NULL);
	if (!timer && loop_add_timer(s->loop, look, NULL, &timer))
		timer = NULL;
	if (timer)
		(void)loop_set_timer(timer, NSEC_PER_SEC, NSEC_PER_SEC);
}

void own_profiles_end(void)
{
	loop_remove(timer);
	timer = NULL;
	own_profiles_free(here);
	here = NULL;
}
