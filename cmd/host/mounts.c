/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File systems, by the mounts of this process or, below another root, of the host's first one. A mount point counts once:
 * the last mount there is the one that is seen.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "cmd/host/scrapers.h"
#include "cmd/host/words.h"

struct mount {
	struct str device, point, type, mode;
};

struct mounts {
	struct mount *items;
	size_t count, cap;
};

/* A text of mountinfo, where blanks and their like are \040 and so on. */
static bool unescape(struct host_reading *r, struct str text, struct str *ret)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	for (uint32_t i = 0; i < text.len; i++) {
		const char *c = &text.data[i];
		const bool is_octal = *c == '\\' && i + 3 < text.len && c[1] >= '0' && c[1] <= '3' && c[2] >= '0' &&
				      c[2] <= '7' && c[3] >= '0' && c[3] <= '7';

		buf_putc(&out, is_octal ? (char)((c[1] - '0') << 6 | (c[2] - '0') << 3 | (c[3] - '0')) : *c);
		i += is_octal ? 3 : 0;
	}
	if (out.failed) {
		r->failed = true;
		return false;
	}
	if (memchr(buf_text(&out), '\0', out.len)) {
		r->bad_lines++;
		return false;
	}
	return host_reading_keep(r, (struct str){ buf_text(&out), (uint32_t)out.len }, ret);
}

/* "rw" or "ro" among the options of the mount. */
static struct str mode_of(struct str options)
{
	while (options.len) {
		const char *comma = memchr(options.data, ',', options.len);
		const uint32_t len = comma ? (uint32_t)(comma - options.data) : options.len;
		const struct str word = { options.data, len };

		if (str_is(word, "rw") || str_is(word, "ro"))
			return str_is(word, "rw") ? STR("rw") : STR("ro");
		options = (struct str){ options.data + len + (comma != NULL), options.len - len - (comma != NULL) };
	}
	return STR("unknown");
}

/* ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE DEVICE OPTIONS */
static bool parse_mount(struct host_reading *r, struct str line, struct mount *m)
{
	struct str word, point, options, type, device;

	for (int i = 0; i < 4; i++)
		if (!words_next(&line, &word))
			return false;
	if (!words_next(&line, &point) || !words_next(&line, &options))
		return false;
	do
		if (!words_next(&line, &word))
			return false;
	while (!str_is(word, "-"));
	if (!words_next(&line, &type) || !words_next(&line, &device))
		return false;
	m->mode = mode_of(options);
	return unescape(r, point, &m->point) && unescape(r, device, &m->device) && host_reading_keep(r, type, &m->type);
}

/* /proc/filesystems has "nodev TYPE" or " TYPE" a line. ZFS says nodev, and has devices all the same. */
static bool has_device(struct str types, struct str type)
{
	struct str line, word;

	while (words_line(&types, &line))
		if (words_next(&line, &word) && !str_is(word, "nodev") && word.len == type.len &&
		    !memcmp(word.data, type.data, type.len))
			return true;
	return str_is(type, "zfs");
}

static bool is_wanted(const struct host_reading *r, struct str types, const struct mount *m)
{
	const struct host_filter *filters = r->config->filters;

	return (r->config->has_virtual || has_device(types, m->type)) &&
	       host_filter_passes(&filters[HOST_BY_DEVICE], m->device.data, m->device.len) &&
	       host_filter_passes(&filters[HOST_BY_TYPE], m->type.data, m->type.len) &&
	       host_filter_passes(&filters[HOST_BY_MOUNT_POINT], m->point.data, m->point.len);
}

static void add_mount(struct host_reading *r, struct mounts *all, const struct mount *m)
{
	size_t i = 0;

	while (i < all->count && (all->items[i].point.len != m->point.len ||
				  memcmp(all->items[i].point.data, m->point.data, m->point.len) != 0))
		i++;
	if (i == HOST_DEVICES_MAX) {
		r->left_out++;
		return;
	}
	if (vec_reach(&all->items, &all->cap, i)) {
		r->failed = true;
		return;
	}
	all->items[i] = *m;
	all->count += i == all->count;
}

/* --- points --- */

static void add_state(struct host_reading *r, enum host_metric metric, const struct mount *m, const char *state,
		      uint64_t value)
{
	const struct host_label labels[HOST_LABELS_MAX] = { { "device", m->device },
							    { "mode", m->mode },
							    { "mountpoint", m->point },
							    { "type", m->type },
							    { "state", str_z(state) } };

	host_reading_int(r, metric, labels, HOST_LABELS_MAX, value);
}

static uint64_t bytes_of(uint64_t blocks, const struct statvfs *s)
{
	uint64_t bytes;

	return __builtin_mul_overflow(blocks, (uint64_t)s->f_frsize, &bytes) ? UINT64_MAX : bytes;
}

/* Reserved blocks are free for root alone. */
static void add_points(struct host_reading *r, const struct mount *m, const struct statvfs *s)
{
	add_state(r, HOST_FILESYSTEM_USAGE, m, "used", bytes_of(words_without(s->f_blocks, s->f_bfree), s));
	add_state(r, HOST_FILESYSTEM_USAGE, m, "free", bytes_of(s->f_bavail, s));
	add_state(r, HOST_FILESYSTEM_USAGE, m, "reserved", bytes_of(words_without(s->f_bfree, s->f_bavail), s));
	add_state(r, HOST_FILESYSTEM_INODES, m, "used", words_without(s->f_files, s->f_ffree));
	add_state(r, HOST_FILESYSTEM_INODES, m, "free", s->f_ffree);
}

static void measure_one(struct host_reading *r, const struct mount *m, int (*measure)(const char *path, struct statvfs *ret))
{
	AUTO(buf_fini) struct buf path = BUF_EMPTY;
	struct statvfs s;

	buf_printf(&path, "%s%.*s", r->config->root, (int)m->point.len, m->point.data);
	if (path.failed)
		r->failed = true;
	else if (measure(buf_text(&path), &s))
		r->left_out++;
	else
		add_points(r, m, &s);
}

int host_parse_mounts(struct host_reading *r, struct str mountinfo, struct str types,
		      int (*measure)(const char *path, struct statvfs *ret))
{
	struct mounts all = { 0 };
	struct str line;

	while (words_line(&mountinfo, &line)) {
		const uint64_t bad = r->bad_lines;
		struct mount m;

		if (!parse_mount(r, line, &m))
			r->bad_lines = bad + !r->failed;
		else if (is_wanted(r, types, &m))
			add_mount(r, &all, &m);
	}
	for (size_t i = 0; i < all.count; i++)
		measure_one(r, &all.items[i], measure);
	free(all.items);
	return 0;
}
