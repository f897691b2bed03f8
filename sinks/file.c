/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture on disk: one OTLP ProfilesData written as a stream of messages with one dictionary (proto/otlp/stream.h), so
 * that memory stays flat and any OTLP tool reads the whole as one message. It grows as PATH.part and takes its name only
 * when it is complete; PATH.part always ends with a whole message. A capture of one run (OTLP_RUN_BYTES) is written anew
 * then, as one message in the order in which it packs best: the .gz of a minute gets a fourth smaller. An output that is no
 * regular file ("-", /dev/null, a FIFO) is written to directly. Used by one thread at a time.
 */
#include "sinks/sink_type.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/stream.h"
#include "proto/profiles_builder.h"
#include "sinks/commit.h"

struct sink_file {
	struct sink sink;
	int fd;	    /* owned, unless it is stdout */
	char *path; /* the name in the end; NULL when there is nothing to rename */
	char *part;
	struct buf message;
	struct otlp_stream *stream;
	uint64_t whole_bytes; /* length up to the last whole message */
	uint64_t messages;
	int error;     /* of the first write that failed; sticks */
	bool complete; /* flushed since the last consume() */
	enum file_end end;
	struct commit *commit;
};

/* Takes a message that was cut off away again; what cannot be truncated (a pipe) stays as it is. */
static void cut_back(struct sink_file *s)
{
	if (ftruncate(s->fd, (off_t)s->whole_bytes) == 0)
		lseek(s->fd, (off_t)s->whole_bytes, SEEK_SET);
}

static int file_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct sink_file *s = (struct sink_file *)sink;
	int error;

	if (s->error)
		return s->error;
	buf_reset(&s->message);
	error = otlp_stream_encode(s->stream, p, &s->message);
	if (error)
		return error;
	s->complete = false;
	error = io_write_all(s->fd, s->message.data, s->message.len);
	if (error) {
		if (s->path)
			cut_back(s);
		return s->error = error;
	}
	s->whole_bytes += s->message.len;
	s->messages++;
	return ack ? commit_add(s->commit, ack) : 0;
}

/* A capture in which nothing happened is a message too: seven tables with their element 0. */
static int write_nothing(struct sink_file *s)
{
	struct builder *b = builder_new();
	struct profiles *p = NULL;
	int error = b ? builder_freeze(b, 0, 0, &p) : -ENOMEM;

	if (!error)
		error = file_consume(&s->sink, p, NULL);
	profiles_put(p);
	builder_free(b);
	return error;
}

static int file_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct sink_file *s = (struct sink_file *)sink;
	int error = s->error;

	(void)deadline_ns; /* what was consumed is written; fsync cannot be hurried */
	if (!error && s->whole_bytes == 0)
		error = write_nothing(s);
	if (!error && s->path && fsync(s->fd) != 0)
		error = s->error = -errno;
	s->complete = !error;
	return error;
}

/*
 * Opens @part anew. A crashed run's file is removed, but not one that a running process writes (it holds a lock). A symbolic
 * link put there by somebody else is not followed.
 */
static int open_part(const char *part)
{
	AUTO_CLOSE int old = open(part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_CLOSE int fd = -1;

	if (old >= 0 && flock(old, LOCK_EX | LOCK_NB) != 0)
		return -EBUSY;
	if (unlink(part) != 0 && errno != ENOENT)
		return -errno;
	fd = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	flock(fd, LOCK_EX | LOCK_NB);
	return MOVE_FD(fd);
}

/* Puts all that was written so far into @out, as one message. */
static int put_in_order(struct sink_file *s, struct buf *out)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct profiles *p = NULL;
	struct otlp_error why;
	int error;

	if (buf_reserve(&data, s->whole_bytes))
		return -ENOMEM;
	error = io_pread_all(s->fd, data.data, s->whole_bytes, 0);
	if (error)
		return error;
	data.len = s->whole_bytes;
	error = otlp_decode(data.data, data.len, true, &p, &why);
	if (!error)
		data = BUF_EMPTY; /* @p's */
	if (!error && s->end == FILE_END_MERGED)
		error = profiles_merge(p);
	if (!error)
		error = profiles_order(p);
	if (!error)
		error = buf_reserve(out, s->whole_bytes);
	if (!error)
		error = otlp_encode(p, NULL, out);
	profiles_put(p);
	return error;
}

/* Writes @message beside the capture, to stand for it, with its owner and mode. */
static int write_beside(const struct sink_file *s, const char *path, const struct buf *message)
{
	AUTO_CLOSE int fd = open_part(path);
	struct stat st;
	int error;

	if (fd < 0)
		return fd;
	if (fstat(s->fd, &st) || fchown(fd, st.st_uid, st.st_gid) || fchmod(fd, st.st_mode & 07777))
		return -errno;
	error = io_write_all(fd, message->data, message->len);
	return error ? error : fsync(fd) ? -errno : 0;
}

