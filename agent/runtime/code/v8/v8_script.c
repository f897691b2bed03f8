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

static uint16_t wide_at(const struct chars *c, uint32_t i)
{
	uint16_t wide;

	memcpy(&wide, c->bytes + 2 * (size_t)i, sizeof(wide));
	return wide;
}

/* Is @ch, with @next behind it, the end of a line, by ECMAScript's LineTerminatorSequence? */
static bool ends_line(uint32_t ch, uint32_t next)
{
	return ch == '\n' || (ch == '\r' && next != '\n') || (ch & ~1u) == 0x2028;
}

/* The first character at @i or behind that ends a line; c->count: there is none. Nearly all characters are greater than
 * those that do, and most sources have one byte for each. */
static uint32_t next_end(const struct chars *c, uint32_t i)
{
	if (c->width == 1)
		for (; i < c->count; i++) {
			if (c->bytes[i] <= '\r' && ends_line(c->bytes[i], i + 1 < c->count ? c->bytes[i + 1] : c->behind))
				break;
		}
	else
		for (; i < c->count; i++) {
			uint16_t ch = wide_at(c, i);

			if ((ch <= '\r' || (ch & ~1u) == 0x2028) &&
			    ends_line(ch, i + 1 < c->count ? wide_at(c, i + 1) : c->behind))
				break;
		}
	return i;
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
		for (uint32_t i = 0; (i = next_end(&c, i)) < c.count; i++) {
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

void v8_windows_fini(struct v8_windows *w)
{
	for (uint32_t i = 0; i < V8_WINDOWS; i++)
		free(w->recent[i]);
}

static int load(struct v8_heap *h, struct v8_window *w, const struct v8_text *t, uint64_t source, uint32_t k,
		const struct v8_mark *m)
{
	AUTO_FREE uint8_t *bytes = malloc(2 * (size_t)V8_MARK_CHARS);
	uint32_t from = k * V8_MARK_CHARS, left = t->chars - from;
	struct chars c;
	int error;

	w->source = 0;
	if (!bytes)
		return -ENOMEM;
	error = read_chars(h, t, from, left < V8_MARK_CHARS ? left : V8_MARK_CHARS, bytes, &c);
	if (error)
		return error;
	w->line = m->line;
	w->start = m->start;
	w->start_cnt = 0;
	for (uint32_t i = 0; (i = next_end(&c, i)) < c.count; i++)
		w->starts[w->start_cnt++] = (uint16_t)(i + 1);
	w->source = source;
	w->mark = k;
	return 0;
}

/* The window of piece @k of @source, first in @w; where it is new, or another's that was not needed for longest, it is of
 * none yet. NULL without memory. */
static struct v8_window *find_window(struct v8_windows *w, uint64_t source, uint32_t k)
{
	struct v8_window *found;
	uint32_t i = 0;

	while (i < V8_WINDOWS - 1 && w->recent[i] && (w->recent[i]->source != source || w->recent[i]->mark != k))
		i++;
	found = w->recent[i];
	if (!found) {
		found = malloc(sizeof(*found));
		if (!found)
			return NULL;
		found->source = 0;
	} else if (found->source != source || found->mark != k) {
		found->source = 0;
	}
	memmove(&w->recent[1], &w->recent[0], i * sizeof(*w->recent));
	w->recent[0] = found;
	return found;
}

int v8_script_line(struct v8_heap *h, struct v8_marks *marks, struct v8_windows *windows, const struct v8_script *s,
		   uint32_t position, uint32_t *line, uint32_t *column)
{
	uint32_t k = position / V8_MARK_CHARS, behind, start;
	const struct v8_marked *m;
	struct v8_window *w;
	struct v8_text t;
	int error = v8_text_of(h, s->source, &t);

	if (error)
		return error == -EBADMSG ? -ENODATA : error;
	if (position > t.chars)
		return -EBADMSG;
	w = find_window(windows, s->source, k);
	if (!w)
		return -ENOMEM;
	if (!w->source) {
		error = find_marks(h, marks, s, &t, &m);
		if (!error && (k >= m->count || m->first > V8_MARKS - m->count))
			error = -EBADMSG;
		if (!error)
			error = load(h, w, &t, s->source, k, &marks->marks[m->first + k]);
		if (error)
			return error;
	}
	behind = search_first(at, w->start_cnt, w->starts[at] > position - k * V8_MARK_CHARS);
	start = behind ? k * V8_MARK_CHARS + w->starts[behind - 1] : w->start;
	if (start > position)
		return -EBADMSG;
	*line = w->line + behind + 1 + (uint32_t)s->line;
	*column = position - start + 1 + (*line == (uint32_t)s->line + 1 ? (uint32_t)s->column : 0);
	return 0;
}
