/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the keys of components by their tables. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/nearest.h"
#include "base/text/parse.h"
#include "base/vec.h"
#include "cmd/pipeline/component.h"

enum { PATH_MAX_BYTES = 256 };

int pipeline_refuse(struct reader *r, const struct tree *at, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tree_place(at, r->error);
	buf_puts(r->error, text);
	return -EINVAL;
}

/* --- names of keys --- */

/* The next character of @s that counts; 0 at the end. */
static char next_letter(const char **s)
{
	while (**s == '_')
		(*s)++;
	return **s ? (char)tolower((unsigned char)*(*s)++) : '\0';
}

static bool is_same_key(const char *a, const char *b)
{
	for (char x, y;;) {
		x = next_letter(&a);
		y = next_letter(&b);
		if (x != y)
			return false;
		if (!x)
			return true;
	}
}

/* Whether @path begins as @below does, up to a dot. */
static bool is_below(const char *path, const char *below)
{
	for (const char *dot = strchr(path, '.'); dot; dot = strchr(dot + 1, '.')) {
		char begin[PATH_MAX_BYTES];

		snprintf(begin, sizeof(begin), "%.*s", (int)(dot - path), path);
		if (is_same_key(begin, below))
			return true;
	}
	return false;
}

/* --- settings --- */

static int add_text(struct tree *list, const struct tree *at, const char *text)
{
	struct tree *item;

	if (vec_reach(&list->items, &list->cap, list->count))
		return -ENOMEM;
	item = &list->items[list->count];
	*item = (struct tree){ .kind = TREE_TEXT, .source = at->source, .line = at->line, .text = strdup(text) };
	if (!item->text)
		return -ENOMEM;
	list->count++;
	return 0;
}

/* Makes a list of the one text that @t is. */
static int make_list(struct tree *t)
{
	AUTO_FREE char *text = t->text;

	if (t->kind == TREE_LIST)
		return 0;
	t->kind = TREE_LIST;
	t->text = NULL;
	return text ? add_text(t, t, text) : 0;
}

int component_add(struct tree *settings, const struct tree *at, const char *option, const char *text)
{
	struct tree *there = tree_find(settings, option);
	struct tree value = { .kind = TREE_TEXT, .source = at->source, .line = at->line };
	int err;

	if (there) {
		err = make_list(there);
		return err ? err : add_text(there, at, text);
	}
	value.text = strdup(text);
	return value.text ? tree_set(settings, option, "\n", &value) : -ENOMEM;
}

static int set_option(struct reader *r, const struct tree *node, const char *option, struct tree *settings)
{
	int err = 0;

	if (node->kind == TREE_TEXT)
		return component_add(settings, node, option, node->text);
	if (node->kind == TREE_MAP)
		return pipeline_refuse(r, node, "'%s' is a text or a list", node->key);
	for (size_t i = 0; i < node->count && !err; i++) {
		if (node->items[i].kind != TREE_TEXT)
			return pipeline_refuse(r, &node->items[i], "'%s' is a list of texts", node->key);
		err = component_add(settings, &node->items[i], option, node->items[i].text);
	}
	return err;
}

int component_add_address(struct reader *r, const struct tree *at, const char *option, struct tree *settings)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	if (at->kind != TREE_TEXT || !strchr(at->text, ':'))
		return pipeline_refuse(r, at, "an address is HOST:PORT");
	buf_printf(&text, "%s%s", at->text[0] == ':' ? "0.0.0.0" : "", at->text);
	return text.failed ? -ENOMEM : component_add(settings, at, option, buf_text(&text));
}

/* --- keys --- */

/* SamplesPerSecond as samples_per_second, as the tables have it. */
static void write_snake(const char *path, char snake[static PATH_MAX_BYTES])
{
	size_t len = 0;

	for (const char *p = path; *p && len < PATH_MAX_BYTES - 2; p++) {
		if (isupper((unsigned char)*p) && p > path && islower((unsigned char)p[-1]))
			snake[len++] = '_';
		snake[len++] = (char)tolower((unsigned char)*p);
	}
	snake[len] = '\0';
}

static int refuse_key(struct reader *r, const struct tree *node, const char *what, const struct component_key *keys,
		      const char *path)
{
	char snake[PATH_MAX_BYTES];
	struct nearest nearest;

	write_snake(path, snake);
	nearest = nearest_to(snake);
	for (; keys->path; keys++)
		nearest_offer(&nearest, keys->path);
	if (nearest.best)
		return pipeline_refuse(r, node, "'%s' has no key '%s'; did you mean '%s'?", what, path, nearest.best);
	return pipeline_refuse(r, node, "'%s' has no key '%s'", what, path);
}

