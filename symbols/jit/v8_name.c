/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8 writes "TAG:MARKname file:line:column" (src/logging/log.cc: CodeEventLogger; the tags are those of its code events).
 * Both names may be empty and both may hold blanks ("get foo", "/my files/a.js"), so the border is looked for where a file's
 * name visibly begins, else at the last blank. Stateless.
 */
#include <string.h>

#include "base/cleanup.h"
#include "symbols/jit/v8_name.h"

static const struct tag {
	const char *text;
	const char *nameless; /* what to call a function without a name */
} tags[] = {
	{ "JS:", "(anonymous)" },	{ "LazyCompile:", "(anonymous)" }, /* V8 before 9.6 tells these apart */
	{ "Function:", "(anonymous)" }, { "Eval:", "(eval)" },
	{ "Script:", "(script)" },
};

static bool starts_with(const char *text, size_t len, const char *prefix)
{
	return len >= strlen(prefix) && !memcmp(text, prefix, strlen(prefix));
}

/* Whether @text starts a file's name that cannot be a part of a function's name. */
static bool is_file_start(const char *text, size_t len)
{
	static const char *const starts[] = { "/",     "file:",	 "node:",	 "ext:", "internal/",
					      "http:", "https:", "evalmachine.", ":" };

	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (starts_with(text, len, starts[i]))
			return true;
	return false;
}

/* The blank between function and file; NULL where there is none. */
static const char *find_border(const char *text, size_t len)
{
	const char *end = text + len, *last = NULL;

	for (const char *p = memchr(text, ' ', len); p; p = memchr(p + 1, ' ', (size_t)(end - p - 1))) {
		last = p;
		if (is_file_start(p + 1, (size_t)(end - p - 1)))
			break;
	}
	return last;
}

/* Takes ":NUMBER" off the end of [@text, *@end). 0 where there is none. */
static uint32_t take_number(const char *text, const char **end)
{
	uint32_t value = 0, scale = 1;
	const char *p = *end;

	while (p > text && p[-1] >= '0' && p[-1] <= '9' && *end - p < 9) {
		value += (uint32_t)(*--p - '0') * scale;
		scale *= 10;
	}
	if (p == *end || p == text || p[-1] != ':')
		return 0;
	*end = p - 1;
	return value;
}

/* Passes over the mark of the tier. Code that was optimized has `o` in front of it where it replaced a loop that ran, and,
 * from V8 14 on, an apostrophe behind it where it is for one context alone. NULL: there is no mark. */
static const char *take_mark(const char *text, const char *end, bool *is_optimized)
{
	static const char *const marks[] = { "o*", "o+", "*", "+", "~", "^" };

	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		if (!starts_with(text, (size_t)(end - text), marks[i]))
			continue;
		text += strlen(marks[i]);
		*is_optimized = text[-1] == '*' || text[-1] == '+';
		return text + (*is_optimized && text < end && *text == '\'');
	}
	return NULL;
}

bool v8_name_parse(const char *text, size_t len, struct v8_name *ret)
{
	const char *rest, *end = text + len, *border;
	bool is_optimized;
	const struct tag *tag = tags;

	while (tag < tags + ARRAY_LEN(tags) && !starts_with(text, len, tag->text))
		tag++;
	if (tag == tags + ARRAY_LEN(tags))
		return false;
	rest = take_mark(text + strlen(tag->text), end, &is_optimized);
	if (!rest)
		return false;
	*ret = (struct v8_name){ .is_optimized = is_optimized };
	border = find_border(rest, (size_t)(end - rest));
	if (border) {
		ret->file = border + 1;
		ret->line = take_number(ret->file, &end);
		ret->column = ret->line;
		ret->line = take_number(ret->file, &end);
		if (!ret->line) { /* there was one number alone */
			ret->line = ret->column;
			ret->column = 0;
		}
		ret->file_len = (size_t)(end - ret->file);
		end = border;
	}
	ret->name = rest;
	ret->name_len = (size_t)(end - rest);
	if (!ret->name_len) {
		ret->name = tag->nameless;
		ret->name_len = strlen(tag->nameless);
	}
	return true;
}
