/* SPDX-License-Identifier: Apache-2.0 */
/* libyaml makes a document, which is copied into the tree and let go. */
#include "base/text/tree.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"

struct reading {
	const char *source;
	yaml_document_t *doc;
	size_t nodes;
	struct buf *error;
};

void tree_place(const struct tree *t, struct buf *out)
{
	buf_printf(out, "%s:%zu: ", t->source ? t->source : "", t->line);
}

static int complain(const struct reading *r, size_t line, const char *what)
{
	buf_printf(r->error, "%s:%zu: %s", r->source, line, what);
	return -EINVAL;
}

static void free_content(struct tree *t)
{
	for (size_t i = 0; i < t->count; i++)
		tree_fini(&t->items[i]);
	free(t->items);
	free(t->text);
	t->items = NULL;
	t->text = NULL;
	t->count = t->cap = 0;
	t->kind = TREE_NULL;
}

void tree_fini(struct tree *t)
{
	free_content(t);
	free(t->key);
	*t = TREE_EMPTY;
}

struct tree *tree_find(const struct tree *t, const char *key)
{
	for (size_t i = 0; t && t->kind == TREE_MAP && i < t->count; i++)
		if (!strcmp(t->items[i].key, key))
			return &t->items[i];
	return NULL;
}

struct tree *tree_at(const struct tree *t, const char *path)
{
	while (t) {
		size_t len = strcspn(path, ".");
		AUTO_FREE char *key = strndup(path, len);

		t = key ? tree_find(t, key) : NULL;
		if (!t || !path[len])
			break;
		path += len + 1;
	}
	return (struct tree *)(uintptr_t)t;
}

static bool equal_items(const struct tree *a, const struct tree *b)
{
	bool yes = a->count == b->count;

	for (size_t i = 0; yes && i < a->count; i++)
		yes = tree_equal(&a->items[i], a->kind == TREE_MAP ? tree_find(b, a->items[i].key) : &b->items[i]);
	return yes;
}

bool tree_equal(const struct tree *a, const struct tree *b)
{
	if (!a || !b || a->kind != b->kind)
		return a == b;
	return a->kind == TREE_TEXT ? !strcmp(a->text, b->text) : equal_items(a, b);
}

/* --- reading --- */

static int copy_node(struct reading *r, yaml_node_t *node, unsigned depth, struct tree *ret);

static bool is_null(const yaml_node_t *node)
{
	const char *text = (const char *)node->data.scalar.value;

	return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && (!*text || !strcmp(text, "~") || !strcmp(text, "null"));
}

static int copy_scalar(struct reading *r, const yaml_node_t *node, struct tree *ret)
{
	const char *text = (const char *)node->data.scalar.value;

	if (is_null(node))
		return 0;
	if (strlen(text) != node->data.scalar.length) {
		buf_printf(r->error, "%s:%zu: the value of '%s' has a zero byte", r->source, node->start_mark.line + 1,
			   ret->key ? ret->key : "");
		return -EINVAL;
	}
	ret->kind = TREE_TEXT;
	ret->is_plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	ret->text = strdup(text);
	return ret->text ? 0 : -ENOMEM;
}

/* A further item of @t, empty. NULL without memory. */
static struct tree *add_item(struct tree *t)
{
	if (vec_reach(&t->items, &t->cap, t->count))
		return NULL;
	t->items[t->count] = TREE_EMPTY;
	return &t->items[t->count++];
}

static int copy_list(struct reading *r, yaml_node_t *node, unsigned depth, struct tree *ret)
{
	int err = 0;

	ret->kind = TREE_LIST;
	for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top && !err; i++) {
		struct tree *item = add_item(ret);

		err = item ? copy_node(r, yaml_document_get_node(r->doc, *i), depth + 1, item) : -ENOMEM;
	}
	return err;
}

