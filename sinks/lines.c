/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests one behind the other in a file that grows, as the OpenTelemetry Collector's file exporter writes them: a line of
 * OTLP/JSON each, or the length as four bytes, big-endian, and the protobuf message. A run goes on where the last one
 * stopped; what a crash left half written at the end is cut off first. A file holds one signal: OTLP's specification of such
 * files has it so. Durable. Used by one thread at a time.
 */
#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/handed.h"
#include "base/io.h"
#include "base/log.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/signals.h"
#include "sinks/commit.h"
#include "sinks/sinks.h"

enum { LENGTH_BYTES = 4, BLOCK_BYTES = 1 << 16 };

/* The file of one signal. */
struct lines_file {
	int fd; /* -1: not open */
	bool is_regular;
	uint64_t whole_bytes; /* length up to the last whole request */
	struct commit *commit;
	int error; /* of the first write that failed; sticks */
};

struct sink_lines {
	struct sink sink;
	enum lines_format format;
	char *path; /* of the profiles; the others have the signal's name in it, and are opened at the first request */
	struct lines_file files[OTLP_SIGNALS];
	struct buf text;
};

/* Adds to the message in @text, behind room for its length, what the format needs around it. */
static int frame(struct sink_lines *s)
{
	uint32_t length;

	if (s->format == LINES_JSON) {
		buf_putc(&s->text, '\n');
		return s->text.failed ? -ENOMEM : 0;
	}
	if (s->text.failed)
		return -ENOMEM;
	if (s->text.len - LENGTH_BYTES > UINT32_MAX)
		return -EFBIG;
	length = htobe32((uint32_t)(s->text.len - LENGTH_BYTES));
	memcpy(s->text.data, &length, sizeof(length));
	return 0;
}

static void begin_message(struct sink_lines *s)
{
	buf_reset(&s->text);
	if (s->format == LINES_FRAMED)
		buf_append(&s->text, (const uint8_t[LENGTH_BYTES]){ 0 }, LENGTH_BYTES);
}

/* Writes the message in @text to the file's end; @ack follows the disk. */
static int write_message(struct sink_lines *s, struct lines_file *f, struct ack *ack)
{
	int error = frame(s);

	if (error)
		return error;
	error = io_write_all(f->fd, s->text.data, s->text.len);
	if (error) {
		if (f->is_regular && ftruncate(f->fd, (off_t)f->whole_bytes) == 0)
			return error; /* nothing of it is left: the next one may have room again */
		return f->error = error;
	}
	f->whole_bytes += s->text.len;
	return ack ? commit_add(f->commit, ack) : 0;
}

static int lines_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct sink_lines *s = (struct sink_lines *)sink;
	struct lines_file *f = &s->files[OTLP_PROFILES];
	int error = f->error;

	if (error)
		return error;
	begin_message(s);
	if (s->format == LINES_JSON)
		error = otlp_json_encode(p, &s->text);
	else if (p->message.len)
		buf_append(&s->text, p->message.data, p->message.len);
	else
		error = otlp_encode(p, NULL, &s->text);
	return error ? error : write_message(s, f, ack);
}

static int file_open(struct lines_file *f, enum lines_format format, const char *path);

/* PATH.jsonl of the profiles is PATH.logs.jsonl of the logs. */
static int open_other(struct sink_lines *s, enum otlp_signal signal)
{
	AUTO_FREE char *path = NULL;
	const char *slash = strrchr(s->path, '/'), *dot = strrchr(slash ? slash : s->path, '.');
	int stem = (int)(dot ? dot - s->path : (ptrdiff_t)strlen(s->path));

	if (asprintf(&path, "%.*s.%s%s", stem, s->path, otlp_signal_name(signal), s->path + stem) < 0)
		return -ENOMEM;
	return file_open(&s->files[signal], s->format, path);
}

static int lines_consume_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	struct sink_lines *s = (struct sink_lines *)sink;
	struct lines_file *f = &s->files[signal];
	struct otlp_other other;
	struct otlp_error why;
	int error;

	if (!s->files[OTLP_PROFILES].is_regular) /* there is no name to make others of */
		return -EOPNOTSUPP;
	error = f->fd < 0 ? open_other(s, signal) : f->error;
	if (error)
		return error;
	begin_message(s);
	if (s->format == LINES_FRAMED) {
		buf_append(&s->text, data, len);
		return write_message(s, f, ack);
	}
	error = otlp_other_decode(signal, false, data, len, &other, &why);
	if (error)
		return error;
	error = otlp_other_json_encode(&other, &s->text);
	otlp_other_fini(&other);
	return error ? error : write_message(s, f, ack);
}

