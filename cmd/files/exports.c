/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The selected part of the store comes in pieces, each with a dictionary of its own; a file has one. A format that is a sum
 * of samples takes each piece as it comes. For the others one piece is written as it is, and several are joined as in a
 * capture on disk: a stream of messages whose dictionaries continue one another, which is one message, too. Only that stream
 * is kept between them; of a file that is this stream, on disk. A sum's file goes to disk while it is written, if it is more
 * than a piece. Runs on the query thread.
 */
#include "cmd/files/exports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/files/formats.h"
#include "proto/otlp/otlp.h"
#include "proto/profiles_builder.h"

struct api_file {
	const struct format *format;
	void *sum;	       /* owned; NULL: the format is none */
	struct profiles *only; /* the first piece, a reference, until there is a second one */
	struct buf stream;     /* of the pieces, unless there is only one: what is not on disk of it */
	struct buf_file disk;
	bool has_disk;
	struct otlp_continuation cont;
};

static int file_begin(const char *name, int disk, struct api_file **ret)
{
	const struct format *format = format_by_name(name);
	struct api_file *f = format ? calloc(1, sizeof(*f)) : NULL;

	if (!f)
		return format ? -ENOMEM : -EINVAL;
	f->format = format;
	f->stream = BUF_EMPTY;
	f->disk = (struct buf_file){ .fd = disk, .most_bytes = UINT64_MAX };
	f->has_disk = disk >= 0 && (format->sum || format == &format_otlp);
	f->sum = format->sum ? format->sum->make() : NULL;
	if (format->sum && !f->sum) {
		free(f);
		return -ENOMEM;
	}
	*ret = f;
	return 0;
}

/* Puts what a writer has left in @b on disk, where it is to be. */
static int put_on_disk(struct api_file *f, struct buf *b)
{
	int err;

	b->file = &f->disk;
	err = buf_flush(b);
	b->file = NULL; /* the encoder of messages looks back */
	return err;
}

static int file_add(struct api_file *f, struct profiles *p)
{
	int err = 0;

	if (f->sum)
		return f->format->sum->add(f->sum, p);
	if (!f->only && !f->stream.len && !f->disk.bytes) {
		f->only = profiles_get(p);
		return 0;
	}
	if (f->only)
		err = otlp_encode(f->only, &f->cont, &f->stream);
	profiles_put(f->only);
	f->only = NULL;
	err = err ? err : otlp_encode(p, &f->cont, &f->stream);
	return err || !f->has_disk ? err : put_on_disk(f, &f->stream);
}

static size_t file_held_bytes(const struct api_file *f)
{
	return f->disk.bytes + f->stream.cap + (f->sum ? f->format->sum->memory_bytes(f->sum) : 0) +
	       (f->only ? profiles_memory_bytes(f->only) : 0);
}

static int make_empty(struct profiles **ret)
{
	struct builder *b = builder_new();
	int err = b ? builder_freeze(b, 0, 0, ret) : -ENOMEM;

	builder_free(b);
	return err;
}

/* The stream, which is taken, as a model. */
static int read_stream(struct api_file *f)
{
	struct otlp_error why;
	size_t len;
	uint8_t *data = buf_take(&f->stream, &len);
	int err = data ? otlp_decode(data, len, true, &f->only, &why) : -ENOMEM;

	if (err)
		free(data);
	return err;
}

static int write_sum(struct api_file *f, size_t most_bytes, struct buf *out, struct buf *left_out)
{
	size_t held = file_held_bytes(f);
	int err;

	if (f->has_disk) {
		f->disk.most_bytes = most_bytes > held ? most_bytes - held : 0;
		out->file = &f->disk;
	}
	err = f->format->sum->write(f->sum, f->format, out, left_out);
	out->file = NULL;
	if (f->disk.error || err || !f->disk.bytes)
		return f->disk.error ? f->disk.error : err;
	err = put_on_disk(f, out);
	buf_fini(out);
	return err;
}

static int file_write(struct api_file *f, size_t most_bytes, struct buf *out, bool *is_on_disk_ret)
{
	AUTO(buf_fini) struct buf left_out = BUF_EMPTY;
	int err = 0;

	if (f->sum)
		err = write_sum(f, most_bytes, out, &left_out);
	*is_on_disk_ret = f->disk.bytes;
	if (f->sum || f->disk.bytes)
		return err;
	if (f->stream.len && f->format == &format_otlp) {
		buf_fini(out);
		*out = f->stream;
		f->stream = BUF_EMPTY;
		return out->failed ? -ENOMEM : 0;
	}
	if (f->stream.len)
		err = read_stream(f);
	else if (!f->only)
		err = make_empty(&f->only);
	return err ? err : format_write(f->only, f->format, out, &left_out);
}

static void file_free(struct api_file *f)
{
	if (!f)
		return;
	if (f->sum)
		f->format->sum->free(f->sum);
	profiles_put(f->only);
	buf_fini(&f->stream);
	free(f);
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

const struct api_export exports = {
	.suffix = export_suffix,
	.begin = file_begin,
	.add = file_add,
	.held_bytes = file_held_bytes,
	.write = file_write,
	.free = file_free,
};
