/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that processes publish about themselves, and labels of their threads as the kernel copied them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/context/process_context.h"
#include "agent/report/context_labels.h"
#include "agent/samples/record.h"
#include "base/text/utf8.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_published(const uint8_t *data, size_t size)
{
	struct process_context c;

	if (process_context_parse(data, size, &c))
		return;
	REQUIRE(c.resource.count <= ATTRIBUTES_MAX && c.key_cnt <= CONTEXT_KEYS);
	for (uint32_t i = 0; i < c.key_cnt; i++)
		REQUIRE(!c.keys[i] || (c.keys[i][0] && utf8_is_valid(c.keys[i], strlen(c.keys[i]))));
	process_context_fini(&c);
}

static void read_labels(const uint8_t *data, size_t size)
{
	uint32_t count = (uint32_t)(size / sizeof(uint64_t)), at = 0, before = 0;
	uint64_t *words = malloc(count * sizeof(*words) + 1);
	struct sample_label label;
	struct span_info span;

	if (!words)
		return;
	memcpy(words, data, count * sizeof(*words));
	while (sample_next_label(words, count, &at, &label)) {
		struct str key = { label.key, label.key_bytes }, value = { label.value, label.value_bytes };

		REQUIRE(at > before && at <= count);
		REQUIRE(label.key + label.key_bytes <= (const char *)(words + count));
		REQUIRE(label.value + label.value_bytes <= (const char *)(words + count));
		(void)context_label_link(key, value, &span);
		(void)context_label_link(STR("span id"), value, &span);
		(void)context_label_link(STR("trace_id"), value, &span);
		before = at;
	}
	free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct context_header header;

	if (size >= CONTEXT_HEADER_BYTES)
		(void)context_header_parse(data, &header);
	read_published(data, size);
	read_labels(data, size);
	return 0;
}
