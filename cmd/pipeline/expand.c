/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that come out of a replacement are looked at again, within a bound on how often that happens below one value. */
#include "cmd/pipeline/expand.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/tree.h"
#include "cmd/pipeline/source.h"

enum { MAX_ROUNDS = 10, MAX_TEXT_BYTES = 1 << 20 };

static bool is_name(const char *text, size_t len)
{
	if (!len || isdigit((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return true;
}

/* What stands in the place of ${@name}, with an `env:` in front or nothing. */
static int take_variable(const struct tree *at, const char *name, struct buf *out, struct buf *error)
{
	const char *without = strstr(name, ":-"), *value;
	size_t len = without ? (size_t)(without - name) : strlen(name);
	AUTO_FREE char *key = strndup(name, len);

	if (!key)
		return -ENOMEM;
	if (!is_name(name, len)) {
		tree_place(at, error);
		buf_printf(error, "'${%s}' names no variable; give one such as ${env:NAME}", name);
		return -EINVAL;
	}
	value = getenv(key);
	buf_puts(out, value && (*value || !without) ? value : without ? without + 2 : "");
	return out->failed ? -ENOMEM : 0;
}

static int take_source(const struct tree *at, const char *inner, struct buf *out, struct buf *error)
{
	AUTO(buf_fini) struct buf why = BUF_EMPTY;
	int err;

	if (!strncmp(inner, "env:", 4))
		return take_variable(at, inner + 4, out, error);
	if (strncmp(inner, "file:", 5) && strncmp(inner, "yaml:", 5) && strncmp(inner, "http:", 5) &&
	    strncmp(inner, "https:", 6))
		return take_variable(at, inner, out, error);
	err = source_read_text(inner, out, &why);
	if (err == -EINVAL) {
		tree_place(at, error);
		buf_puts(error, buf_text(&why));
	}
	while (out->len && !strncmp(inner, "file:", 5) && out->data[out->len - 1] == '\n')
		out->len--;
	return err;
}

/* Appends @text with one round of replacements; *@found: there was one. */
static int expand_text(const struct tree *at, const char *text, bool *found, struct buf *out, struct buf *error)
{
	int err = 0;

	while (*text && !err) {
		size_t len = strcspn(text, "$");
		const char *end;

		buf_append(out, text, len);
		text += len;
		end = text[0] && text[1] == '{' ? strchr(text, '}') : NULL;
		if (end) {
			AUTO_FREE char *inner = strndup(text + 2, (size_t)(end - text - 2));

			err = inner ? take_source(at, inner, out, error) : -ENOMEM;
			text = end + 1;
			*found = true;
		} else if (*text) {
			buf_putc(out, '$');
			text += text[1] == '$' ? 2 : 1;
		}
	}
	if (!err && out->len > MAX_TEXT_BYTES) {
		tree_place(at, error);
		buf_puts(error, "what stands for ${...} here is larger than 1 MiB");
		return -EINVAL;
	}
	return err ? err : out->failed ? -ENOMEM : 0;
}

/* Whether @text is one ${...} and nothing else. */
static bool is_alone(const char *text)
{
	const char *end = strchr(text, '}');

	return text[0] == '$' && text[1] == '{' && end && !end[1];
}

static int expand_value(struct tree *t, unsigned rounds, struct buf *error);

static int expand_below(struct tree *t, unsigned rounds, struct buf *error)
{
	int err = 0;

	for (size_t i = 0; i < t->count && !err; i++)
		err = expand_value(&t->items[i], rounds, error);
	return err;
}

/* Lines of what came out of a replacement are those of the place where it stands. */
static void move_to(struct tree *t, const struct tree *place)
{
	t->source = place->source;
	t->line = place->line;
	for (size_t i = 0; i < t->count; i++)
		move_to(&t->items[i], place);
}

static int read_as_yaml(struct tree *t, struct buf *text, unsigned rounds, struct buf *error)
{
	AUTO(buf_fini) struct buf why = BUF_EMPTY;
	struct tree value;
	int err = tree_parse("", buf_text(text), text->len, &value, &why);

	if (err == -EINVAL) /* a text that only looks like more */
		return 1;
	if (err)
		return err;
	move_to(&value, t);
	tree_replace(t, &value);
	return expand_value(t, rounds + 1, error);
}

static int expand_value(struct tree *t, unsigned rounds, struct buf *error)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	bool found = false;
	int err;

	if (t->kind != TREE_TEXT)
		return expand_below(t, rounds, error);
	if (!strchr(t->text, '$'))
		return 0;
	if (rounds > MAX_ROUNDS) {
		tree_place(t, error);
		buf_puts(error, "what stands for ${...} here names itself");
		return -EINVAL;
	}
	err = expand_text(t, t->text, &found, &out, error);
	if (!err && found && t->is_plain && is_alone(t->text)) {
		err = read_as_yaml(t, &out, rounds, error);
		if (err <= 0)
			return err;
		err = 0;
	}
	if (!err) {
		free(t->text);
		t->text = strdup(buf_text(&out));
		err = t->text ? 0 : -ENOMEM;
	}
	return err;
}

int expand_tree(struct tree *t, struct buf *error)
{
	return expand_value(t, 0, error);
}
