/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "agent/config.h"
#include "agent/kind/kind.h"
#include "base/buf.h"
#include "base/cleanup.h"

#define KIND_ADDRESS(name) &name,
static const struct kind *const all[] = { KINDS(KIND_ADDRESS) };

int kinds_choose(const struct agent_config *config, struct session_kinds *ret, struct agent_error *err)
{
	struct session_kind *k = &ret->list[0];
	int error;

	*ret = (struct session_kinds){ .count = 1 };
	*k = (struct session_kind){ .event = config->event ? config->event : "cpu-clock",
				    .what = { .freq_hz = config->freq_hz, .period = config->period } };
	error = perf_event_find(k->event, &k->what.attr, err);
	if (error)
		return error;
	if (config->filter.kernel_only)
		k->what.attr.exclude_user = 1;
	for (size_t i = 0; i < ARRAY_LEN(all) && !k->kind; i++)
		if (all[i]->has(&k->what.attr))
			k->kind = all[i];
	k->what.ops = &k->kind->events;
	k->kind->settle(&k->what);
	return 0;
}

void kinds_print(const struct session_kinds *kinds, struct buf *out)
{
	for (uint32_t i = 0; i < kinds->count; i++) {
		const struct sampled *what = &kinds->list[i].what;

		buf_puts(out, i ? ", " : "");
		if (what->period == 1)
			buf_puts(out, "a sample each event");
		else if (what->period)
			buf_printf(out, "a sample each %llu events", (unsigned long long)what->period);
		else
			buf_printf(out, "%u Hz", what->freq_hz);
	}
}
