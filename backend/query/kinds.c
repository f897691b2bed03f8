/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/query/kinds.h"

#include <string.h>

struct part {
	bool of_cpu;
	int (*fn)(void *arg, const struct store_kind *kind);
	void *arg;
};

static int see_part(void *arg, const struct store_kind *kind)
{
	const struct part *part = arg;
	bool is_cpu = !strcmp(kind->type, "cpu") || !strcmp(kind->period_type, "cpu");

	return is_cpu == part->of_cpu ? part->fn(part->arg, kind) : 0;
}

int kinds_each(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, const struct store_kind *kind),
	       void *arg)
{
	struct part part = { true, fn, arg };
	int err = store->read->kinds(store, sel, see_part, &part);

	part.of_cpu = false;
	return err ? err : store->read->kinds(store, sel, see_part, &part);
}
