/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The selected part of the store comes in pieces, each with a dictionary of its own; a file has one. The pieces are joined
 * as in a capture on disk: a stream of messages whose dictionaries continue one another, read as one message. Runs on the
 * query thread.
 */
#include "cmd/files/exports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/files/formats.h"
#include "proto/otlp/otlp.h"
#include "proto/profiles_builder.h"

static int make_empty(struct profiles **ret)
{
	struct builder *b = builder_new();
	int err = b ? builder_freeze(b, 0, 0, ret) : -ENOMEM;

	builder_free(b);
	return err;
}

static int join(struct profiles *const *pieces, size_t count, struct profiles **ret)
{
	AUTO(buf_fini) struct buf stream = BUF_EMPTY;
	struct otlp_continuation cont = { 0 };
	struct otlp_error why;
	uint8_t *data;
	size_t len;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = otlp_encode(pieces[i], &cont, &stream);
	if (err)
		return err;
	data = buf_take(&stream, &len);
	err = data ? otlp_decode(data, len, true, ret, &why) : -ENOMEM;
	if (err)
		free(data);
	return err;
}

static int write_export(const char *name, struct profiles *const *pieces, size_t count, struct buf *out)
{
	const struct format *format = format_by_name(name);
	AUTO(buf_fini) struct buf left_out = BUF_EMPTY;
	struct profiles *p = NULL;
	int err;

	if (!format)
		return -EINVAL;
	if (count == 1)
		return format_write(pieces[0], format, out, &left_out);
	err = count ? join(pieces, count, &p) : make_empty(&p);
	if (!err)
		err = format_write(p, format, out, &left_out);
	profiles_put(p);
	return err;
}

static const char *export_suffix(const char *name, const char **content_type_ret)
{
	static const struct {
		const char *suffix, *content_type;
	} types[] = {
		{ ".json", "application/json" },
		{ ".jsonl", "application/x-ndjson" },
		{ ".svg", "image/svg+xml" },
		{ ".html", "text/html; charset=utf-8" },
		{ ".txt", "text/plain; charset=utf-8" },
		{ ".folded", "text/plain; charset=utf-8" },
		{ ".gz", "application/octet-stream" },
	};
	const struct format *format = format_by_name(name);
	const char *end = format ? strrchr(format->suffixes[0], '.') : NULL;

	*content_type_ret = "application/octet-stream";
	for (size_t i = 0; end && i < ARRAY_LEN(types); i++)
		if (!strcmp(types[i].suffix, end))
			*content_type_ret = types[i].content_type;
	return format ? format->suffixes[0] : NULL;
}

const struct api_export exports = { .suffix = export_suffix, .write = write_export };
