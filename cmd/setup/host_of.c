/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/setup/host_of.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cmd/host/host_source.h"
#include "sinks/stage/detectors.h"

int host_of(struct profiles **ret)
{
	static const char *const names[] = { "env", "system" };
	AUTO_FREE struct facts *facts = calloc(1, sizeof(*facts));
	const char *texts[2 * FACTS_MAX];

	if (!facts)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct detector *d = detector_find(names[i]);

		if (d)
			d->run(facts, &(struct detector_way){ 0 });
	}
	for (size_t i = 0; i < facts->count; i++) {
		texts[2 * i] = facts->items[i].key;
		texts[2 * i + 1] = facts->items[i].value;
	}
	return host_resource_new(texts, facts->count, ret);
}
