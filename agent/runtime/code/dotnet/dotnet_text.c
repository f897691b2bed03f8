/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of .NET's methods as people write them. Whatever a compiler makes of other code has names with '<': Roslyn's
 * <M>d__1.MoveNext (async and iterators), <>c.<M>b__0_1 and <>c__DisplayClass0_0.<M>b__0 (lambdas), <M>g__Local|0_1 (local
 * functions), mcs's <M>c__async0, <M>c__Iterator0, <M>c__AnonStorey0 and <M>m__0. No state.
 */
#include <string.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"

enum { MAX_NESTING = 4 };

static void append(char text[static DOTNET_MAX_NAME], const char *word, size_t len)
{
	size_t at = strlen(text);

	if (at && at + 1 < DOTNET_MAX_NAME)
		text[at++] = '.';
	if (len > DOTNET_MAX_NAME - 1 - at)
		len = DOTNET_MAX_NAME - 1 - at;
	memcpy(text + at, word, len);
	text[at + len] = '\0';
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Splits "<inner>rest". False: @name is none. */
static bool split(const char *name, const char **inner, size_t *inner_bytes, const char **rest)
{
	int open = 0;

	for (const char *at = name; *at; at++) {
		open += (*at == '<') - (*at == '>');
		if (open)
			continue;
		if (at == name)
			return false;
		*inner = name + 1;
		*inner_bytes = (size_t)(at - name - 1);
		*rest = at + 1;
		return true;
	}
	return false;
}

/* Appends a method, that stands in @outer if it has no name itself. */
static void append_method(char text[static DOTNET_MAX_NAME], const char *name, const char *outer, int nesting)
{
	static const char lambda[] = "(lambda)";
	char within[DOTNET_MAX_PART];
	const char *inner, *rest;
	size_t len;

	if (nesting == MAX_NESTING || !split(name, &inner, &len, &rest) || len >= sizeof(within) ||
	    (!begins(rest, "b__") && !begins(rest, "m__") && !begins(rest, "g__"))) {
		append(text, name, strlen(name));
		return;
	}
	memcpy(within, inner, len);
	within[len] = '\0';
	if (len)
		append_method(text, within, "", nesting + 1);
	else if (*outer)
		append_method(text, outer, "", nesting + 1);
	if (rest[0] == 'g')
		append(text, rest + 3, strcspn(rest + 3, "|"));
	else
		append(text, lambda, sizeof(lambda) - 1);
}

void dotnet_text_write(const struct dotnet_text *t, char text[static DOTNET_MAX_NAME])
{
	char within[DOTNET_MAX_PART] = "";
	bool is_machine = false;

	text[0] = '\0';
	if (t->namespace[0])
		append(text, t->namespace, strlen(t->namespace));
	for (uint32_t i = 0; i < t->depth; i++) {
		const char *inner, *rest;
		size_t len;

		is_machine = false;
		if (!split(t->types[i], &inner, &len, &rest) || len >= sizeof(within)) {
			append(text, t->types[i], strlen(t->types[i]));
			continue;
		}
		memcpy(within, inner, len);
		within[len] = '\0';
		is_machine = len && (begins(rest, "d") || begins(rest, "c__async") || begins(rest, "c__Iterator"));
		if (is_machine)
			append_method(text, within, "", 0);
		else if (!begins(rest, "c")) /* of a closure its function's name is enough */
			append(text, t->types[i], strlen(t->types[i]));
	}
	if (!is_machine || strcmp(t->method, "MoveNext") != 0)
		append_method(text, t->method, within, 0);
}
