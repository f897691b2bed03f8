/* SPDX-License-Identifier: Apache-2.0 */
/* Content: struct head, functions, scopes, places, text. A scope's parent has a lower number, so no chain of them is
 * endless. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/search.h"
#include "base/vec.h"
#include "symbols/script/block_names.h"
#include "symbols/script/script.h"

struct head {
	uint32_t place_cnt, text_bytes;
	uint16_t function_cnt, scope_cnt;
};

struct function {
	uint32_t name, file; /* offsets in the text */
	uint16_t name_bytes, file_bytes;
	uint32_t start_line;
};

struct scope {
	uint16_t parent, function;
	uint32_t line;
};

struct place {
	uint32_t start;
	uint16_t scope, flags; /* enum block_place_flags */
};

/* --- reading --- */

struct content {
	struct head head;
	const uint8_t *functions, *scopes, *places;
	const char *text;
};

static bool open_content(const void *bytes, size_t len, struct content *c)
{
	size_t functions, scopes, places;

	if (len < sizeof(c->head))
		return false;
	memcpy(&c->head, bytes, sizeof(c->head));
	functions = c->head.function_cnt * sizeof(struct function);
	scopes = c->head.scope_cnt * sizeof(struct scope);
	places = (size_t)c->head.place_cnt * sizeof(struct place);
	if (c->head.place_cnt > BLOCK_NAMES_MAX_PLACES ||
	    len != sizeof(c->head) + functions + scopes + places + c->head.text_bytes)
		return false;
	c->functions = (const uint8_t *)bytes + sizeof(c->head);
	c->scopes = c->functions + functions;
	c->places = c->scopes + scopes;
	c->text = (const char *)c->places + places;
	return true;
}

static struct function function_at(const struct content *c, uint32_t i)
{
	struct function f;

	memcpy(&f, c->functions + i * sizeof(f), sizeof(f));
	return f;
}

static struct scope scope_at(const struct content *c, uint32_t i)
{
	struct scope s;

	memcpy(&s, c->scopes + i * sizeof(s), sizeof(s));
	return s;
}

static struct place place_at(const struct content *c, uint32_t i)
{
	struct place p;

	memcpy(&p, c->places + i * sizeof(p), sizeof(p));
	return p;
}

static bool is_in_text(const struct content *c, uint32_t at, uint32_t bytes)
{
	return at <= c->head.text_bytes && bytes <= c->head.text_bytes - at;
}

static bool function_is_sound(const struct content *c, uint32_t i)
{
	struct function f = function_at(c, i);

	return f.name_bytes && is_in_text(c, f.name, f.name_bytes) && is_in_text(c, f.file, f.file_bytes);
}

static bool scope_is_sound(const struct content *c, uint32_t i)
{
	struct scope s = scope_at(c, i);

	return s.function < c->head.function_cnt && (s.parent < i || s.parent == BLOCK_NAMES_NONE);
}

bool block_names_are_sound(const void *content, size_t len)
{
	struct content c;
	uint64_t before = 0;

	if (!open_content(content, len, &c) || !c.head.function_cnt)
		return false;
	for (uint32_t i = 0; i < c.head.function_cnt; i++)
		if (!function_is_sound(&c, i))
			return false;
	for (uint32_t i = 0; i < c.head.scope_cnt; i++)
		if (!scope_is_sound(&c, i))
			return false;
	for (uint32_t i = 0; i < c.head.place_cnt; i++) {
		struct place p = place_at(&c, i);

		if (p.start < before || (p.scope >= c.head.scope_cnt && p.scope != BLOCK_NAMES_NONE))
			return false;
		before = p.start + 1ull;
	}
	return true;
}

static struct block_line line_of(const struct content *c, const struct scope *s)
{
	struct function f = function_at(c, s->function);

	return (struct block_line){ .name = c->text + f.name,
				    .file = c->text + f.file,
				    .name_bytes = f.name_bytes,
				    .file_bytes = f.file_bytes,
				    .line = s->line,
				    .start_line = f.start_line };
}

uint32_t block_names_find(const void *content, size_t len, uint32_t place, bool is_return,
			  struct block_line lines[static BLOCK_NAMES_MAX_DEPTH])
{
	uint32_t behind, count = 0, scope;
	bool is_approximate;
	struct content c;
	struct place p;

	if (!open_content(content, len, &c))
		return 0;
	behind = search_first(at, c.head.place_cnt, place_at(&c, at).start > place);
	if (!behind)
		return 0;
	p = place_at(&c, behind - 1);
	is_approximate = p.flags & BLOCK_PLACE_INEXACT;
	if (p.flags & BLOCK_PLACE_EXACT_CALLS && is_return && behind < c.head.place_cnt &&
	    place_at(&c, behind).start == place + 1)
		is_approximate = false;
	for (scope = p.scope; scope < c.head.scope_cnt && count < BLOCK_NAMES_MAX_DEPTH; count++) {
		struct scope s = scope_at(&c, scope);

		if (!scope_is_sound(&c, scope) || !function_is_sound(&c, s.function))
			return count;
		lines[count] = line_of(&c, &s);
		lines[count].is_approximate = is_approximate;
		scope = s.parent;
	}
	return count;
}

/* --- making --- */

