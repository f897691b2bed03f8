/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment files 0000000000000001.spool, ...2, ... of records, one behind the other:
 *
 *   0 magic  4 CRC-32 of bytes 8 to 47  8 length of the body  12 CRC-32 of the body  16 samples  24 Unix time in ns
 *   32 bytes of the message unpacked  40 flags: two bits of packing, the second byte is a kind  44 spare
 *   48 done: not 0 once removed (no CRC covers it)  52 spare  56 body
 *
 * Numbers are little-endian. Removing a record sets its done mark; a file goes when its last record has. A process killed
 * between append and the end of a write leaves a short last record, which the next one skips. Every process begins a segment
 * of its own, so that nothing is ever appended behind a broken tail.
 */
#include "sinks/otlp/spool.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"

enum {
	MAGIC = 0x31707368, /* "hsp1" */
	HEADER_BYTES = 56,
	CHECKED_FROM = 8,
	CHECKED_TO = 48,
	DONE_AT = 48,
	KIND_SHIFT = 8,	       /* of 8 bits */
	SEGMENTS_IN_SPOOL = 8, /* at least: what goes at once when it is full */
	MAX_SEGMENT_BYTES = 8 << 20,
	MIN_SEGMENT_BYTES = 64 << 10,
	MAX_BODY_BYTES = 1 << 30,
};

struct segment {
	uint64_t number;
	uint64_t bytes;	  /* of the file */
	uint64_t end;	  /* of its last sound record */
	uint64_t next;	  /* where the oldest record that is not done begins, or end */
	uint64_t samples; /* of the records from there on */
};

struct header {
	uint32_t body_len, body_crc, flags;
	uint64_t samples, time_unix_ns, message_bytes;
	bool is_done;
};

struct spool {
	struct spool_config config;
	char *dir;
	int dir_fd, lock_fd;
	struct segment *segments; /* oldest first */
	size_t count;
	int write_fd; /* the last segment's; -1: the next append begins one */
	int read_fd;  /* the first segment's; -1: not open */
	bool is_dirty;
	uint64_t total_bytes;
	struct buf body; /* of the record that was read */
	struct header peeked;
};

/* --- numbers --- */
static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static void put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static void put64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

static uint32_t crc_of(const uint8_t *data, size_t len)
{
	return (uint32_t)crc32(0, data, (unsigned)len);
}

static void write_header(const struct header *h, uint8_t out[static HEADER_BYTES])
{
	memset(out, 0, HEADER_BYTES);
	put32(out, MAGIC);
	put32(out + 8, h->body_len);
	put32(out + 12, h->body_crc);
	put64(out + 16, h->samples);
	put64(out + 24, h->time_unix_ns);
	put64(out + 32, h->message_bytes);
	put32(out + 40, h->flags);
	put32(out + 4, crc_of(out + CHECKED_FROM, CHECKED_TO - CHECKED_FROM));
}

static bool read_header(const uint8_t in[static HEADER_BYTES], struct header *h)
{
	if (get32(in) != MAGIC || get32(in + 4) != crc_of(in + CHECKED_FROM, CHECKED_TO - CHECKED_FROM))
		return false;
	*h = (struct header){ .body_len = get32(in + 8),
			      .body_crc = get32(in + 12),
			      .samples = get64(in + 16),
			      .time_unix_ns = get64(in + 24),
			      .message_bytes = get64(in + 32),
			      .flags = get32(in + 40),
			      .is_done = get32(in + DONE_AT) != 0 };
	return h->body_len <= MAX_BODY_BYTES;
}

/* --- files --- */
static void name_of(uint64_t number, char name[static 32])
{
	snprintf(name, 32, "%016" PRIx64 ".spool", number);
}

