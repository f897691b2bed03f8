/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of jitdumps. The file is the program's own and may be anything: each number is looked at before it is used, a
 * record is taken when all of it is there, and one without sense is passed over. A senseless record size cannot be passed
 * over and ends the reading.
 *
 * V8 (src/diagnostics/perf-jit.cc) moves the addresses of its line tables up by the 64 bytes of an ELF header, counts those
 * of unoptimized functions in bytecode, and has written text of other memory for the names of files: its tables are believed
 * for optimized code, where they are sound from end to end.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/jit/jitdump.h"
#include "symbols/jit/v8_name.h"

/* Values from the specification. */
enum {
	MAGIC = 0x4A695444,
	VERSION = 1,
	FLAG_ARCH_TIMESTAMP = 1, /* times are the CPU's own counter */
	CODE_LOAD = 0,
	CODE_MOVE = 1,
	CODE_DEBUG_INFO = 2,
};

struct header {
	uint32_t magic, version, total_size, elf_mach, pad1, pid;
	uint64_t timestamp, flags;
};

struct record {
	uint32_t id, total_size;
	uint64_t timestamp;
};

struct code_load {
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
	/* then the name with a NUL, then the code */
};

struct code_move {
	uint32_t pid, tid;
	uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
};

struct debug_info {
	uint64_t code_addr, nr_entry;
	/* then the entries */
};

struct debug_entry {
	uint64_t code_addr;
	uint32_t line, discrim;
	/* then the file's name with a NUL; "\xff" is the name before */
};

enum {
	MAX_HEADER_BYTES = 4096,
	HEAD_BYTES = sizeof(struct record) + sizeof(struct code_load) + JIT_CODE_MAX_NAME_BYTES + 1, /* read at once */
	MIN_WORK_BYTES = 64, /* what a small record costs as much as */
	CLOCK_SLACK_NS = 1000000000,
	V8_SHIFT = 64,
};

void jitdump_fini(struct jitdump *d)
{
	buf_fini(&d->lines);
}

static int read_header(struct jitdump *d, int fd, uint64_t size)
{
	struct header h;

	if (size < sizeof(h))
		return 0; /* not written yet */
	if (pread(fd, &h, sizeof(h), 0) != sizeof(h))
		return -EIO;
	if (h.magic == __builtin_bswap32(MAGIC) || (h.magic == MAGIC && h.version != VERSION))
		return -EPROTONOSUPPORT;
	if (h.magic != MAGIC || h.total_size < sizeof(h) || h.total_size > MAX_HEADER_BYTES)
		return -EBADMSG;
	d->has_no_times = h.flags & FLAG_ARCH_TIMESTAMP;
	d->pid = h.pid;
	d->offset = h.total_size;
	return 0;
}

static uint64_t time_of(struct jitdump *d, const struct record *r, uint64_t now_ns)
{
	if (r->timestamp > now_ns && r->timestamp - now_ns > CLOCK_SLACK_NS)
		d->has_no_times = true;
	return d->has_no_times ? 0 : r->timestamp;
}

/* --- line tables --- */

/* Keeps the record for the function that follows it. */
static int keep_lines(struct jitdump *d, int fd, uint64_t offset, uint64_t bytes)
{
	struct debug_info info;

	buf_reset(&d->lines);
	if (bytes < sizeof(info) || bytes > JITDUMP_MAX_LINES_BYTES) {
		d->malformed++;
		return 0;
	}
	if (buf_reserve(&d->lines, bytes))
		return -ENOMEM;
	if (pread(fd, d->lines.data, bytes, (off_t)offset) != (ssize_t)bytes)
		return -EIO;
	d->lines.len = bytes;
	memcpy(&info, d->lines.data, sizeof(info));
	d->lines_addr = info.code_addr;
	return 0;
}

static bool is_path(const char *name, size_t len)
{
	if (!len || len > PATH_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] < ' ')
			return false;
	return true;
}

/* The entry at *@pos into *@line, whose file is the one of @before where the entry says so. */
static int take_entry(const struct buf *lines, size_t *pos, const struct jit_function *f, uint64_t shift,
		      const struct jit_line *before, struct jit_line *line)
{
	struct debug_entry entry;
	const char *name, *end;

	if (lines->len - *pos < sizeof(entry))
		return -EBADMSG;
	memcpy(&entry, lines->data + *pos, sizeof(entry));
	*pos += sizeof(entry);
	name = (const char *)lines->data + *pos;
	end = memchr(name, '\0', lines->len - *pos);
	if (!end || entry.code_addr < f->start + shift || entry.code_addr - shift > f->end)
		return -EBADMSG;
	*pos += (size_t)(end - name) + 1;
	*line = (struct jit_line){ .offset = (uint32_t)(entry.code_addr - shift - f->start),
				   .line = entry.line,
				   .file = name,
				   .file_len = (size_t)(end - name) };
	if (line->file_len == 1 && *name == '\xff' && before) {
		line->file = before->file;
		line->file_len = before->file_len;
	}
	return is_path(line->file, line->file_len) && (!before || before->offset <= line->offset) ? 0 : -EBADMSG;
}

