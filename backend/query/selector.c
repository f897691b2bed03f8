/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The selector's parser: one pass over the text, a matcher at a time. Label names are PromQL's with dots allowed too; values
 * are strings in double or single quotes with the escapes of Go, or in backquotes without any.
 */
#include "backend/query/selector.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/pattern.h"

static const struct {
	const char *name, *key;
} names[] = {
	{ "comm", STORE_COMM_LABEL },	 { "exe", STORE_EXE_LABEL },	{ "pid", "process.pid" },
	{ "tid", "thread.id" },		 { "thread", "thread.name" },	{ "cpu", "cpu.logical_number" },
	{ "container", "container.id" }, { "service", "service.name" }, { "host", "host.name" },
};

static const char *const dotted[] = {
	"service.name",
	"service.namespace",
	"service.version",
	"service.instance.id",
	"process.pid",
	"process.parent_pid",
	"process.command_line",
	"process.executable.name",
	"process.executable.path",
	"process.runtime.name",
	"process.owner",
	"thread.id",
	"thread.name",
	"cpu.logical_number",
	"container.id",
	"container.name",
	"host.name",
	"host.id",
	"host.arch",
	"os.type",
	"k8s.namespace.name",
	"k8s.pod.name",
	"k8s.pod.uid",
	"k8s.container.name",
	"k8s.node.name",
	"k8s.deployment.name",
	"deployment.environment.name",
	"hearth.stack.truncated",
	"hearth.script",
	"cpython.gil",
};

/* Whether @label equals @key but for '_' where @key has '.'. */
static bool is_underscored(const char *label, const char *key)
{
	for (; *label && *key; label++, key++)
		if (*label != *key && !(*label == '_' && *key == '.'))
			return false;
	return *label == *key;
}

const char *selector_label(const char *label)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(names[i].name, label))
			return names[i].key;
	for (size_t i = 0; i < ARRAY_LEN(dotted); i++)
		if (is_underscored(label, dotted[i]))
			return dotted[i];
	return NULL;
}

const char *selector_short_label(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(names[i].key, key))
			return names[i].name;
	return key;
}

struct parser {
	const char *text, *at;
	struct buf *error;
};

static int fail(const struct parser *p, const char *what)
{
	buf_printf(p->error, "query: %s at character %zu of %s", what, (size_t)(p->at - p->text) + 1, p->text);
	return -EINVAL;
}

static void skip_space(struct parser *p)
{
	p->at += strspn(p->at, " \t\r\n");
}

static bool take(struct parser *p, const char *token)
{
	size_t len = strlen(token);

	skip_space(p);
	if (strncmp(p->at, token, len) != 0)
		return false;
	p->at += len;
	return true;
}

static int take_label(struct parser *p, char **ret)
{
	size_t len = 0;

	skip_space(p);
	if (isdigit((unsigned char)*p->at))
		return fail(p, "a label's name cannot begin with a digit");
	while (isalnum((unsigned char)p->at[len]) || (p->at[len] && strchr("_.:-/", p->at[len])))
		len++;
	if (!len)
		return fail(p, "a label's name is missing");
	*ret = strndup(p->at, len);
	p->at += len;
	return *ret ? 0 : -ENOMEM;
}

static int take_match(struct parser *p, enum store_match *ret)
{
	static const struct {
		const char *token;
		enum store_match match;
	} tokens[] = { { "=~", MATCH_REGEX }, { "!~", MATCH_NOT_REGEX }, { "!=", MATCH_NOT_EQUAL }, { "=", MATCH_EQUAL } };

	for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
		if (take(p, tokens[i].token)) {
			*ret = tokens[i].match;
			return 0;
		}
	}
	return fail(p, "one of = != =~ !~ is missing");
}

/* The character that an escape stands for; p->at is behind the backslash. -1: none that is known. */
static int take_escape(struct parser *p)
{
	static const char from[] = "abfnrtv\\\"'", to[] = "\a\b\f\n\r\t\v\\\"'";
	const char *found = *p->at ? strchr(from, *p->at) : NULL;

	if (!found)
		return -1;
	p->at++;
	return to[found - from];
}

