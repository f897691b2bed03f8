/* SPDX-License-Identifier: Apache-2.0 */
#include "enrich/kube/pieces.h"

#include <errno.h>
#include <string.h>

void pieces_init(struct pieces *p, enum pieces_of of, void (*fn)(void *arg, const void *json, size_t len, bool is_item),
		 void *arg)
{
	*p = (struct pieces){ .of = of, .fn = fn, .arg = arg };
}

void pieces_fini(struct pieces *p)
{
	buf_fini(&p->piece);
}

bool pieces_are_whole(const struct pieces *p)
{
	return !p->depth && !p->inner && !p->in_string;
}

/* Does an object that opens here belong to the caller? */
static bool is_wanted(const struct pieces *p)
{
	if (p->of == PIECES_OF_WATCH)
		return p->depth == 0;
	return p->depth == 1 || (p->depth == 2 && p->outer[1] == '[');
}

static int open_outside(struct pieces *p, char bracket)
{
	if (p->depth == sizeof(p->outer) || (p->depth == 0 && (bracket != '{' || p->of == PIECES_OF_WATCH)))
		return -EBADMSG;
	p->outer[p->depth++] = bracket;
	return 0;
}

static int close_outside(struct pieces *p, char bracket)
{
	if (!p->depth || (p->outer[p->depth - 1] == '{') != (bracket == '}'))
		return -EBADMSG;
	p->depth--;
	return 0;
}

static void begin_piece(struct pieces *p)
{
	buf_reset(&p->piece);
	p->passed = 0;
	p->is_too_long = false;
	p->inner = 1;
}

/* An object ended. */
static void end_piece(struct pieces *p)
{
	if (p->is_too_long)
		p->too_long++;
	else if (!p->piece.failed)
		p->fn(p->arg, p->piece.data, p->piece.len, p->of == PIECES_OF_WATCH || p->depth == 2);
	if (p->piece.cap > PIECE_MAX_BYTES / 16) /* a large one is seldom */
		buf_fini(&p->piece);
}

/* Looks at the byte @c outside of strings and pieces. */
static int look_outside(struct pieces *p, char c)
{
	if (c == '{' && is_wanted(p)) {
		begin_piece(p);
		return 0;
	}
	if (c == '{' || c == '[')
		return open_outside(p, c);
	if (c == '}' || c == ']')
		return close_outside(p, c);
	if (c == '"' && p->depth) {
		p->in_string = true;
		return 0;
	}
	return p->depth || strchr(" \t\r\n", c) ? 0 : -EBADMSG;
}

/* How many of the bytes belong to the piece that is open; ends are looked for here. */
static size_t look_inside(struct pieces *p, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = data[i];

		if (p->is_escaped) {
			p->is_escaped = false;
		} else if (p->in_string) {
			p->is_escaped = c == '\\';
			p->in_string = c != '"';
		} else if (c == '"') {
			p->in_string = true;
		} else if (c == '{' || c == '[') {
			p->inner++;
		} else if ((c == '}' || c == ']') && !--p->inner) {
			return i + 1;
		}
	}
	return len;
}

static int keep(struct pieces *p, const char *data, size_t len)
{
	if (!p->is_too_long && p->piece.len + len > PIECE_MAX_BYTES) {
		p->is_too_long = true;
		buf_fini(&p->piece);
	}
	p->passed += len;
	if (p->passed > PIECE_ENDLESS_BYTES)
		return -EFBIG;
	if (!p->is_too_long)
		buf_append(&p->piece, data, len);
	return p->piece.failed ? -ENOMEM : 0;
}

/* Passes over the bytes of a string outside of pieces; returns how many. */
static size_t pass_string(struct pieces *p, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (p->is_escaped) {
			p->is_escaped = false;
		} else if (data[i] == '"') {
			p->in_string = false;
			return i + 1;
		} else {
			p->is_escaped = data[i] == '\\';
		}
	}
	return len;
}

int pieces_take(struct pieces *p, const char *data, size_t len)
{
	int err = 0;

	for (size_t step; len && !err; data += step, len -= step) {
		step = 1;
		if (p->inner) {
			step = look_inside(p, data, len);
			err = keep(p, data, step);
			if (!err && !p->inner)
				end_piece(p);
		} else if (p->in_string) {
			step = pass_string(p, data, len);
		} else {
			err = look_outside(p, *data);
			if (!err && p->inner)
				err = keep(p, data, 1);
		}
	}
	return err;
}