struct block_names {
	struct intern *functions, *scopes, *texts; /* struct function, struct scope, and the texts by their bytes */
	uint32_t *text_at;			   /* parallel to texts: where each begins */
	uint32_t text_cap;
	struct place *places;
	uint32_t place_cnt, place_cap;
	struct buf text, clean;
	bool has_failed;
};

struct block_names *block_names_new(void)
{
	struct block_names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->functions = intern_new();
	n->scopes = intern_new();
	n->texts = intern_new();
	if (n->functions && n->scopes && n->texts)
		return n;
	block_names_free(n);
	return NULL;
}

void block_names_free(struct block_names *n)
{
	if (!n)
		return;
	intern_free(n->functions);
	intern_free(n->scopes);
	intern_free(n->texts);
	free(n->text_at);
	free(n->places);
	buf_fini(&n->text);
	buf_fini(&n->clean);
	free(n);
}

/* Where the text stands among all; its length in *@bytes_ret. */
static uint32_t add_text(struct block_names *n, const char *text, size_t bytes, uint16_t *bytes_ret)
{
	uint32_t i = 0;
	int status;

	buf_reset(&n->clean);
	script_utf8(text, bytes < BLOCK_NAMES_MAX_TEXT ? bytes : BLOCK_NAMES_MAX_TEXT, &n->clean);
	*bytes_ret = (uint16_t)(n->clean.len < UINT16_MAX ? n->clean.len : UINT16_MAX);
	status = n->clean.failed || vec_reach(&n->text_at, &n->text_cap, intern_count(n->texts))
			 ? -ENOMEM
			 : intern_add(n->texts, n->clean.data, *bytes_ret, &i);
	if (status < 0) {
		n->has_failed = true;
		return 0;
	}
	if (status) {
		n->text_at[i] = (uint32_t)n->text.len;
		buf_append(&n->text, n->clean.data, *bytes_ret);
	}
	return n->text_at[i];
}

/* The number of @thing in @in. */
static uint16_t add_thing(struct block_names *n, struct intern *in, const void *thing, size_t bytes)
{
	uint32_t i;

	if (intern_count(in) >= BLOCK_NAMES_MAX)
		return BLOCK_NAMES_NONE;
	if (intern_add(in, thing, bytes, &i) >= 0)
		return (uint16_t)i;
	n->has_failed = true;
	return BLOCK_NAMES_NONE;
}

uint16_t block_names_function(struct block_names *n, const char *name, size_t name_bytes, const char *file,
			      size_t file_bytes, uint32_t start_line)
{
	struct function f;

	memset(&f, 0, sizeof(f));
	f.name = add_text(n, name, name_bytes, &f.name_bytes);
	f.file = add_text(n, file, file_bytes, &f.file_bytes);
	f.start_line = start_line;
	return n->has_failed || !f.name_bytes ? BLOCK_NAMES_NONE : add_thing(n, n->functions, &f, sizeof(f));
}

uint16_t block_names_scope(struct block_names *n, uint16_t parent, uint16_t function, uint32_t line)
{
	struct scope s;

	if (function == BLOCK_NAMES_NONE)
		return BLOCK_NAMES_NONE;
	memset(&s, 0, sizeof(s));
	s.parent = parent;
	s.function = function;
	s.line = line;
	return add_thing(n, n->scopes, &s, sizeof(s));
}

void block_names_place(struct block_names *n, uint32_t place, uint16_t scope, uint32_t flags)
{
	const struct place p = { place, scope, (uint16_t)flags };
	struct place *last = n->place_cnt ? &n->places[n->place_cnt - 1] : NULL;

	if (last && last->start > place)
		return;
	if (last && last->start == place) { /* the later word counts */
		*last = p;
		return;
	}
	if (n->place_cnt == BLOCK_NAMES_MAX_PLACES)
		return;
	if (vec_reach(&n->places, &n->place_cap, n->place_cnt))
		n->has_failed = true;
	else
		n->places[n->place_cnt++] = p;
}

void block_names_fill(struct block_names *n, uint16_t scope)
{
	for (uint32_t i = 0; i < n->place_cnt; i++)
		if (n->places[i].scope == BLOCK_NAMES_NONE)
			n->places[i] = (struct place){ n->places[i].start, scope, BLOCK_PLACE_INEXACT };
}

static void append_all(const struct intern *in, struct buf *out)
{
	for (uint32_t i = 0; i < intern_count(in); i++) {
		size_t bytes;
		const void *thing = intern_get(in, i, &bytes);

		buf_append(out, thing, bytes);
	}
}

int block_names_write(const struct block_names *n, struct buf *out)
{
	const struct head head = { .place_cnt = n->place_cnt,
				   .text_bytes = (uint32_t)n->text.len,
				   .function_cnt = (uint16_t)intern_count(n->functions),
				   .scope_cnt = (uint16_t)intern_count(n->scopes) };

	if (n->has_failed || n->text.failed)
		return -ENOMEM;
	if (!head.function_cnt)
		return -ENODATA;
	buf_append(out, &head, sizeof(head));
	append_all(n->functions, out);
	append_all(n->scopes, out);
	buf_append(out, n->places, n->place_cnt * sizeof(*n->places));
	buf_append(out, n->text.data, n->text.len);
	return out->failed ? -ENOMEM : 0;
}