static int open_segment(const struct spool *s, uint64_t number, int flags)
{
	char name[32];
	int fd;

	name_of(number, name);
	fd = openat(s->dir_fd, name, flags | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static void change(struct metric *level, uint64_t by)
{
	metric_add(level, by); /* wraps round when @by is negative */
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Takes the oldest segment away, with what is still in it. */
static void drop_segment(struct spool *s)
{
	struct segment *first = &s->segments[0];
	char name[32];

	name_of(first->number, name);
	unlinkat(s->dir_fd, name, 0);
	close_fd(&s->read_fd);
	if (s->count == 1) {
		close_fd(&s->write_fd);
		s->is_dirty = false;
	}
	s->total_bytes -= first->bytes;
	change(s->config.bytes, -first->bytes);
	change(s->config.samples, -first->samples);
	s->count--;
	memmove(first, first + 1, s->count * sizeof(*first));
}

static int add_segment(struct spool *s, struct segment segment)
{
	struct segment *segments = reallocarray(s->segments, s->count + 1, sizeof(*segments));

	if (!segments)
		return -ENOMEM;
	s->segments = segments;
	segments[s->count++] = segment;
	return 0;
}

/* --- opening --- */
/* Follows the headers of a segment up to the first that is none. Bodies are looked at when they are read. */
static int scan_segment(struct spool *s, struct segment *segment)
{
	AUTO_CLOSE int fd = open_segment(s, segment->number, O_RDONLY);
	uint8_t bytes[HEADER_BYTES];
	bool met_pending = false;
	struct header h;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return fd < 0 ? fd : -errno;
	segment->bytes = (uint64_t)st.st_size;
	while (segment->end < segment->bytes) {
		ssize_t n = pread(fd, bytes, sizeof(bytes), (off_t)segment->end);

		if (n < 0)
			return -errno;
		if (n < HEADER_BYTES || !read_header(bytes, &h))
			break;
		if (h.body_len > segment->bytes - segment->end - HEADER_BYTES) {
			if (!h.is_done)
				metric_add(s->config.dropped_corrupt, h.samples);
			break;
		}
		if (!h.is_done) {
			segment->samples += h.samples;
			segment->next = met_pending ? segment->next : segment->end;
			met_pending = true;
		}
		segment->end += HEADER_BYTES + h.body_len;
	}
	if (!met_pending)
		segment->next = segment->end;
	metric_add(s->config.corrupt_bytes, segment->bytes - segment->end);
	return 0;
}

static int compare_segments(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static int list_segments(struct spool *s)
{
	int fd = dup(s->dir_fd), error = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		error = -errno;
		close_fd(&fd);
		return error;
	}
	while (!error && (entry = readdir(dir))) {
		struct segment segment = { 0 };
		char name[32];

		if (sscanf(entry->d_name, "%16" SCNx64 ".spool", &segment.number) != 1)
			continue;
		name_of(segment.number, name);
		if (strcmp(name, entry->d_name) == 0)
			error = add_segment(s, segment);
	}
	closedir(dir);
	if (s->count)
		qsort(s->segments, s->count, sizeof(*s->segments), compare_segments);
	return error;
}

static int load_segments(struct spool *s)
{
	int error = list_segments(s);

	for (size_t i = 0; i < s->count && !error; i++) {
		error = scan_segment(s, &s->segments[i]);
		s->total_bytes += s->segments[i].bytes;
		change(s->config.bytes, s->segments[i].bytes);
		change(s->config.samples, s->segments[i].samples);
	}
	return error;
}

/* Makes @dir and the folder above it. */
static int make_dirs(const char *dir)
{
	AUTO_FREE char *above = strdup(dir);
	char *slash = above ? strrchr(above, '/') : NULL;

	if (!above)
		return -ENOMEM;
	if (slash && slash != above) {
		*slash = '\0';
		if (mkdir(above, 0700) && errno != EEXIST)
			return -errno;
	}
	return mkdir(dir, 0700) && errno != EEXIST ? -errno : 0;
}

static int open_dir(struct spool *s)
{
	int error = make_dirs(s->dir);

	if (error)
		return error;
	s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return -errno;
	s->lock_fd = openat(s->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->lock_fd < 0)
		return -errno;
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return load_segments(s);
}

int spool_open(const struct spool_config *config, struct spool **ret)
{
	struct spool *s = calloc(1, sizeof(*s));
	int error;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->dir_fd = s->lock_fd = s->write_fd = s->read_fd = -1;
	s->dir = strdup(config->dir);
	error = s->dir ? open_dir(s) : -ENOMEM;
	if (error) {
		spool_close(s);
		return error;
	}
	*ret = s;
	return 0;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	spool_sync(s);
	for (size_t i = 0; i < s->count; i++) {
		change(s->config.bytes, -s->segments[i].bytes);
		change(s->config.samples, -s->segments[i].samples);
	}
	close_fd(&s->write_fd);
	close_fd(&s->read_fd);
	close_fd(&s->lock_fd);
	close_fd(&s->dir_fd);
	buf_fini(&s->body);
	free(s->segments);
	free(s->dir);
	free(s);
}

/* --- writing --- */
static uint64_t segment_bytes(const struct spool *s)
{
	uint64_t bytes = s->config.max_bytes / SEGMENTS_IN_SPOOL;

	return bytes > MAX_SEGMENT_BYTES ? MAX_SEGMENT_BYTES : bytes < MIN_SEGMENT_BYTES ? MIN_SEGMENT_BYTES : bytes;
}

/* Makes room for @more bytes by dropping the oldest segments. */
static void make_room(struct spool *s, uint64_t more)
{
	while (s->count && s->total_bytes + more > s->config.max_bytes) {
		metric_add(s->config.dropped_full, s->segments[0].samples);
		drop_segment(s);
	}
}

/* The segment for @more bytes is open afterwards, the last of the row. */
static int ready_segment(struct spool *s, uint64_t more)
{
	uint64_t number = s->count ? s->segments[s->count - 1].number + 1 : 1;
	int fd, error;

	if (s->write_fd >= 0 && s->segments[s->count - 1].bytes + more <= segment_bytes(s))
		return 0;
	error = spool_sync(s);
	close_fd(&s->write_fd);
	if (error)
		return error;
	fd = open_segment(s, number, O_RDWR | O_CREAT | O_EXCL);
	if (fd < 0)
		return fd;
	error = add_segment(s, (struct segment){ .number = number });
	if (error) {
		char name[32];

		name_of(number, name);
		unlinkat(s->dir_fd, name, 0);
	} else if (fsync(s->dir_fd)) { /* the file's name, too, survives a crash */
		error = -errno;
	}
	if (error)
		close_fd(&fd);
	s->write_fd = fd;
	return error;
}

int spool_append(struct spool *s, const struct spool_record *r)
{
	uint8_t bytes[HEADER_BYTES];
	struct iovec parts[] = { { bytes, sizeof(bytes) }, { (void *)(uintptr_t)r->data, r->len } };
	struct header h = { .body_len = (uint32_t)r->len,
			    .samples = r->samples,
			    .time_unix_ns = clock_unix_ns(),
			    .message_bytes = r->message_bytes,
			    .flags = (r->packing & SPOOL_PACKING_MAX) | (uint32_t)r->kind << KIND_SHIFT };
	uint64_t size = HEADER_BYTES + r->len;
	struct segment *last;
	ssize_t n;
	int error;

	if (r->len > MAX_BODY_BYTES || size > s->config.max_bytes)
		return -EFBIG;
	h.body_crc = crc_of(r->data, r->len);
	write_header(&h, bytes);
	make_room(s, size);
	error = ready_segment(s, size);
	if (error)
		return error;
	last = &s->segments[s->count - 1];
	n = pwritev(s->write_fd, parts, 2, (off_t)last->bytes);
	if (n != (ssize_t)size) {
		error = n < 0 ? -errno : -ENOSPC;
		return ftruncate(s->write_fd, (off_t)last->bytes) ? -errno : error;
	}
	s->is_dirty = true;
	last->bytes += size;
	last->end = last->bytes;
	last->samples += r->samples;
	s->total_bytes += size;
	change(s->config.bytes, size);
	change(s->config.samples, r->samples);
	return 0;
}

int spool_sync(struct spool *s)
{
	if (!s->is_dirty)
		return 0;
	if (fdatasync(s->write_fd))
		return -errno;
	s->is_dirty = false;
	return 0;
}

/* --- reading --- */
/* Over the record at @first->next, of @h. */
static void step(struct spool *s, struct segment *first, const struct header *h)
{
	first->next += HEADER_BYTES + h->body_len;
	if (!h->is_done) {
		first->samples -= h->samples;
		change(s->config.samples, -h->samples);
	}
}

static void mark_done(struct spool *s, struct segment *first)
{
	static const uint8_t done[4] = { 1 };

	/* Should it fail, the record is sent once more after a restart: a duplicate rather than a loss. */
	if (pwrite(s->read_fd, done, sizeof(done), (off_t)first->next + DONE_AT) < 0)
		return;
}

/* The record at the front of the first segment. 1: it is in s->peeked and s->body; 0: it was stepped over; -errno. */
static int read_front(struct spool *s, struct segment *first)
{
	uint8_t bytes[HEADER_BYTES];
	struct header *h = &s->peeked;
	uint64_t now = clock_unix_ns();
	bool is_old, is_sound;
	ssize_t n;

	n = pread(s->read_fd, bytes, sizeof(bytes), (off_t)first->next);
	if (n != HEADER_BYTES || !read_header(bytes, h)) {
		metric_add(s->config.dropped_corrupt, first->samples); /* changed under us */
		drop_segment(s);
		return n < 0 ? -errno : 0;
	}
	if (h->is_done) {
		step(s, first, h);
		return 0;
	}
	buf_reset(&s->body);
	if (buf_reserve(&s->body, h->body_len))
		return -ENOMEM;
	n = pread(s->read_fd, s->body.data, h->body_len, (off_t)first->next + HEADER_BYTES);
	if (n < 0)
		return -errno;
	s->body.len = (size_t)n;
	is_sound = (size_t)n == h->body_len && crc_of(s->body.data, s->body.len) == h->body_crc;
	is_old = s->config.max_age_ns && h->time_unix_ns < now && now - h->time_unix_ns > s->config.max_age_ns;
	if (is_sound && !is_old)
		return 1;
	metric_add(is_sound ? s->config.dropped_age : s->config.dropped_corrupt, h->samples);
	metric_add(s->config.corrupt_bytes, is_sound ? 0 : HEADER_BYTES + h->body_len);
	mark_done(s, first);
	step(s, first, h);
	return 0;
}

int spool_peek(struct spool *s, struct spool_record *ret)
{
	while (s->count) {
		struct segment *first = &s->segments[0];
		int found;

		if (first->next >= first->end) {
			drop_segment(s);
			continue;
		}
		if (s->read_fd < 0)
			s->read_fd = open_segment(s, first->number, O_RDWR);
		if (s->read_fd < 0)
			return s->read_fd;
		found = read_front(s, first);
		if (found < 0)
			return found;
		if (!found)
			continue;
		*ret = (struct spool_record){ .data = s->body.data,
					      .len = s->body.len,
					      .message_bytes = s->peeked.message_bytes,
					      .packing = s->peeked.flags & SPOOL_PACKING_MAX,
					      .kind = (uint8_t)(s->peeked.flags >> KIND_SHIFT),
					      .samples = s->peeked.samples,
					      .time_unix_ns = s->peeked.time_unix_ns };
		return 1;
	}
	return 0;
}

void spool_remove(struct spool *s)
{
	struct segment *first = &s->segments[0];

	mark_done(s, first);
	step(s, first, &s->peeked);
	if (first->next >= first->end)
		drop_segment(s);
}

bool spool_is_empty(const struct spool *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->segments[i].next < s->segments[i].end)
			return false;
	return true;
}

uint64_t spool_samples(const struct spool *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->count; i++)
		sum += s->segments[i].samples;
	return sum;
}

const char *spool_dir(const struct spool *s)
{
	return s->dir;
}
