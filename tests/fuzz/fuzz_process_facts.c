/* SPDX-License-Identifier: Apache-2.0 */
/* Facts in which other programs have a say: the path of their control group, their environment; and os-release. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/proc/container_id.h"
#include "agent/report/host_facts.h"
#include "agent/process/enrich.h"
#include "base/text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct attributes *a)
{
	if (a->count > ATTRIBUTES_MAX)
		abort();
	for (uint32_t i = 0; i < a->count; i++) {
		const struct key_value *kv = &a->items[i];
		const struct attributes before = { a->items, i, 0 };

		if (!kv->key.len || kv->key.len > ATTRIBUTE_KEY_BYTES || kv->value.string.len > ATTRIBUTE_VALUE_BYTES ||
		    !utf8_is_valid(kv->key.data, kv->key.len) ||
		    !utf8_is_valid(kv->value.string.data, kv->value.string.len) || attributes_find(&before, kv->key))
			abort();
	}
	attributes_fini(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const variables[] = { "COLOR", "A" };
	static const struct enrich_options options = { variables, 2 };
	struct attributes a = ATTRIBUTES_EMPTY;
	char *text = malloc(size ? size : 1), id[CONTAINER_ID_BYTES];

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	if (container_id_of_cgroups(text, size, id) && (!id[0] || strlen(id) >= sizeof(id)))
		abort();
	if (!enrich_environment.add(&options, text, size, &a))
		check(&a);
	if (!attributes_parse(&a, (struct str){ text, (uint32_t)size }))
		check(&a);
	if (!host_facts_of_release((struct str){ text, (uint32_t)size }, &a))
		check(&a);
	attributes_fini(&a);
	free(text);
	return 0;
}
