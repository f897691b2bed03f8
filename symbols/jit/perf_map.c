/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of perf maps. Whole lines of a block are taken; the block after begins with the line that was cut. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/jit/perf_map.h"

enum { BLOCK_BYTES = 64 << 10, MAX_ADDR_BITS = 57 /* of user space, five-level page tables */ };

/* A number in hex, with or without 0x, and the blanks behind it. NULL when there is none. */
static const char *take_hex(const char *p, const char *end, uint64_t *ret)
{
	const char *start;
	uint64_t value = 0;

	if (end - p > 2 && p[0] == '0' && (p[1] | 32) == 'x')
		p += 2;
	for (start = p; p < end && p - start < 16; p++) {
		unsigned digit = (unsigned char)*p;

		digit = digit - '0' < 10 ? digit - '0' : (digit | 32) - 'a' < 6 ? (digit | 32) - 'a' + 10 : 16;
		if (digit > 15)
			break;
		value = value << 4 | digit;
	}
	if (p == start || p == end || *p != ' ')
		return NULL;
	while (p < end && *p == ' ')
		p++;
	*ret = value;
	return p;
}

int perf_map_parse_line(const char *line, size_t len, struct jit_function *ret)
{
	const char *end = line + len, *name;
	uint64_t start, size;

	while (end > line && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	name = take_hex(line, end, &start);
	name = name ? take_hex(name, end, &size) : NULL;
	if (!name || name == end || !size || size > JIT_CODE_MAX_FUNCTION_BYTES || start >> MAX_ADDR_BITS)
		return -EBADMSG;
	for (const char *p = name; p < end; p++)
		if ((unsigned char)*p < ' ' && *p != '\t')
			return -EBADMSG;
	*ret = (struct jit_function){ .start = start, .end = start + size, .name = name, .name_len = (size_t)(end - name) };
	return 0;
}

/* 0, -ENOSPC, -ENOMEM. */
static int add_line(struct perf_map *m, const char *line, size_t len, uint64_t time_ns, struct jit_code *code)
{
	struct jit_function f;

	if (!len)
		return 0;
	m->lines++;
	if (len > PERF_MAP_MAX_LINE_BYTES || perf_map_parse_line(line, len, &f)) {
		m->malformed++;
		return 0;
	}
	f.time_ns = time_ns;
	return jit_code_add(code, &f);
}

static void set_mark(struct perf_map *m, const char *end, size_t have)
{
	m->mark_len = (uint8_t)(have < PERF_MAP_MARK_BYTES ? have : PERF_MAP_MARK_BYTES);
	memcpy(m->mark, end - m->mark_len, m->mark_len);
}

/* Takes the whole lines at @text; *@used_ret bytes of it are done with. */
static int take_lines(struct perf_map *m, const char *text, size_t len, uint64_t time_ns, struct jit_code *code,
		      size_t *used_ret)
{
	const char *line = text, *end = text + len, *newline;
	int error = 0;

	while (!error && (newline = memchr(line, '\n', (size_t)(end - line)))) {
		if (m->is_inside)
			m->is_inside = false;
		else
			error = add_line(m, line, (size_t)(newline - line), time_ns, code);
		line = newline + 1;
	}
	if (!error && (m->is_inside || end - line > PERF_MAP_MAX_LINE_BYTES)) {
		m->malformed += !m->is_inside;
		m->lines += !m->is_inside;
		m->is_inside = true;
		line = end;
	}
	*used_ret = (size_t)(line - text);
	if (line > text)
		set_mark(m, line, *used_ret);
	return error;
}

/* Is the file still the one that was read up to the offset? */
static bool is_same(const struct perf_map *m, int fd)
{
	uint8_t now[PERF_MAP_MARK_BYTES];

	return pread(fd, now, m->mark_len, (off_t)(m->offset - m->mark_len)) == m->mark_len &&
	       !memcmp(now, m->mark, m->mark_len);
}

static void start_again(struct perf_map *m)
{
	m->offset = 0;
	m->mark_len = 0;
	m->is_inside = false;
}

int perf_map_read(struct perf_map *m, int fd, uint64_t time_ns, uint64_t max_bytes, struct jit_code *code)
{
	AUTO_FREE char *block = NULL;
	uint64_t done = 0;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!is_same(m, fd))
		start_again(m);
	else if ((uint64_t)st.st_size == m->offset)
		return 0;
	block = malloc(BLOCK_BYTES);
	if (!block)
		return -ENOMEM;
	while (done < max_bytes) {
		ssize_t n;
		size_t used;
		int error;

		if (m->offset >= PERF_MAP_MAX_BYTES)
			return -EFBIG;
		n = pread(fd, block, BLOCK_BYTES, (off_t)m->offset);
		if (n <= 0)
			return n < 0 && errno != EINTR ? -errno : 0;
		error = take_lines(m, block, (size_t)n, time_ns, code, &used);
		m->offset += used;
		done += used;
		if (error || !used)
			return error;
	}
	return 1;
}
