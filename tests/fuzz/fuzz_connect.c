/* SPDX-License-Identifier: Apache-2.0 */
/* A message of Connect's, as protobuf and as JSON: the first byte says which. All that is read of it is written again. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/compat/connect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct connect_field fields[] = {
	{ 1, "profile_typeID", "profileTypeID", CONNECT_TEXT, "a" },
	{ 2, "names", "names", CONNECT_TEXT, "b" },
	{ 3, "start", "start", CONNECT_INT64, "c" },
	{ 6, "step", "step", CONNECT_DOUBLE, "d" },
	{ 7, "format", "format", CONNECT_ENUM, "e" },
	{ 8, "stacks", "stacks", CONNECT_MESSAGE, NULL },
};

static int take(void *arg, const struct connect_field *field, const struct connect_value *value)
{
	char *copy = strndup(value->text ? value->text : "", value->len);

	if (!copy)
		return -1;
	connect_message_begin(arg, 9, NULL);
	connect_text(arg, field->number, field->json, copy);
	connect_int64(arg, 3, "integer", value->integer);
	connect_double(arg, 4, "real", value->real);
	connect_message_end(arg);
	free(copy);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct connect_writer w;
	struct buf out = BUF_EMPTY;
	char *text;

	if (!size)
		return 0;
	text = malloc(size > 1 ? size - 1 : 1);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1); /* its end is the memory's end */
	connect_writer_begin(&w, data[0] & 1, &out);
	connect_list_begin(&w, "values");
	connect_read(fields, ARRAY_LEN(fields), data[0] & 1, text, size - 1, take, &w);
	connect_list_end(&w);
	connect_writer_end(&w);
	buf_fini(&out);
	free(text);
	return 0;
}
