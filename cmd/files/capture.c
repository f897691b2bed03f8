/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture is read whole, unpacked if need be, and recognised by its content, never by its name. OTLP is decoded in place:
 * the model keeps the bytes. A file that cannot be decoded is looked at more closely, so that the message can say what the
 * file is instead. For a caller that wants samples only, a file of the file sink is mapped and decoded a message at a time;
 * whatever is unusual there is left to the reader of whole captures.
 */
#include "cmd/files/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/store/store.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/pack/packing.h"
#include "cmd/files/perf_data.h"
#include "cmd/setup/store_of.h"
#include "cmd/setup/user.h"
#include "proto/formats/otlp_capture.h"
#include "proto/profiles.h"
#include "proto/formats/formats.h"

enum {
	READ_BYTES = 1 << 20,
	LOOK_BYTES = 1 << 16,	 /* some of which must not be zero */
	RELEASE_BYTES = 4 << 20, /* of a mapped file, a multiple of all page sizes */
};

#define MAX_BYTES (8ull << 30) /* of a file, packed and unpacked */

static bool is_zero(const struct buf *data)
{
	for (size_t i = 0; i < data->len; i++) {
		if (data->data[i])
			return false;
	}
	return true;
}

/* The offset of a hole in @fd, a file of @size bytes, that no writer of captures leaves; -1: none, or the file system does
 * not say. */
static off_t find_hole(int fd, off_t size)
{
	off_t hole = lseek(fd, 0, SEEK_HOLE), data;

	for (; hole >= 0 && hole < size; hole = lseek(fd, data, SEEK_HOLE)) {
		data = lseek(fd, hole, SEEK_DATA);
		if (data < 0)
			data = size;
		if (data - hole >= LOOK_BYTES)
			break;
	}
	lseek(fd, 0, SEEK_SET);
	return hole < size ? hole : -1;
}

/* -EFBIG: larger than MAX_BYTES; -ENODATA: LOOK_BYTES of zeros, as a sparse file begins. */
static int read_all(int fd, struct buf *out)
{
	struct stat st;
	size_t expected = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size + 1 : 0;
	bool has_looked = false;

	if (expected > MAX_BYTES)
		return -EFBIG;
	for (;;) {
		size_t room = !has_looked ? LOOK_BYTES : expected > out->len ? expected - out->len : READ_BYTES;
		ssize_t n;

		if (buf_reserve(out, room))
			return -ENOMEM;
		n = read(fd, out->data + out->len, room);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		out->len += (size_t)n;
		if (!has_looked && out->len >= LOOK_BYTES && is_zero(out))
			return -ENODATA;
		has_looked |= out->len >= LOOK_BYTES;
		if (out->len > MAX_BYTES)
			return -EFBIG;
	}
}

/* @error is filled where errno does not say it all. */
static int read_file(const char *path, struct buf *out, struct buf *error)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;
	off_t hole;

	if (!strcmp(path, "-"))
		return read_all(STDIN_FILENO, out);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	hole = S_ISREG(st.st_mode) && (uint64_t)st.st_size <= MAX_BYTES ? find_hole(fd, st.st_size) : -1;
	if (hole >= 0) {
		buf_printf(error, "%s has a hole from byte %lld on: it is no capture, or its copy was never finished", path,
			   (long long)hole);
		return -EBADMSG;
	}
	return read_all(fd, out);
}

static int refuse_unread(const char *name, int err, struct buf *error)
{
	if (err == -EFBIG)
		buf_printf(error, "%s is larger than %d GB, which is the most that is read", name, (int)(MAX_BYTES >> 30));
	else if (err == -ENODATA)
		buf_printf(error, "%s begins with %d zero bytes: it is no capture, or its copy was never finished", name,
			   (int)LOOK_BYTES);
	else
		buf_printf(error, "cannot read %s: %s", name, strerror(-err));
	return err;
}