static int lines_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct sink_lines *s = (struct sink_lines *)sink;
	int error = 0;

	(void)deadline_ns; /* what was consumed is written; fsync cannot be hurried */
	for (size_t i = 0; i < OTLP_SIGNALS; i++) {
		const struct lines_file *f = &s->files[i];

		if (f->error)
			error = f->error;
		else if (f->fd >= 0 && f->is_regular && fsync(f->fd))
			error = -errno;
	}
	return error;
}

static void file_close(struct lines_file *f)
{
	commit_free(f->commit);
	f->commit = NULL;
	if (f->fd != STDOUT_FILENO)
		cleanup_close(&f->fd);
	f->fd = -1;
}

static void lines_free(struct sink *sink)
{
	struct sink_lines *s = (struct sink_lines *)sink;

	for (size_t i = 0; i < OTLP_SIGNALS; i++)
		file_close(&s->files[i]);
	buf_fini(&s->text);
	free(s->path);
	free(s);
}

static const struct sink_ops lines_ops = {
	.name = "file",
	.durable = true,
	.consume = lines_consume,
	.consume_other = lines_consume_other,
	.flush = lines_flush,
	.free = lines_free,
};

/* --- appending to an existing file --- */

/* The offset of the end of the last whole line in @fd, which has @size bytes. */
static int64_t end_of_lines(int fd, int64_t size)
{
	char block[BLOCK_BYTES];

	while (size > 0) {
		int64_t start = size > BLOCK_BYTES ? size - BLOCK_BYTES : 0;
		ssize_t n = pread(fd, block, (size_t)(size - start), start);
		const char *end;

		if (n != size - start)
			return -EIO;
		end = memrchr(block, '\n', (size_t)n);
		if (end)
			return start + (end - block) + 1;
		size = start;
	}
	return 0;
}

/* The same of messages with their lengths. */
static int64_t end_of_messages(int fd, int64_t size)
{
	int64_t at = 0;
	uint32_t length;

	while (size - at >= LENGTH_BYTES) {
		if (pread(fd, &length, sizeof(length), at) != sizeof(length))
			return -EIO;
		if (be32toh(length) > size - at - LENGTH_BYTES)
			break;
		at += LENGTH_BYTES + (int64_t)be32toh(length);
	}
	return at;
}

/* Whether @fd begins as a file of ours, so that nothing is cut off another. */
static bool is_ours(int fd, enum lines_format format)
{
	uint8_t head[LENGTH_BYTES + 1];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	if (format == LINES_JSON)
		return n < 1 || head[0] == '{';
	return n < LENGTH_BYTES + 1 || head[LENGTH_BYTES] == 0x0a || head[LENGTH_BYTES] == 0x12; /* ProfilesData's fields */
}

static int go_on(struct lines_file *f, enum lines_format format, const char *path)
{
	struct stat st;
	int64_t end;

	if (fstat(f->fd, &st))
		return -errno;
	f->is_regular = S_ISREG(st.st_mode);
	if (!f->is_regular)
		return S_ISDIR(st.st_mode) ? -EISDIR : 0;
	if (flock(f->fd, LOCK_EX | LOCK_NB))
		return -EBUSY;
	if (!is_ours(f->fd, format))
		return -EBADMSG;
	end = format == LINES_JSON ? end_of_lines(f->fd, st.st_size) : end_of_messages(f->fd, st.st_size);
	if (end < 0)
		return (int)end;
	if (end < st.st_size) {
		log_warn("%s: its last %lld bytes are no whole request and are cut off", path,
			 (long long)(st.st_size - end));
		if (ftruncate(f->fd, end))
			return -errno;
	}
	f->whole_bytes = (uint64_t)end;
	return 0;
}

static int file_open(struct lines_file *f, enum lines_format format, const char *path)
{
	struct stat st;
	bool is_other = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
	int error;

	f->fd = handed_open(path);
	if (f->fd < 0)
		f->fd = open(path, (is_other ? O_WRONLY : O_RDWR | O_CREAT) | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
	error = f->fd < 0 ? -errno : go_on(f, format, path);
	if (!error) {
		f->commit = commit_new(f->fd);
		error = f->commit ? 0 : -ENOMEM;
	}
	if (error)
		file_close(f);
	return error;
}

int sink_lines_new(const char *path, enum lines_format format, struct sink **ret)
{
	struct sink_lines *s = calloc(1, sizeof(*s));
	int error;

	if (!s)
		return -ENOMEM;
	s->sink.ops = &lines_ops;
	s->format = format;
	for (size_t i = 0; i < OTLP_SIGNALS; i++)
		s->files[i].fd = -1;
	s->path = strdup(path);
	error = s->path ? file_open(&s->files[OTLP_PROFILES], format, path) : -ENOMEM;
	if (error) {
		lines_free(&s->sink);
		return error;
	}
	*ret = &s->sink;
	return 0;
}
