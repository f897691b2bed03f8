/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each format's writer makes the whole file in memory; then it goes to disk in one piece and takes its name. Formats that
 * are sums of samples read the capture in parts; the others need all of it at once.
 */
#include "cmd/files/formats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "cmd/files/capture.h"
#include "cmd/options/command.h"
#include "cmd/files/output.h"
#include "cmd/setup/user.h"

/* --- the file --- */

/* Writes to an existing file that is not regular: a device or a FIFO must not be replaced. */
static int write_into(const char *path, const struct buf *data)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : io_write_all(fd, data->data, data->len);
}

/* Writes beside @path, so that the file can be renamed. */
static int write_beside(const char *path, const struct buf *data)
{
	AUTO(buf_fini) struct buf name = BUF_EMPTY;
	struct user user;
	char *temporary;
	int fd, err;

	buf_printf(&name, "%s.XXXXXX", path);
	buf_putc(&name, '\0');
	if (name.failed)
		return -ENOMEM;
	temporary = (char *)name.data;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = io_write_all(fd, data->data, data->len);
	if (!err && (fchmod(fd, 0644) || fsync(fd)))
		err = -errno;
	close(fd);
	if (!err && user_invoking(&user))
		user_give_file(&user, temporary);
	if (!err && rename(temporary, path))
		err = -errno;
	if (err)
		unlink(temporary);
	return err;
}

int format_replace_file(const char *path, const struct buf *data)
{
	AUTO_FREE char *target = NULL;
	struct stat st;

	if (stat(path, &st))
		return write_beside(path, data);
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : write_into(path, data);
	target = realpath(path, NULL); /* the file that a link names is replaced, not the link */
	return target ? write_beside(target, data) : -errno;
}

/* @err: of putting @data together. */
static int write_out(const struct format *format, const struct buf *data, int err, const char *path)
{
	if (err) {
		log_error("cannot put the %s file together: %s", format->name, strerror(-err));
		return err;
	}
	if (!strcmp(path, "-"))
		return output_write(data) == STATUS_DONE ? 0 : -EIO;
	err = format_replace_file(path, data);
	if (err)
		log_error("cannot write %s: %s", path, strerror(-err));
	return err;
}

int format_write_file(const struct profiles *p, const struct format *format, const char *path, struct buf *left_out)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	AUTO(buf_fini) struct buf unwanted = BUF_EMPTY;
	int err = format_write(p, format, &data, left_out ? left_out : &unwanted);

	return write_out(format, &data, err, path);
}

/* --- converting --- */

static int convert_whole(const char *input, const struct format *format, const char *output, struct buf *left_out)
{
	struct capture capture;
	int err = capture_load(input, &capture);

	if (err)
		return err;
	err = capture_demangle(capture.profiles, NULL);
	if (err)
		log_error("cannot convert %s: %s", capture_name(input), strerror(-err));
	else
		err = format_write_file(capture.profiles, format, output, left_out);
	profiles_put(capture.profiles);
	return err;
}

/* A sum that a capture is added to, part by part. */
struct gathered {
	const struct format_sum *ops;
	void *sum;
	struct capture_names *names;
};

static void gathered_fini(struct gathered *g)
{
	g->ops->free(g->sum);
	capture_names_free(g->names);
}

static int gather_part(void *arg, struct profiles *p)
{
	struct gathered *g = arg;
	int err = capture_demangle(p, g->names);

	if (!err)
		err = g->ops->add(g->sum, p);
	if (err)
		log_error("cannot convert: %s", strerror(-err));
	return err;
}

static int convert_parts(const char *input, const struct format *format, const char *output, struct buf *left_out)
{
	AUTO(gathered_fini)
	struct gathered g = { .ops = format->sum, .sum = format->sum->make(), .names = capture_names_new() };
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	int err;

	if (!g.sum || !g.names) {
		log_error("cannot convert %s: %s", capture_name(input), strerror(ENOMEM));
		return -ENOMEM;
	}
	err = capture_each(input, gather_part, &g);
	if (err)
		return err;
	return write_out(format, &data, g.ops->write(g.sum, format, &data, left_out), output);
}

int format_convert(const char *input, const struct format *format, const char *output, struct buf *left_out)
{
	return (format->write ? convert_whole : convert_parts)(input, format, output, left_out);
}