static int copy_pair(struct reading *r, const yaml_node_pair_t *pair, unsigned depth, struct tree *ret)
{
	const yaml_node_t *key = yaml_document_get_node(r->doc, pair->key);
	const char *name;
	struct tree *item;
	int err;

	if (!key || key->type != YAML_SCALAR_NODE || !key->data.scalar.length ||
	    strlen((const char *)key->data.scalar.value) != key->data.scalar.length)
		return complain(r, key ? key->start_mark.line + 1 : ret->line, "a key is a word, such as freq");
	name = (const char *)key->data.scalar.value;
	if (tree_find(ret, name)) {
		buf_printf(r->error, "%s:%zu: '%s' stands here twice", r->source, key->start_mark.line + 1, name);
		return -EINVAL;
	}
	item = add_item(ret);
	if (!item)
		return -ENOMEM;
	item->key = strdup(name);
	if (!item->key) {
		ret->count--;
		return -ENOMEM;
	}
	err = copy_node(r, yaml_document_get_node(r->doc, pair->value), depth + 1, item);
	item->line = key->start_mark.line + 1;
	return err;
}

static int copy_map(struct reading *r, yaml_node_t *node, unsigned depth, struct tree *ret)
{
	int err = 0;

	ret->kind = TREE_MAP;
	for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top && !err; p++)
		err = copy_pair(r, p, depth, ret);
	return err;
}

static int copy_node(struct reading *r, yaml_node_t *node, unsigned depth, struct tree *ret)
{
	ret->source = r->source;
	if (!node)
		return 0;
	ret->line = node->start_mark.line + 1;
	if (depth > TREE_MAX_DEPTH || ++r->nodes > TREE_MAX_NODES)
		return complain(r, ret->line, depth > TREE_MAX_DEPTH ? "too many levels" : "too many values");
	if (node->type == YAML_SEQUENCE_NODE)
		return copy_list(r, node, depth, ret);
	if (node->type == YAML_MAPPING_NODE)
		return copy_map(r, node, depth, ret);
	return node->type == YAML_SCALAR_NODE ? copy_scalar(r, node, ret) : 0;
}

static int explain(const struct reading *r, const yaml_parser_t *parser)
{
	size_t line = parser->problem_mark.line ? parser->problem_mark.line : parser->context_mark.line;

	if (parser->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	buf_printf(r->error, "%s:%zu: not YAML: %s", r->source, line + 1,
		   parser->problem ? parser->problem : "cannot be read");
	return -EINVAL;
}

int tree_parse(const char *source, const void *data, size_t len, struct tree *ret, struct buf *error)
{
	struct reading r = { .source = source, .error = error };
	yaml_parser_t parser;
	yaml_document_t doc;
	int err;

	*ret = TREE_EMPTY;
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, data, len);
	if (yaml_parser_load(&parser, &doc)) {
		r.doc = &doc;
		err = copy_node(&r, yaml_document_get_root_node(&doc), 0, ret);
		yaml_document_delete(&doc);
	} else {
		err = explain(&r, &parser);
	}
	yaml_parser_delete(&parser);
	if (err)
		tree_fini(ret);
	return err;
}

/* --- changing --- */

void tree_replace(struct tree *t, struct tree *value)
{
	struct tree old = *t;

	*t = *value;
	t->key = old.key;
	t->source = old.source;
	t->line = old.line;
	old.key = NULL;
	tree_fini(&old);
	free(value->key);
	*value = TREE_EMPTY;
}

/* Gives @from's content, source and line to @into, whose key stays. */
static void take_over(struct tree *into, struct tree *from)
{
	const char *source = from->source;
	size_t line = from->line;

	tree_replace(into, from);
	into->source = source;
	into->line = line;
}

int tree_merge(struct tree *into, struct tree *from)
{
	int err = 0;

	if (into->kind != TREE_MAP || from->kind != TREE_MAP) {
		if (from->kind != TREE_NULL || into->kind != TREE_MAP)
			take_over(into, from);
		tree_fini(from);
		return 0;
	}
	for (size_t i = 0; i < from->count && !err; i++) {
		struct tree *there = tree_find(into, from->items[i].key);

		if (there) {
			err = tree_merge(there, &from->items[i]);
			continue;
		}
		there = add_item(into);
		err = there ? 0 : -ENOMEM;
		if (there) {
			*there = from->items[i];
			from->items[i] = TREE_EMPTY;
		}
	}
	tree_fini(from);
	return err;
}

