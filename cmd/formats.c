/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each format's writer makes the whole file in memory; then it goes to disk in one piece and takes its name. Formats that
 * are sums of samples read the capture in parts; the others need all of it at once.
 */
#include "cmd/formats.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/log.h"
#include "base/xz.h"
#include "base/zstd.h"
#include "cmd/capture.h"
#include "cmd/cmd.h"
#include "cmd/output.h"
#include "cmd/user.h"
#include "proto/flamegraph.h"
#include "proto/otlp.h"
#include "proto/otlp_stream.h"
#include "proto/pprof.h"
#include "proto/report.h"
#include "proto/timeline.h"

enum { GZIP_LEVEL = 6, ZSTD_LEVEL = 9, ZSTD_BEST_LEVEL = 18, XZ_LEVEL = 6 };
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

	return err ? err : gzip_pack(plain.data, plain.len, GZIP_LEVEL, out);
}

/* What is packed once is kept. A run takes a quarter of a second a megabyte, for a tenth less. */
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

static void tell(struct buf *out, uint64_t count, const char *what)
{
	if (count)
		buf_printf(out, "%s%s (%" PRIu64 ")", out->len ? ", " : "", what, count);
}

/* What formats are made of that read a capture part by part: one of the two. */
struct gathered {
	struct tree *tree;
	struct pprof *pprof;
	struct capture_names *names;
};

static void gathered_fini(struct gathered *g)
{
	tree_free(g->tree);
	pprof_free(g->pprof);
	capture_names_free(g->names);
}

static int gathered_init(struct gathered *g, const struct format *format)
{
	*g = (struct gathered){ .names = capture_names_new() };
	if (format->from_tree)
		g->tree = tree_new();
	else
		g->pprof = pprof_new();
	return g->names && (g->tree || g->pprof) ? 0 : -ENOMEM;
}

static int gather(struct gathered *g, const struct profiles *p)
{
	return g->tree ? tree_add(g->tree, p) : pprof_add(g->pprof, p);
}

static int gather_part(void *arg, struct profiles *p)
{
	struct gathered *g = arg;
	int err = capture_demangle(p, g->names);

	if (!err)
		err = gather(g, p);
	if (err)
		log_error("cannot convert: %s", strerror(-err));
	return err;
}

static int write_pprof(const struct pprof *pp, struct buf *out, struct buf *left_out)
{
	AUTO(buf_fini) struct buf plain = BUF_EMPTY;
	const struct pprof_losses *lost = pprof_losses(pp);
	int err = pprof_write(pp, &plain);

	tell(left_out, lost->timestamps, "times of samples");
	tell(left_out, lost->frame_attributes, "types of frames");
	tell(left_out, lost->other_attributes, "further attributes");
	tell(left_out, lost->events, "samples of further kinds");
	return err ? err : gzip_pack(plain.data, plain.len, GZIP_LEVEL, out);
}

static int write_gathered(const struct gathered *g, const struct format *format, struct buf *out, struct buf *left_out)
{
	int err;

	if (g->pprof)
		return write_pprof(g->pprof, out, left_out);
	err = format->from_tree(g->tree, out);
	buf_puts(left_out, "everything but names and counts");
	tell(left_out, tree_sum(g->tree)->other_events, "samples of further kinds");
	return err;
}

static int write_timeline(const struct profiles *p, int (*write)(struct timeline *t, struct buf *out), const char *unsaid,
			  struct buf *out, struct buf *left_out)
{
	struct timeline *t = NULL;
	int err = timeline_new(p, &t);

	if (!err)
		err = write(t, out);
	if (!err) {
		buf_puts(left_out, unsaid);
		tell(left_out, t->sum.other_events, "samples of further kinds");
	}
	timeline_free(t);
	return err;
}

static int speedscope(struct timeline *t, struct buf *out)
{
	return timeline_write_speedscope(t, "hearth", out);
}

static int write_speedscope(const struct profiles *p, struct buf *out, struct buf *left_out)
{
	return write_timeline(p, speedscope, "addresses, modules, times and attributes", out, left_out);
}

static int perf_script(struct timeline *t, struct buf *out)
{
	timeline_sort_by_time(t);
	return timeline_write_perf_script(t, out);
}

