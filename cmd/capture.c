/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture is read whole, unpacked if need be, and decoded in place: the model keeps the bytes. What cannot be decoded is
 * looked at more closely, so that the message can say what the file is instead.
 */
#include "cmd/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/log.h"
#include "proto/otlp.h"
#include "proto/otlp_cut.h"

enum { READ_BYTES = 1 << 20 };

#define MAX_UNPACKED_BYTES (8ull << 30)

static int read_all(int fd, struct buf *out)
{
	struct stat st;
	size_t expected = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size + 1 : 0;

	for (;;) {
		ssize_t n;

		if (buf_reserve(out, expected > out->len ? expected - out->len : READ_BYTES))
			return -ENOMEM;
		n = read(fd, out->data + out->len, out->cap - out->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		out->len += (size_t)n;
	}
}

static int read_file(const char *path, struct buf *out)
{
	AUTO_CLOSE int fd = -1;

	if (!strcmp(path, "-"))
		return read_all(STDIN_FILENO, out);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : read_all(fd, out);
}

/* In place. 0; -EBADMSG, -E2BIG or -ENOMEM with @error filled. */
static int unpack(const char *name, struct buf *data, struct buf *error)
{
	AUTO(buf_fini) struct buf packed = *data;
	int err;

	*data = BUF_EMPTY;
	err = gzip_unpack(packed.data, packed.len, MAX_UNPACKED_BYTES, data);
	if (err == -EBADMSG)
		buf_printf(error, "%s is gzip-compressed and damaged or cut; 'gzip -t' says where", name);
	else if (err == -E2BIG)
		buf_printf(error, "%s is more than %d GB once it is unpacked", name, (int)(MAX_UNPACKED_BYTES >> 30));
	else if (err)
		buf_printf(error, "cannot unpack %s: %s", name, strerror(-err));
	return err;
}

/* What people hand us by mistake, by its first bytes. */
static const char *recognise(const struct buf *data)
{
	static const struct {
		const char *magic;
		size_t len;
		const char *is;
	} known[] = {
		{ "\x28\xb5\x2f\xfd", 4, "zstd-compressed; if it is OTLP inside, run unzstd on it first" },
		{ "PERFILE2", 8, "perf's own data; read it with perf report" },
		{ "\x7f"
		  "ELF",
		  4, "a program; record it with: hearth record -- PROGRAM" },
		{ "{", 1, "JSON; only OTLP's protobuf form is read" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (data->len >= known[i].len && !memcmp(data->data, known[i].magic, known[i].len))
			return known[i].is;
	}
	return NULL;
}

static int refuse(const char *name, const struct buf *data, bool is_packed, const struct otlp_error *why, struct buf *error)
{
	const char *is = is_packed ? "something else, gzip-compressed (a pprof profile? 'go tool pprof' reads those)"
				   : recognise(data);

	if (is)
		buf_printf(error, "%s is no capture of hearth: it is %s", name, is);
	else
		buf_printf(error, "%s is no capture of hearth, or is damaged: %s; name a file that 'hearth record' wrote",
			   name, why->message);
	return -EBADMSG;
}

/* Decodes the first @len bytes of @data, which go over to the model on success. */
static int decode(struct buf *data, size_t len, struct profiles **ret, struct otlp_error *why)
{
	int err = otlp_decode(data->data, len, true, ret, why);

	if (!err)
		*data = BUF_EMPTY;
	return err;
}

const char *capture_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard input";
}

int capture_read(const char *path, struct capture *ret, struct buf *error)
{
	const char *name = capture_name(path);
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct otlp_error why = { "" }, why_cut = { "" };
	size_t len, whole;
	bool is_packed;
	int err = read_file(path, &data);

	if (err) {
		buf_printf(error, "cannot read %s: %s", name, strerror(-err));
		return err;
	}
	is_packed = gzip_is_packed(data.data, data.len);
	err = is_packed ? unpack(name, &data, error) : 0;
	if (err)
		return err;
	len = data.len;
	if (!len) {
		buf_printf(error, "%s is empty; a capture that is still being written is called FILE.part", name);
		return -ENODATA;
	}
	*ret = (struct capture){ .file_bytes = len, .read_bytes = len };
	err = decode(&data, len, &ret->profiles, &why);
	if (err == -EBADMSG) {
		whole = otlp_whole_bytes(data.data, len);
		if (whole && whole < len && !decode(&data, whole, &ret->profiles, &why_cut)) {
			ret->read_bytes = whole;
			return 0;
		}
		return refuse(name, &data, is_packed, &why, error);
	}
	if (err)
		buf_printf(error, "cannot read %s: %s", name, strerror(-err));
	return err;
}

int capture_load(const char *path, struct capture *ret)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	int err = capture_read(path, ret, &error);

	if (err)
		log_error("%s", buf_text(&error));
	else if (ret->read_bytes < ret->file_bytes)
		log_warn("%s is cut: the last %zu of %zu bytes are no whole record and are left out", capture_name(path),
			 ret->file_bytes - ret->read_bytes, ret->file_bytes);
	return err;
}
