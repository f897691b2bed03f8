/* SPDX-License-Identifier: Apache-2.0 */
/* Text that people write into a question to the store: the first line a time, the rest a selector. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/query/selected.h"
#include "backend/query/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_selector(const char *text)
{
	struct selector s = { 0 };
	struct buf error = BUF_EMPTY;
	int err = selector_parse(text, &s, &error);

	if (err == -EINVAL ? !error.len : err && err != -ENOMEM)
		abort();
	for (size_t i = 0; !err && i < s.count; i++)
		if (!*s.items[i].label || !s.items[i].value)
			abort();
	if (!err && s.word && !*s.word)
		abort();
	selector_fini(&s);
	buf_fini(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct store_status status = { .first_ns = 1, .last_ns = 2 };
	char *text = malloc(size + 1), *rest = text, *line;
	uint64_t ns = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	line = strsep(&rest, "\n");
	if (query_time(line, 1763788000000000000, &status, &ns) && ns)
		abort();
	check_selector(rest ? rest : line);
	free(text);
	return 0;
}