/* The kept lines of @f as rows, *@ret, to be freed; none when they are not sound. 0 or -ENOMEM. */
static int parse_lines(struct jitdump *d, struct jit_function *f, struct jit_line **ret)
{
	uint64_t count, shift = 0;
	size_t pos = sizeof(struct debug_info);
	struct jit_line *lines;
	struct v8_name v8;

	memcpy(&count, d->lines.data + offsetof(struct debug_info, nr_entry), sizeof(count));
	if (v8_name_parse(f->name, f->name_len, &v8)) {
		if (!v8.is_optimized)
			return 0;
		shift = V8_SHIFT;
	}
	if (count > (d->lines.len - pos) / sizeof(struct debug_entry)) {
		d->malformed++;
		return 0;
	}
	lines = reallocarray(NULL, count ? count : 1, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	*ret = lines;
	for (uint64_t i = 0; i < count; i++) {
		if (!take_entry(&d->lines, &pos, f, shift, i ? &lines[i - 1] : NULL, &lines[i]))
			continue;
		d->malformed++;
		return 0;
	}
	f->lines = lines;
	f->line_cnt = (uint32_t)count;
	return 0;
}

/* --- code --- */

static int load(struct jitdump *d, const struct record *r, const uint8_t *body, size_t bytes, uint64_t now_ns,
		struct jit_code *code)
{
	AUTO_FREE struct jit_line *lines = NULL;
	struct jit_function f = { 0 };
	struct code_load l;
	const char *end;
	int error = 0;

	if (bytes <= sizeof(l))
		return -EBADMSG;
	memcpy(&l, body, sizeof(l));
	f.name = (const char *)body + sizeof(l);
	end = memchr(f.name, '\0', bytes - sizeof(l));
	f.name_len = end ? (size_t)(end - f.name) : bytes - sizeof(l);
	if (!f.name_len || !l.code_size || l.code_size > JIT_CODE_MAX_FUNCTION_BYTES ||
	    l.code_addr > UINT64_MAX - l.code_size)
		return -EBADMSG;
	f.start = l.code_addr;
	f.end = l.code_addr + l.code_size;
	f.time_ns = time_of(d, r, now_ns);
	if (d->lines.len && d->lines_addr == f.start)
		error = parse_lines(d, &f, &lines);
	if (!error)
		error = jit_code_add(code, &f);
	buf_reset(&d->lines);
	return error;
}

static int move(struct jitdump *d, const struct record *r, const uint8_t *body, size_t bytes, uint64_t now_ns,
		struct jit_code *code)
{
	struct code_move m;
	int error;

	if (bytes < sizeof(m))
		return -EBADMSG;
	memcpy(&m, body, sizeof(m));
	error = jit_code_move(code, m.old_code_addr, m.new_code_addr, m.code_size, time_of(d, r, now_ns));
	return error == -EINVAL || error == -ENOENT ? -EBADMSG : error;
}

/* One whole record at the offset. 0 or what jitdump_read() returns. */
static int take_record(struct jitdump *d, int fd, const struct record *r, const uint8_t *body, size_t bytes, uint64_t now_ns,
		       struct jit_code *code)
{
	int error = 0;

	d->records++;
	if (d->start_ns && d->pid == d->own_pid && !d->has_no_times && r->timestamp && r->timestamp < d->start_ns) {
		d->older++;
		return 0;
	}
	if (r->id == CODE_LOAD)
		error = load(d, r, body, bytes, now_ns, code);
	else if (r->id == CODE_MOVE)
		error = move(d, r, body, bytes, now_ns, code);
	else if (r->id == CODE_DEBUG_INFO)
		error = keep_lines(d, fd, d->offset + sizeof(*r), r->total_size - sizeof(*r));
	if (error != -EBADMSG)
		return error;
	d->malformed++;
	return 0;
}

int jitdump_read(struct jitdump *d, int fd, uint64_t now_ns, uint64_t max_bytes, struct jit_code *code)
{
	uint8_t head[HEAD_BYTES];
	uint64_t done = 0;
	struct stat st;
	int error;

	if (fstat(fd, &st))
		return -errno;
	if (!d->offset) {
		error = read_header(d, fd, (uint64_t)st.st_size);
		if (error || !d->offset)
			return error;
	}
	while (done < max_bytes) {
		uint64_t there = (uint64_t)st.st_size > d->offset ? (uint64_t)st.st_size - d->offset : 0;
		struct record r;
		ssize_t n;

		if (there < sizeof(r))
			return 0;
		n = pread(fd, head, there < sizeof(head) ? there : sizeof(head), (off_t)d->offset);
		if (n < (ssize_t)sizeof(r))
			return n < 0 && errno != EINTR ? -errno : 0;
		memcpy(&r, head, sizeof(r));
		if (r.total_size < sizeof(r))
			return -EBADMSG;
		if (r.total_size > there)
			return 0;
		if ((size_t)n > r.total_size)
			n = (ssize_t)r.total_size;
		error = take_record(d, fd, &r, head + sizeof(r), (size_t)n - sizeof(r), now_ns, code);
		if (error)
			return error;
		d->offset += r.total_size;
		done += r.total_size > MIN_WORK_BYTES ? r.total_size : MIN_WORK_BYTES;
	}
	return 1;
}