/* Decodes in place. 0; -EBADMSG, -E2BIG or -ENOMEM with @error filled. */
static int unpack(const char *name, const struct packing *packing, struct buf *data, struct buf *error)
{
	AUTO(buf_fini) struct buf packed = *data;
	int err;

	*data = BUF_EMPTY;
	err = packing->unpack(packed.data, packed.len, MAX_BYTES, data);
	if (err == -EBADMSG)
		buf_printf(error, "%s is %s-compressed and damaged or cut; '%s -t' says where", name, packing->name,
			   packing->name);
	else if (err == -E2BIG)
		buf_printf(error, "%s is more than %d GB once it is unpacked", name, (int)(MAX_BYTES >> 30));
	else if (err)
		buf_printf(error, "cannot unpack %s: %s", name, strerror(-err));
	return err;
}

/* Names files that people hand us by mistake, by their first bytes. */
static const char *recognise(const struct buf *data)
{
	static const struct {
		const char *magic;
		size_t len;
		const char *is;
	} known[] = {
		{ "\x7f"
		  "ELF",
		  4, "a program; record it with: hearth record -- PROGRAM" },
		{ "PERFILE2", 8, "perf's data on standard input, which perf cannot read there; name the file" },
		{ "{", 1, "JSON, but neither OTLP's nor speedscope's" },
		{ "[", 1, "JSON, but neither OTLP's nor speedscope's" },
		{ "<", 1, "XML or a page; the data that it was made of can be read" },
		{ "PK\x03\x04", 4, "a zip file; unpack it first" },
		{ "SQLite format 3", 15, "a database" },
		{ "FLR", 4, "a recording of Java's flight recorder" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (data->len >= known[i].len && !memcmp(data->data, known[i].magic, known[i].len))
			return known[i].is;
	}
	return NULL;
}

static int refuse(const char *name, const struct buf *data, const struct otlp_error *why, struct buf *error)
{
	const char *is = otlp_read_is_json(data->data, data->len) ? NULL : recognise(data);

	if (is) {
		buf_printf(error, "%s cannot be read as a profile: it is %s", name, is);
		return -EBADMSG;
	}
	buf_printf(error, "%s cannot be read as a profile, or is damaged: %s; hearth reads OTLP, ", name, why->message);
	format_list_readers(error);
	buf_puts(error, " and perf.data");
	return -EBADMSG;
}

/* @data is taken over on success. @why is filled after -EBADMSG. */
static int decode(const char *name, struct buf *data, struct capture *ret, struct otlp_error *why, struct buf *error)
{
	const struct format *format = format_by_content(data->data, data->len);
	int err;

	if (!format)
		return otlp_read(data, MAX_BYTES, &ret->profiles, &ret->read_bytes, why);
	err = format->read(data->data, data->len, &ret->profiles, why);
	if (err == -EBADMSG)
		buf_printf(error, "%s is %s, but damaged: %s", name, format->title, why->message);
	return err;
}

const char *capture_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard input";
}

/* A store is a capture of all that is in it. */
static int load_store(const char *folder, struct capture *ret, struct buf *error)
{
	struct store *store = NULL;
	int err = store_of_folder(folder, NULL, &store, error);

	if (err)
		return err;
	*ret = (struct capture){ 0 };
	err = store_load(store, &ret->profiles, &ret->read_bytes);
	ret->file_bytes = ret->read_bytes;
	store->close(store);
	return err;
}

/* Root reads it as its owner. */
static int read_store(const char *folder, struct capture *ret, struct buf *error)
{
	struct user root;
	int err;

	user_as_owner(folder, "profiles.db", &root);
	err = load_store(folder, ret, error);
	user_end_as_owner(&root);
	if (err == -ENODATA)
		buf_printf(error, "there are no samples in the store %s", folder);
	else if (err && !error->len)
		buf_printf(error, "cannot read the store %s: %s", folder, strerror(-err));
	return err;
}

