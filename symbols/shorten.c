/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text is read once for each depth tried. '<' and '>' are brackets except where they belong to an operator: behind
 * "operator", in "->", and between parentheses, as demanglers write expressions. A guess wrong about that only moves the
 * place where "..." stands; where brackets do not fit together nothing is guessed. Any thread.
 */
#include "symbols/shorten.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/utf8.h"

enum { MAX_OPEN = 256 };

struct brackets {
	char open[MAX_OPEN];
	unsigned count;
	unsigned depth; /* how many of them are '<' */
	bool is_odd;	/* they do not fit together, or are too many */
};

static bool is_word(char c)
{
	return c == '_' || c == '$' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c & 0x80;
}

/* The length of what stands at @at if it is "operator" with a sign that says nothing of brackets. */
static size_t operator_at(const char *name, size_t len, size_t at)
{
	static const char *const signs[] = { "()", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">" };
	size_t word = strlen("operator");

	if (len - at <= word || memcmp(name + at, "operator", word) != 0 || (at && is_word(name[at - 1])))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
		size_t n = strlen(signs[i]);

		if (len - at - word >= n && !memcmp(name + at + word, signs[i], n))
			return word + n;
	}
	return 0;
}

static void push(struct brackets *b, char c)
{
	if (b->count == MAX_OPEN) {
		b->is_odd = true;
		return;
	}
	b->open[b->count++] = c;
	b->depth += c == '<';
}

static void pop(struct brackets *b, char opening)
{
	/* A '<' that nothing closed was a comparison. */
	while (opening != '<' && b->count && b->open[b->count - 1] == '<') {
		b->count--;
		b->depth--;
	}
	if (b->count && b->open[b->count - 1] == opening) {
		b->count--;
		b->depth -= opening == '<';
	} else if (opening != '<') {
		b->is_odd = true;
	}
}

static void step(struct brackets *b, char before, char c)
{
	switch (c) {
	case '<': /* (a)<(b) compares */
		if (before != ')' && before != '}')
			push(b, c);
		break;
	case '>':
		if (before != '-')
			pop(b, '<');
		break;
	case '(':
	case '[':
	case '{':
		push(b, c);
		break;
	case ')':
		pop(b, '(');
		break;
	case ']':
		pop(b, '[');
		break;
	case '}':
		pop(b, '{');
		break;
	}
}

/* Appends @name without arguments deeper than @max_depth. False when the brackets do not fit. */
static bool leave_out(const char *name, size_t len, unsigned max_depth, struct buf *out)
{
	struct brackets b = { 0 };
	char before = '\0';

	for (size_t i = 0, n; i < len && !b.is_odd; i += n) {
		unsigned depth = b.depth;

		n = operator_at(name, len, i);
		if (n) {
			before = '\0';
		} else {
			n = 1;
			step(&b, before, name[i]);
			before = name[i];
		}
		if (depth > max_depth && b.depth <= max_depth)
			buf_puts(out, "...");
		if (depth <= max_depth || b.depth <= max_depth)
			buf_append(out, name + i, n);
	}
	return !b.is_odd && !b.count;
}

/* Appends @name without its middle. */
static void cut(const char *name, size_t len, size_t max_bytes, struct buf *out)
{
	size_t head = utf8_cut(name, len, (max_bytes - 3) / 2), tail = len - (max_bytes - 3 - head);

	while (tail < len && (name[tail] & 0xc0) == 0x80)
		tail++;
	buf_append(out, name, head);
	buf_puts(out, "...");
	buf_append(out, name + tail, len - tail);
}

void shorten_name(const char *name, size_t len, unsigned max_depth, size_t max_bytes, struct buf *out)
{
	size_t start = out->len;

	for (unsigned depth = max_depth + 1; depth-- > 0;) {
		if (!leave_out(name, len, depth, out))
			break;
		if (out->len - start <= max_bytes)
			return;
		out->len = start;
	}
	out->len = start;
	if (len <= max_bytes)
		buf_append(out, name, len);
	else
		cut(name, len, max_bytes, out);
}
