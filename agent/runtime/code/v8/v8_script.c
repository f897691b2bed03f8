/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/v8/v8_script.h"
#include "base/cleanup.h"
#include "base/search.h"

int v8_script_open(struct v8_heap *h, uint64_t word, struct v8_script *ret)
{
	const struct v8_offsets *o = &h->layout->offset;
	uint64_t id, line, column;
	uint16_t type = v8_type(h, word);

	memset(ret, 0, sizeof(*ret));
	if (type == V8_NO_TYPE)
		return v8_unreadable(h);
	if (type != h->layout->type.script)
		return -EBADMSG;
	ret->word = word;
	if (v8_field(h, word, o->script_source, &ret->source) || v8_field(h, word, o->script_name, &ret->name) ||
	    v8_field(h, word, o->script_id, &id) || v8_field(h, word, o->script_line, &line) ||
	    v8_field(h, word, o->script_column, &column))
		return v8_unreadable(h);
	if (!v8_is_smi(id) || !v8_is_smi(line) || !v8_is_smi(column))
		return -EBADMSG;
	ret->id = v8_smi(id);
	ret->line = v8_smi(line);
	ret->column = v8_smi(column);
	return 0;
}

/* --- ends of lines --- */

/* The characters of a source that are looked at together, and the one behind them. */
struct chars {
	const uint8_t *bytes;
	uint32_t width, count, behind; /* behind: the character after the last; 0: none */
};

static uint32_t char_at(const struct chars *c, uint32_t i)
{
	uint16_t wide;

	if (i == c->count)
		return c->behind;
	if (c->width == 1)
		return c->bytes[i];
	memcpy(&wide, c->bytes + 2 * (size_t)i, sizeof(wide));
	return wide;
}

/* Does character @i end a line, by ECMAScript's LineTerminatorSequence? */
static bool ends_line(const struct chars *c, uint32_t i)
{
	uint32_t ch = char_at(c, i);

	if (ch == '\n' || ch == 0x2028 || ch == 0x2029)
		return true;
	return ch == '\r' && char_at(c, i + 1) != '\n';
}

/* Reads @count characters of @t from @from on, into @bytes. */
static int read_chars(struct v8_heap *h, const struct v8_text *t, uint32_t from, uint32_t count, uint8_t *bytes,
		      struct chars *ret)
{
	uint64_t at = t->addr + (uint64_t)from * t->width;
	uint16_t behind = 0;
	int error = code_read(h->memory, at, bytes, (size_t)count * t->width);

	if (!error && from + count < t->chars)
		error = v8_copy(h, at + (uint64_t)count * t->width, &behind, t->width);
	*ret = (struct chars){ bytes, t->width, count, behind };
	return error;
}

/* --- marks --- */

/* Sets the marks of @m for the source @t. */
static int mark(struct v8_heap *h, const struct v8_text *t, struct v8_marks *marks, const struct v8_marked *m)
{
	AUTO_FREE uint8_t *bytes = malloc(2 * (size_t)V8_MARK_CHARS);
	struct v8_mark now = { 0, 0 };

	if (!bytes)
		return -ENOMEM;
	for (uint32_t k = 0; k < m->count; k++) {
		uint32_t from = k * V8_MARK_CHARS, left = t->chars - from;
		struct chars c;
		int error;

		marks->marks[m->first + k] = now;
		error = read_chars(h, t, from, left < V8_MARK_CHARS ? left : V8_MARK_CHARS, bytes, &c);
		if (error)
			return error;
		for (uint32_t i = 0; i < c.count; i++) {
			if (!ends_line(&c, i))
				continue;
			now.line++;
			now.start = from + i + 1;
		}
	}
	return 0;
}

static struct v8_marked *find_marked(struct v8_marks *marks, const struct v8_script *s)
{
	for (uint32_t i = 0; i < marks->script_cnt && i < V8_MARKED_SCRIPTS; i++)
		if (marks->scripts[i].id == s->id && marks->scripts[i].source == s->source)
			return &marks->scripts[i];
	return NULL;
}

/* Room for another script of @count marks; all others are forgotten where there is none. */
static struct v8_marked *make_room(struct v8_marks *marks, uint32_t count)
{
	if (marks->script_cnt >= V8_MARKED_SCRIPTS || marks->mark_cnt > V8_MARKS - count)
		marks->script_cnt = marks->mark_cnt = 0;
	return &marks->scripts[marks->script_cnt];
}

/* Finds or makes the marks of @s, whose source is @t. */
static int find_marks(struct v8_heap *h, struct v8_marks *marks, const struct v8_script *s, const struct v8_text *t,
		      const struct v8_marked **ret)
{
	uint32_t count = t->chars / V8_MARK_CHARS + 1;
	struct v8_marked *m = find_marked(marks, s);
	int error;

	*ret = m;
	if (m)
		return m->chars == t->chars ? 0 : -EBADMSG;
	if ((uint64_t)t->chars * t->width > V8_SOURCE_MAX_BYTES || count > V8_MARKS)
		return -ENODATA;
	m = make_room(marks, count);
	*m = (struct v8_marked){ s->source, s->id, t->chars, marks->mark_cnt, count };
	error = mark(h, t, marks, m);
	if (error)
		return error;
	marks->script_cnt++;
	marks->mark_cnt += count;
	*ret = m;
	return 0;
}

/* --- positions --- */

static int load(struct v8_heap *h, struct v8_window *w, const struct v8_text *t, uint64_t source, uint32_t k,
		const struct v8_mark *m)
{
	uint32_t from = k * V8_MARK_CHARS, left = t->chars - from;
	struct chars c;
	int error;

	w->source = 0;
	error = read_chars(h, t, from, left < V8_MARK_CHARS ? left : V8_MARK_CHARS, w->bytes, &c);
	if (error)
		return error;
	w->starts[0] = m->start;
	w->start_cnt = 1;
	w->first_line = m->line;
	for (uint32_t i = 0; i < c.count; i++)
		if (ends_line(&c, i))
			w->starts[w->start_cnt++] = from + i + 1;
	w->source = source;
	w->mark = k;
	return 0;
}

int v8_script_line(struct v8_heap *h, struct v8_marks *marks, struct v8_window *w, const struct v8_script *s,
		   uint32_t position, uint32_t *line, uint32_t *column)
{
	uint32_t k = position / V8_MARK_CHARS, behind;
	const struct v8_marked *m;
	struct v8_text t;
	int error = v8_text_of(h, s->source, &t);

	if (error)
		return error == -EBADMSG ? -ENODATA : error;
	if (position > t.chars)
		return -EBADMSG;
	if (w->source != s->source || w->mark != k) {
		error = find_marks(h, marks, s, &t, &m);
		if (!error && (k >= m->count || m->first > V8_MARKS - m->count))
			error = -EBADMSG;
		if (!error)
			error = load(h, w, &t, s->source, k, &marks->marks[m->first + k]);
		if (error)
			return error;
	}
	behind = search_first(at, w->start_cnt, w->starts[at] > position);
	if (!behind)
		return -EBADMSG;
	*line = w->first_line + behind + (uint32_t)s->line;
	*column = position - w->starts[behind - 1] + 1 + (*line == (uint32_t)s->line + 1 ? (uint32_t)s->column : 0);
	return 0;
}
