/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP as a file: one message, as it is, packed, or as JSON. It has a place for everything. */
#include <errno.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/pack/gzip.h"
#include "base/pack/xz.h"
#include "base/pack/zstd.h"
#include "proto/formats/formats.h"
#include "proto/otlp/stream.h"

enum { ZSTD_LEVEL = 9, ZSTD_BEST_LEVEL = 18, XZ_LEVEL = 6 };
enum { MAX_LINE_BYTES = 4 << 20 }; /* of a message as protobuf, before it becomes a line of JSON */

static int write_otlp(const struct profiles *p, struct buf *out, struct buf *left_out)
{
	(void)left_out;
	return otlp_encode(p, NULL, out);
}

static int write_otlp_gz(const struct profiles *p, struct buf *out, struct buf *left_out)
{
	AUTO(buf_fini) struct buf plain = BUF_EMPTY;
	int err = write_otlp(p, &plain, left_out);

	return err ? err : gzip_pack(plain.data, plain.len, FORMAT_GZIP_LEVEL, out);
}

/* A file is packed once and kept: a run takes a quarter of a second a megabyte, for a tenth less. */
static int write_otlp_zst(const struct profiles *p, struct buf *out, struct buf *left_out)
{
	AUTO(buf_fini) struct buf plain = BUF_EMPTY;
	int err = write_otlp(p, &plain, left_out);

	if (err)
		return err;
	return zstd_pack(plain.data, plain.len, plain.len <= OTLP_RUN_BYTES ? ZSTD_BEST_LEVEL : ZSTD_LEVEL, out);
}

/* The smallest, in the time of zstd's best level: a tenth less than that, as it knows the bytes that numbers begin with. */
static int write_otlp_xz(const struct profiles *p, struct buf *out, struct buf *left_out)
{
	AUTO(buf_fini) struct buf plain = BUF_EMPTY;
	int err = write_otlp(p, &plain, left_out);

	return err ? err : xz_pack(plain.data, plain.len, XZ_LEVEL, out);
}

/* One message on one line: both a JSON document and JSON lines. */
static int write_otlp_json(const struct profiles *p, struct buf *out, struct buf *left_out)
{
	int err = otlp_json_encode(p, out);

	(void)left_out;
	buf_putc(out, '\n');
	return err ? err : out->failed ? -ENOMEM : 0;
}

static int write_json_line(void *arg, const uint8_t *message, size_t len, uint64_t sample_events)
{
	struct otlp_error why;
	struct profiles *part;
	int err = otlp_decode((uint8_t *)(uintptr_t)message, len, false, &part, &why);

	(void)sample_events;
	if (err)
		return err;
	err = write_otlp_json(part, arg, NULL);
	profiles_put(part);
	return err;
}

/* A message a line, each complete in itself, as the Collector's file exporter writes them. */
static int write_otlp_jsonl(const struct profiles *p, struct buf *out, struct buf *left_out)
{
	(void)left_out;
	return otlp_encode_split(p, MAX_LINE_BYTES, write_json_line, out);
}

const struct format format_otlp = {
	.name = "otlp",
	.suffixes = { ".otlp" },
	.is_capture = true,
	.is_binary = true,
	.write = write_otlp,
};
const struct format format_otlp_gz = {
	.name = "otlp.gz",
	.suffixes = { ".otlp.gz" },
	.is_binary = true,
	.write = write_otlp_gz,
};
const struct format format_otlp_zst = {
	.name = "otlp.zst",
	.suffixes = { ".otlp.zst" },
	.is_binary = true,
	.write = write_otlp_zst,
};
const struct format format_otlp_xz = {
	.name = "otlp.xz",
	.suffixes = { ".otlp.xz" },
	.is_binary = true,
	.write = write_otlp_xz,
};
const struct format format_otlp_json = {
	.name = "otlp.json",
	.suffixes = { ".otlp.json" },
	.write = write_otlp_json,
};
const struct format format_otlp_jsonl = {
	.name = "otlp.jsonl",
	.suffixes = { ".otlp.jsonl" },
	.write = write_otlp_jsonl,
};
