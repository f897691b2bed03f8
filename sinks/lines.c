/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests one behind the other in a file that grows, as the OpenTelemetry Collector's file exporter writes them: a line of
 * OTLP/JSON each, or the length as four bytes, big-endian, and the protobuf message. A run goes on where the last one
 * stopped; what a crash left half written at the end is cut off first. Durable. Used by one thread at a time.
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
#include "base/log.h"
#include "proto/otlp.h"
#include "sinks/commit.h"
#include "sinks/sinks.h"
#include "sinks/write_all.h"

enum { LENGTH_BYTES = 4, BLOCK_BYTES = 1 << 16 };

struct sink_lines {
	struct sink sink;
	enum lines_format format;
	int fd;
	bool is_regular;
	uint64_t whole_bytes; /* length up to the last whole request */
	struct buf text;
	struct commit *commit;
	int error; /* of the first write that failed; sticks */
};

static int encode(struct sink_lines *s, const struct profiles *p)
{
	uint32_t length;
	int error;

	buf_reset(&s->text);
	if (s->format == LINES_JSON) {
		error = otlp_json_encode(p, &s->text);
		buf_putc(&s->text, '\n');
		return error ? error : s->text.failed ? -ENOMEM : 0;
	}
	buf_append(&s->text, (const uint8_t[LENGTH_BYTES]){ 0 }, LENGTH_BYTES);
	error = otlp_encode(p, NULL, &s->text);
	if (error)
		return error;
	if (s->text.len - LENGTH_BYTES > UINT32_MAX)
		return -EFBIG;
	length = htobe32((uint32_t)(s->text.len - LENGTH_BYTES));
	memcpy(s->text.data, &length, sizeof(length));
	return 0;
}

static int lines_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct sink_lines *s = (struct sink_lines *)sink;
	int error = s->error ? s->error : encode(s, p);

	if (error)
		return error;
	error = write_all(s->fd, s->text.data, s->text.len);
	if (error) {
		if (s->is_regular && ftruncate(s->fd, (off_t)s->whole_bytes) == 0)
			return error; /* nothing of it is left: the next one may have room again */
		return s->error = error;
	}
	s->whole_bytes += s->text.len;
	return ack ? commit_add(s->commit, ack) : 0;
}

static int lines_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct sink_lines *s = (struct sink_lines *)sink;

	(void)deadline_ns; /* what was consumed is written; fsync cannot be hurried */
	if (s->error)
		return s->error;
	return s->is_regular && fsync(s->fd) ? -errno : 0;
}

static void lines_free(struct sink *sink)
{
	struct sink_lines *s = (struct sink_lines *)sink;

	commit_free(s->commit);
	if (s->fd != STDOUT_FILENO)
		cleanup_close(&s->fd);
	buf_fini(&s->text);
	free(s);
}

static const struct sink_ops lines_ops = {
	.name = "file",
	.durable = true,
	.consume = lines_consume,
	.flush = lines_flush,
	.free = lines_free,
};

/* --- going on behind what is there --- */

/* Where the last whole line ends in @fd, which has @size bytes. */
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

static int go_on(struct sink_lines *s, const char *path)
{
	struct stat st;
	int64_t end;

	if (fstat(s->fd, &st))
		return -errno;
	s->is_regular = S_ISREG(st.st_mode);
	if (!s->is_regular)
		return S_ISDIR(st.st_mode) ? -EISDIR : 0;
	if (flock(s->fd, LOCK_EX | LOCK_NB))
		return -EBUSY;
	if (!is_ours(s->fd, s->format))
		return -EBADMSG;
	end = s->format == LINES_JSON ? end_of_lines(s->fd, st.st_size) : end_of_messages(s->fd, st.st_size);
	if (end < 0)
		return (int)end;
	if (end < st.st_size) {
		log_warn("%s: its last %lld bytes are no whole request and are cut off", path,
			 (long long)(st.st_size - end));
		if (ftruncate(s->fd, end))
			return -errno;
	}
	s->whole_bytes = (uint64_t)end;
	return 0;
}

int sink_lines_new(const char *path, enum lines_format format, struct sink **ret)
{
	struct sink_lines *s = calloc(1, sizeof(*s));
	struct stat st;
	bool is_other = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
	int error;

	if (!s)
		return -ENOMEM;
	s->sink.ops = &lines_ops;
	s->format = format;
	s->fd = open(path, (is_other ? O_WRONLY : O_RDWR | O_CREAT) | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
	error = s->fd < 0 ? -errno : go_on(s, path);
	if (!error) {
		s->commit = commit_new(s->fd);
		error = s->commit ? 0 : -ENOMEM;
	}
	if (error) {
		lines_free(&s->sink);
		return error;
	}
	*ret = &s->sink;
	return 0;
}