static int take_value(struct parser *p, char **ret)
{
	AUTO(buf_fini) struct buf value = BUF_EMPTY;
	char quote;

	skip_space(p);
	quote = *p->at;
	if (quote != '"' && quote != '\'' && quote != '`')
		return fail(p, "a value in quotes is missing");
	for (p->at++; *p->at != quote;) {
		int c = (unsigned char)*p->at;

		if (!c)
			return fail(p, "the closing quote is missing");
		p->at++;
		if (c == '\\' && quote != '`') {
			c = take_escape(p);
			if (c < 0)
				return fail(p, "an escape that is not known");
		}
		buf_putc(&value, (char)c);
	}
	p->at++;
	*ret = strdup(buf_text(&value));
	return *ret && !value.failed ? 0 : -ENOMEM;
}

static int compile(const struct parser *p, const char *value, struct pattern **ret)
{
	struct pattern_error why;
	int err = pattern_new(value, PATTERN_WHOLE, ret, &why);

	if (err == -EINVAL)
		buf_printf(p->error, "query: '%.200s' is no regular expression: %s", value, why.message);
	return err;
}

static int take_matcher(struct parser *p, struct store_matcher *m)
{
	AUTO_FREE char *label = NULL;
	AUTO_FREE char *value = NULL;
	const char *key;
	int err = take_label(p, &label);

	if (!err)
		err = take_match(p, &m->match);
	if (!err)
		err = take_value(p, &value);
	if (err)
		return err;
	key = selector_label(label);
	if (key) {
		free(label);
		label = strdup(key);
		if (!label)
			return -ENOMEM;
	}
	if (m->match == MATCH_REGEX || m->match == MATCH_NOT_REGEX) {
		err = compile(p, value, &m->pattern);
		if (err)
			return err;
	}
	m->label = label;
	m->value = value;
	label = value = NULL;
	return 0;
}

/* The length of the bare word that stands here; 0: there is none, or it is the label of a matcher. */
static size_t word_len(const struct parser *p)
{
	size_t len = strcspn(p->at, " \t\r\n{},\"'`=!");
	const char *next = p->at + len;

	next += strspn(next, " \t\r\n");
	return *next == '=' || *next == '!' ? 0 : len;
}

static bool is_at_word(const struct parser *p)
{
	return (*p->at && strchr("\"'`", *p->at)) || word_len(p);
}

/* Takes the word, if there is one here. */
static int take_word(struct parser *p, char **word)
{
	size_t len;
	int err = 0;

	skip_space(p);
	if (*word || !is_at_word(p))
		return 0;
	len = word_len(p);
	if (len) {
		*word = strndup(p->at, len);
		p->at += len;
	} else {
		err = take_value(p, word);
	}
	if (err || !*word)
		return err ? err : -ENOMEM;
	skip_space(p);
	return **word ? 0 : fail(p, "an empty word");
}

static int take_matchers(struct parser *p, struct selector *s)
{
	const bool braces = take(p, "{");

	for (skip_space(p); *p->at && *p->at != '}' && (braces || !is_at_word(p));) {
		int err;

		if (s->count == STORE_MAX_MATCHERS)
			return fail(p, "too many labels");
		err = take_matcher(p, &s->items[s->count]);
		if (err)
			return err;
		s->count++;
		if (!take(p, ","))
			break;
		skip_space(p);
	}
	return braces && !take(p, "}") ? fail(p, "a comma or the closing brace is missing") : 0;
}

int selector_parse(const char *text, struct selector *s, struct buf *error)
{
	struct parser p = { .text = text, .at = text, .error = error };
	int err;

	s->items = calloc(STORE_MAX_MATCHERS, sizeof(*s->items));
	if (!s->items)
		return -ENOMEM;
	err = take_word(&p, &s->word);
	err = err ? err : take_matchers(&p, s);
	err = err ? err : take_word(&p, &s->word);
	if (err || !*p.at)
		return err;
	return fail(&p, s->word ? "more text than labels and one word, which stands in quotes where it has spaces,"
				: "more text than a selector");
}

void selector_fini(struct selector *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free((char *)s->items[i].label);
		free((char *)s->items[i].value);
		pattern_free(s->items[i].pattern);
	}
	free(s->items);
	free(s->word);
	*s = (struct selector){ 0 };
}