/* Takes the name of the capture for one that packs better. Without memory or room the capture is what it was. */
static bool take_name_in_order(struct sink_file *s)
{
	AUTO(buf_fini) struct buf message = BUF_EMPTY, path = BUF_EMPTY;
	bool done;

	if (s->end == FILE_END_AS_IT_IS || s->messages < 2 || s->whole_bytes > OTLP_RUN_BYTES || put_in_order(s, &message))
		return false;
	buf_printf(&path, "%s.whole", s->path);
	if (path.failed)
		return false;
	done = !write_beside(s, buf_text(&path), &message) && !rename(buf_text(&path), s->path);
	unlink(done ? s->part : buf_text(&path));
	return done;
}

static void file_free(struct sink *sink)
{
	struct sink_file *s = (struct sink_file *)sink;

	commit_free(s->commit);
	otlp_stream_free(s->stream);
	buf_fini(&s->message);
	bool nothing = s->path && s->fd >= 0 && s->whole_bytes == 0;

	if (nothing)
		unlink(s->part);
	else if (s->path && s->complete && !take_name_in_order(s) && rename(s->part, s->path) != 0)
		log_error("cannot rename %s to %s: %s; the capture is complete under the first name", s->part, s->path,
			  strerror(errno));
	if (s->fd != STDOUT_FILENO)
		cleanup_close(&s->fd);
	free(s->path);
	free(s->part);
	free(s);
}

static const struct sink_ops file_ops = {
	.name = "file",
	.durable = true,
	.consume = file_consume,
	.flush = file_flush,
	.free = file_free,
};

/* Opens what @path leads to and decides how: sets fd, and for regular files path and part. */
static int file_open(struct sink_file *s, const char *path)
{
	struct stat st;
	bool exists = stat(path, &st) == 0;

	if (strcmp(path, "-") == 0) {
		s->fd = STDOUT_FILENO;
		return 0;
	}
	if (exists && S_ISDIR(st.st_mode))
		return -EISDIR;
	if (exists && !S_ISREG(st.st_mode)) {
		s->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		return s->fd < 0 ? -errno : 0;
	}
	/* Through a symbolic link the file it names is replaced, not the link. */
	s->path = exists ? realpath(path, NULL) : strdup(path);
	if (!s->path)
		return -errno;
	if (asprintf(&s->part, "%s.part", s->path) < 0) {
		s->part = NULL;
		return -ENOMEM;
	}
	s->fd = open_part(s->part);
	return s->fd < 0 ? s->fd : 0;
}

int sink_file_new(const char *path, enum file_end end, struct sink **ret)
{
	struct sink_file *s = calloc(1, sizeof(*s));
	int error;

	if (!s)
		return -ENOMEM;
	s->sink.ops = &file_ops;
	s->fd = -1;
	s->end = end;
	s->stream = otlp_stream_new();
	error = s->stream ? file_open(s, path) : -ENOMEM;
	if (!error) {
		s->commit = commit_new(s->fd);
		error = s->commit ? 0 : -ENOMEM;
	}
	if (error) {
		file_free(&s->sink);
		return error;
	}
	*ret = &s->sink;
	return 0;
}

const char *sink_file_error(int err)
{
	if (err == -EBADMSG)
		return "what is in it are no requests";
	return err == -EBUSY ? "another process is writing it" : strerror(-err);
}

int sink_explain_file(const struct sink_settings *settings, const char *value, int err, struct buf *error)
{
	(void)settings;
	buf_printf(error, "cannot write to %s: %s", value, sink_file_error(err));
	return err;
}

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len > end_len && !strcmp(name + len - end_len, end);
}

static int make_file(const struct sink_settings *settings, const char *value, struct sink **ret, struct buf *error)
{
	(void)settings, (void)error;
	if (ends_in(value, ".jsonl") || ends_in(value, ".json"))
		return sink_lines_new(value, LINES_JSON, ret);
	if (ends_in(value, ".framed"))
		return sink_lines_new(value, LINES_FRAMED, ret);
	return sink_file_new(value, FILE_END_ORDERED, ret);
}

const struct sink_type sink_type_file = {
	.name = "file",
	.value = "PATH",
	.help = "a capture; PATH.jsonl: a line of JSON a request; PATH.framed: protobuf with lengths",
	.is_slow = true,
	.make = make_file,
	.explain = sink_explain_file,
};
