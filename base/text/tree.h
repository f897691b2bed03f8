/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML document as a tree of maps, lists and texts, each of which knows the line it stands on. The reader (libyaml) is
 * bounded: documents come from files, variables and servers. Aliases are copied out, within a bound on all nodes, so that a
 * small text cannot grow without end. Not shared between threads.
 */
#ifndef HEARTH_BASE_TEXT_TREE_H
#define HEARTH_BASE_TEXT_TREE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

enum { TREE_MAX_NODES = 1 << 16, TREE_MAX_DEPTH = 48 };

enum tree_kind { TREE_NULL, TREE_TEXT, TREE_LIST, TREE_MAP };

struct tree {
	enum tree_kind kind;
	bool is_plain;	    /* a text without quotes: `5`, `yes`, ${env:X} */
	char *key;	    /* owned; NULL when it is no value of a map */
	char *text;	    /* owned; of a TREE_TEXT */
	struct tree *items; /* owned; of lists and maps */
	size_t count, cap;
	const char *source; /* the document's name; borrowed, outlives the tree */
	size_t line;	    /* of the key where there is one */
};

#define TREE_EMPTY ((struct tree){ 0 })

/*
 * Reads the @len bytes of @source, the first document of them, into *@ret, which is empty; an empty document is TREE_NULL.
 * 0; -EINVAL with "SOURCE:LINE: ..." in @error (no YAML, a key twice, a key that is no text, a zero byte); -ENOMEM.
 */
int tree_parse(const char *source, const void *data, size_t len, struct tree *ret, struct buf *error);

/* Frees what @t owns; it is TREE_NULL afterwards. */
void tree_fini(struct tree *t);

/* The value of @key, NULL when there is none or @t is no map. @t may be NULL. */
struct tree *tree_find(const struct tree *t, const char *key);

/* The value at @path, keys with '.' between them, or NULL. */
struct tree *tree_at(const struct tree *t, const char *path);

/* Whether both say the same; the order of a map's keys does not count, nor the lines. Either may be NULL. */
bool tree_equal(const struct tree *a, const struct tree *b);

/* Lays @from over @into: maps are merged key by key, all else is replaced. @from is used up, also when it fails. 0, -ENOMEM.
 */
int tree_merge(struct tree *into, struct tree *from);

/*
 * Makes @value the one at @path, keys with @separator between them, below @root; maps on the way are made, what is no map is
 * replaced. @value is used up. 0; -EINVAL: a key is empty, or there are too many; -ENOMEM.
 */
int tree_set(struct tree *root, const char *path, const char *separator, struct tree *value);

/* Replaces what @t holds by what @value holds, which is used up; @t's key, source and line stay. */
void tree_replace(struct tree *t, struct tree *value);

/* Appends @t as YAML, indented by @depth levels. */
void tree_write(const struct tree *t, unsigned depth, struct buf *out);

/* Appends "SOURCE:LINE: " of @t. */
void tree_place(const struct tree *t, struct buf *out);

#endif