static int read_below(struct reader *r, const struct tree *node, const char *what, const struct component_key *keys,
		      const char *above, struct tree *settings)
{
	int err = 0;

	for (size_t i = 0; i < node->count && !err; i++) {
		const struct tree *t = &node->items[i];
		const struct component_key *key = keys;
		char path[PATH_MAX_BYTES];
		bool is_above = false;

		snprintf(path, sizeof(path), "%s%s%s", above, above[0] ? "." : "", t->key);
		for (; key->path && !is_same_key(key->path, path); key++)
			is_above |= is_below(key->path, path);
		if (key->path && key->note)
			err = pipeline_note(r, t, "'%s' of '%s' has no effect: %s", path, what, key->note);
		else if (key->path && key->option)
			err = set_option(r, t, key->option, settings);
		else if (!key->path && is_above && t->kind == TREE_MAP)
			err = read_below(r, t, what, keys, path, settings);
		else if (!key->path && !(is_above && t->kind == TREE_NULL))
			err = refuse_key(r, t, what, keys, path);
	}
	return err;
}

int component_read_keys(struct reader *r, const struct tree *node, const char *what, const struct component_key *keys,
			struct tree *settings)
{
	if (node->kind == TREE_NULL)
		return 0;
	if (node->kind != TREE_MAP)
		return pipeline_refuse(r, node, "'%s' has keys below it, not a text or a list", what);
	return read_below(r, node, what, keys, "", settings);
}

int component_read(struct reader *r, struct component *c)
{
	int err = component_read_keys(r, c->node, c->name, c->type->keys, &c->settings);

	return err || !c->type->take ? err : c->type->take(r, c);
}

/* --- for the types' own readers --- */

static const struct tree *find_same(const struct tree *map, const char *key)
{
	for (size_t i = 0; map->kind == TREE_MAP && i < map->count; i++)
		if (is_same_key(map->items[i].key, key))
			return &map->items[i];
	return NULL;
}

const struct tree *component_at(const struct component *c, const char *path)
{
	const struct tree *t = c->node;

	while (t) {
		size_t len = strcspn(path, ".");
		char key[PATH_MAX_BYTES];

		snprintf(key, sizeof(key), "%.*s", (int)len, path);
		t = find_same(t, key);
		if (!path[len])
			break;
		path += len + 1;
	}
	return t && t->kind != TREE_NULL ? t : NULL;
}

const char *component_text(const struct component *c, const char *path)
{
	const struct tree *t = component_at(c, path);

	return t && t->kind == TREE_TEXT ? t->text : NULL;
}

int component_bool(struct reader *r, const struct component *c, const char *path, bool usual, bool *ret)
{
	const struct tree *t = component_at(c, path);

	*ret = usual;
	if (!t)
		return 0;
	return t->kind == TREE_TEXT && !parse_bool(t->text, ret) ? 0 : pipeline_refuse(r, t, "'%s' is true or false", path);
}

int component_u64(struct reader *r, const struct component *c, const char *path, uint64_t usual, uint64_t *ret)
{
	const struct tree *t = component_at(c, path);

	*ret = usual;
	if (!t)
		return 0;
	return t->kind == TREE_TEXT && !parse_u64(t->text, ret) ? 0 : pipeline_refuse(r, t, "'%s' is a number", path);
}

int component_duration(struct reader *r, const struct component *c, const char *path, uint64_t usual_ns, uint64_t *ret_ns)
{
	const struct tree *t = component_at(c, path);

	*ret_ns = usual_ns;
	if (!t)
		return 0;
	return t->kind == TREE_TEXT && !parse_duration(t->text, ret_ns)
		       ? 0
		       : pipeline_refuse(r, t, "'%s' is a time such as 500ms, 2m or 5s", path);
}

int component_texts(struct reader *r, const struct component *c, const char *path, const char ***ret, size_t *count)
{
	const struct tree *t = component_at(c, path);

	*count = 0;
	*ret = calloc(t && t->count ? t->count : 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	if (t && t->kind == TREE_TEXT)
		(*ret)[(*count)++] = t->text;
	for (size_t i = 0; t && i < t->count; i++) {
		if (t->kind != TREE_LIST || t->items[i].kind != TREE_TEXT)
			return pipeline_refuse(r, &t->items[i], "'%s' is a list of texts", path);
		(*ret)[(*count)++] = t->items[i].text;
	}
	return 0;
}