/* The value of @key, made where there is none. */
static struct tree *reach(struct tree *map, char *key, const struct tree *place)
{
	struct tree *item;

	if (map->kind != TREE_MAP) {
		free_content(map);
		map->kind = TREE_MAP;
	}
	item = tree_find(map, key);
	if (item)
		return item;
	item = add_item(map);
	if (!item)
		return NULL;
	item->source = place->source;
	item->line = place->line;
	item->key = strdup(key);
	if (!item->key) {
		map->count--;
		return NULL;
	}
	return item;
}

int tree_set(struct tree *root, const char *path, const char *separator, struct tree *value)
{
	struct tree *t = root;
	unsigned depth = 0;
	int err = 0;

	for (bool is_last = false; !err && !is_last;) {
		const char *end = strstr(path, separator);
		AUTO_FREE char *key = end ? strndup(path, (size_t)(end - path)) : strdup(path);
		struct tree *next;

		is_last = !end;
		if (!key || !*key || ++depth > TREE_MAX_DEPTH) {
			err = key ? -EINVAL : -ENOMEM;
			break;
		}
		next = reach(t, key, value);
		if (!next) {
			err = -ENOMEM;
			break;
		}
		t = next;
		path = end ? end + strlen(separator) : path;
	}
	if (!err)
		take_over(t, value);
	tree_fini(value);
	return err;
}

/* --- writing --- */

/* Whether @text reads as itself without quotes. */
static bool is_simple(const char *text)
{
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f || strchr(":#{}[],&*!|>'\"%@`\\", *p))
			return false;
	return *text && !strchr("-?~= .", *text) && text[strlen(text) - 1] != ' ' && strcmp(text, "null") != 0;
}

/* Characters that end a line to YAML, as their escapes; the bytes that they take are returned, 0: it is none. */
static size_t write_break(const char *text, struct buf *out)
{
	static const struct {
		const char *bytes, *escape;
	} breaks[] = {
		{ "\xc2\x85", "\\N" }, { "\xe2\x80\xa8", "\\L" }, { "\xe2\x80\xa9", "\\P" }, { "\xef\xbb\xbf", "\\uFEFF" }
	};

	for (size_t i = 0; i < ARRAY_LEN(breaks); i++) {
		size_t len = strlen(breaks[i].bytes);

		if (strncmp(text, breaks[i].bytes, len) != 0)
			continue;
		buf_puts(out, breaks[i].escape);
		return len;
	}
	return 0;
}

static void write_text(const char *text, struct buf *out)
{
	if (is_simple(text)) {
		buf_puts(out, text);
		return;
	}
	buf_putc(out, '"');
	while (*text) {
		size_t len = write_break(text, out);
		unsigned char c = (unsigned char)*text;

		text += len ? len : 1;
		if (len)
			continue;
		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < ' ' || c == 0x7f)
			buf_printf(out, "\\x%02x", c);
		else
			buf_putc(out, (char)c);
	}
	buf_putc(out, '"');
}

static bool is_nested(const struct tree *t)
{
	return (t->kind == TREE_MAP || t->kind == TREE_LIST) && t->count;
}

static void write_value(const struct tree *t, unsigned depth, struct buf *out)
{
	if (is_nested(t)) {
		buf_putc(out, '\n');
		tree_write(t, depth, out);
		return;
	}
	if (t->kind == TREE_TEXT)
		write_text(t->text, out);
	else if (t->kind != TREE_NULL)
		buf_puts(out, t->kind == TREE_MAP ? "{}" : "[]");
	buf_putc(out, '\n');
}

void tree_write(const struct tree *t, unsigned depth, struct buf *out)
{
	if (!is_nested(t)) {
		write_value(t, depth, out);
		return;
	}
	for (size_t i = 0; i < t->count; i++) {
		buf_printf(out, "%*s", (int)depth * 2, "");
		if (t->kind == TREE_MAP)
			write_text(t->items[i].key, out);
		buf_putc(out, t->kind == TREE_MAP ? ':' : '-');
		if (t->items[i].kind != TREE_NULL && !is_nested(&t->items[i]))
			buf_putc(out, ' ');
		write_value(&t->items[i], depth + 1, out);
	}
}