int capture_read(const char *path, struct capture *ret, struct buf *error)
{
	const char *name = capture_name(path);
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct otlp_error why = { "" };
	const struct packing *packing;
	int err;

	if (store_is_folder(path))
		return read_store(path, ret, error);
	err = read_file(path, &data, error);
	if (err)
		return error->len ? err : refuse_unread(name, err, error);
	packing = packing_of(data.data, data.len);
	if (perf_data_is(data.data, data.len) && strcmp(path, "-") != 0) {
		buf_reset(&data);
		err = perf_data_read(path, &data, error);
	} else if (packing) {
		err = unpack(name, packing, &data, error);
	}
	if (err)
		return err;
	if (!data.len) {
		buf_printf(error, "%s is empty; a capture that is still being written is called FILE.part", name);
		return -ENODATA;
	}
	*ret = (struct capture){ .file_bytes = data.len, .read_bytes = data.len };
	err = decode(name, &data, ret, &why, error);
	if (err && error->len)
		return err;
	if (err == -EBADMSG)
		return refuse(name, &data, &why, error);
	if (err)
		buf_printf(error, "cannot read %s: %s", name, strerror(-err));
	return err;
}

/* @read_bytes of @file_bytes were read. */
static void warn_of_cut(const char *path, size_t read_bytes, size_t file_bytes)
{
	if (read_bytes < file_bytes)
		log_warn("%s is cut: the last %zu of %zu bytes are no whole record and are left out", capture_name(path),
			 file_bytes - read_bytes, file_bytes);
}

int capture_load(const char *path, struct capture *ret)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	int err = capture_read(path, ret, &error);

	if (err)
		log_error("%s", buf_text(&error));
	else
		warn_of_cut(path, ret->read_bytes, ret->file_bytes);
	return err;
}

/* --- in parts --- */

struct mapped {
	uint8_t *data;
	size_t len, released; /* bytes */
	struct otlp_parts parts;
	int (*fn)(void *arg, struct profiles *p);
	void *arg;
	bool has_failed; /* @fn, not the reading */
};

static void mapped_fini(struct mapped *m)
{
	if (m->data)
		munmap(m->data, m->len);
}

/* Maps @path if it is a file of the kind and size that is read in parts; else leaves @m empty. */
static void map_stream(const char *path, struct mapped *m)
{
	AUTO_CLOSE int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	struct stat st;
	void *data;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size > MAX_BYTES)
		return;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return;
	m->data = data;
	m->len = (size_t)st.st_size;
}

/* The mapped bytes before the part's end are not needed any more. */
static int take_part(void *arg, struct profiles *p)
{
	struct mapped *m = arg;
	int err = m->fn(m->arg, p);
	size_t done = m->parts.bytes / RELEASE_BYTES * RELEASE_BYTES;

	m->has_failed = err;
	if (done > m->released)
		madvise(m->data + m->released, done - m->released, MADV_DONTNEED);
	m->released = done;
	return err;
}

/* Gives what @m's parts left of the capture, as one: all of it, if there were none. */
static int take_rest(const char *path, struct mapped *m)
{
	struct capture capture;
	struct profiles *p;
	int err = capture_load(path, &capture);

	if (err)
		return err;
	p = capture.profiles;
	if (m->parts.resources) /* there may be no table at all */
		p->resources += m->parts.resources;
	p->resource_count -= m->parts.resources;
	p->sample_events -= m->parts.events;
	err = m->fn(m->arg, p);
	profiles_put(p);
	return err;
}

int capture_each(const char *path, int (*fn)(void *arg, struct profiles *p), void *arg)
{
	AUTO(mapped_fini) struct mapped m = { .fn = fn, .arg = arg };
	int err = -EBADMSG;

	map_stream(path, &m);
	if (m.data && !format_by_content(m.data, m.len))
		err = otlp_read_parts(m.data, m.len, take_part, &m, &m.parts);
	if (err && !m.has_failed)
		return take_rest(path, &m);
	if (!err)
		warn_of_cut(path, m.parts.bytes, m.len);
	return err;
}
