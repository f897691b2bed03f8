/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of answers about names that were not written in full or not rightly: "word" and "nearest". */
#include <errno.h>
#include <stdio.h>

#include "backend/api/api_call.h"

static void write_key(struct json *j, const char *key, const char *suffix)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%s", key, suffix);
	json_key(j, name);
}

void api_write_word(struct api_call *call, const struct query *q, const char *suffix)
{
	struct json *j = &call->json;

	if (!q->word.as)
		return;
	write_key(j, "word", suffix);
	json_object_begin(j);
	api_write_text(j, "text", q->selector.word);
	api_write_text(j, "as", q->word.as);
	json_key(j, "values");
	json_array_begin(j);
	for (size_t i = 0; i < q->word.count; i++)
		json_string(j, q->word.values[i]);
	json_array_end(j);
	json_object_end(j);
}

static int write_near(void *arg, const char *label, const char *value, const char *instead_of)
{
	struct json *j = arg;

	json_object_begin(j);
	api_write_text(j, "label", label);
	api_write_text(j, "value", value);
	api_write_text(j, "instead_of", instead_of);
	json_object_end(j);
	return 0;
}

int api_write_nearest(struct api_call *call, const struct query *q, const char *suffix, uint64_t events)
{
	struct json *j = &call->json;
	int err;

	if (events)
		return 0;
	write_key(j, "nearest", suffix);
	json_array_begin(j);
	err = query_nearest(q, &call->ctx, write_near, j);
	json_array_end(j);
	return err;
}