static int write_perf_script(const struct profiles *p, struct buf *out, struct buf *left_out)
{
	return write_timeline(p, perf_script, "lines and attributes", out, left_out);
}

static int firefox_gz(struct timeline *t, struct buf *out)
{
	AUTO(buf_fini) struct buf plain = BUF_EMPTY;
	int err = timeline_write_firefox(t, &plain);

	return err ? err : gzip_pack(plain.data, plain.len, GZIP_LEVEL, out);
}

static int write_firefox(const struct profiles *p, struct buf *out, struct buf *left_out)
{
	return write_timeline(p, firefox_gz, "attributes other than of threads", out, left_out);
}

static const struct format formats[] = {
	{ "otlp", { ".otlp" }, true, true, write_otlp, NULL },
	{ "otlp.gz", { ".otlp.gz" }, false, true, write_otlp_gz, NULL },
	{ "otlp.zst", { ".otlp.zst" }, false, true, write_otlp_zst, NULL },
	{ "otlp.xz", { ".otlp.xz" }, false, true, write_otlp_xz, NULL },
	{ "otlp.json", { ".otlp.json" }, false, false, write_otlp_json, NULL },
	{ "otlp.jsonl", { ".otlp.jsonl" }, false, false, write_otlp_jsonl, NULL },
	{ "pprof", { ".pb.gz", ".pprof" }, false, true, NULL, NULL },
	{ "folded", { ".folded" }, false, false, NULL, report_folded },
	{ "svg", { ".svg" }, false, false, NULL, flamegraph_write_svg },
	{ "html", { ".html" }, false, false, NULL, flamegraph_write_html },
	{ "speedscope", { ".speedscope.json" }, false, false, write_speedscope, NULL },
	{ "firefox", { ".firefox.json.gz" }, false, true, write_firefox, NULL },
	{ "perf-script", { ".perf.txt" }, false, false, write_perf_script, NULL },
};

static size_t suffix_len(const char *path, const char *suffix)
{
	size_t len = strlen(path), suffix_len = strlen(suffix);

	return len > suffix_len && !strcmp(path + len - suffix_len, suffix) ? suffix_len : 0;
}

const struct format *format_by_path(const char *path)
{
	const struct format *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		for (const char *const *s = formats[i].suffixes; *s; s++) {
			size_t len = suffix_len(path, *s);

			if (len > best_len) {
				best = &formats[i];
				best_len = len;
			}
		}
	}
	return best;
}

const struct format *format_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

void format_list_suffixes(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		for (const char *const *s = formats[i].suffixes; *s; s++)
			buf_printf(out, "%s%s", i || s != formats[i].suffixes ? ", " : "", *s);
}

/* --- the file --- */

static int write_all(int fd, const struct buf *data)
{
	for (size_t done = 0; done < data->len;) {
		ssize_t n = write(fd, data->data + done, data->len - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* To what is there and no regular file: a device or a FIFO must not be replaced. */
static int write_into(const char *path, const struct buf *data)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : write_all(fd, data);
}

/* Beside @path, so that it can be renamed. */
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
	err = write_all(fd, data);
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

int format_write(const struct profiles *p, const struct format *format, struct buf *out, struct buf *left_out)
{
	AUTO(gathered_fini) struct gathered g = { 0 };
	int err;

	if (format->write)
		return format->write(p, out, left_out);
	err = gathered_init(&g, format);
	if (!err)
		err = gather(&g, p);
	return err ? err : write_gathered(&g, format, out, left_out);
}

int format_write_file(const struct profiles *p, const struct format *format, const char *path, struct buf *left_out)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	AUTO(buf_fini) struct buf unwanted = BUF_EMPTY;
	int err = format_write(p, format, &data, left_out ? left_out : &unwanted);

	return write_out(format, &data, err, path);
}

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

int format_convert(const char *input, const struct format *format, const char *output, struct buf *left_out)
{
	AUTO(gathered_fini) struct gathered g = { 0 };
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	int err;

	if (format->write)
		return convert_whole(input, format, output, left_out);
	err = gathered_init(&g, format);
	if (err) {
		log_error("cannot convert %s: %s", capture_name(input), strerror(-err));
		return err;
	}
	err = capture_each(input, gather_part, &g);
	if (err)
		return err;
	return write_out(format, &data, write_gathered(&g, format, &data, left_out), output);
}
