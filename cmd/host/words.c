/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/host/words.h"

#include <string.h>

bool words_line(struct str *text, struct str *line)
{
	const char *end = text->len ? memchr(text->data, '\n', text->len) : NULL;
	const uint32_t len = end ? (uint32_t)(end - text->data) : text->len;

	if (!text->len)
		return false;
	*line = (struct str){ text->data, len };
	text->data += len + (end != NULL);
	text->len -= len + (end != NULL);
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

bool words_next(struct str *line, struct str *word)
{
	uint32_t start = 0, end;

	while (start < line->len && is_blank(line->data[start]))
		start++;
	for (end = start; end < line->len && !is_blank(line->data[end]);)
		end++;
	*word = (struct str){ line->data + start, end - start };
	*line = (struct str){ line->data + end, line->len - end };
	return word->len;
}

static bool read_digits(struct str word, uint64_t *ret)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < word.len; i++) {
		unsigned digit = (unsigned)(unsigned char)word.data[i] - '0';

		if (digit > 9 || __builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, digit, &v))
			return false;
	}
	*ret = v;
	return word.len;
}

bool words_u64(struct str *line, uint64_t *ret)
{
	struct str word;

	return words_next(line, &word) && read_digits(word, ret);
}

bool words_real(struct str *line, double *ret)
{
	struct str word, whole, part;
	uint64_t number, fraction = 0;
	double scale = 1;
	const char *dot;

	if (!words_next(line, &word))
		return false;
	dot = memchr(word.data, '.', word.len);
	whole = (struct str){ word.data, dot ? (uint32_t)(dot - word.data) : word.len };
	part = dot ? (struct str){ dot + 1, word.len - whole.len - 1 } : (struct str){ "0", 1 };
	if (!read_digits(whole, &number) || !read_digits(part, &fraction))
		return false;
	for (uint32_t i = 0; dot && i < part.len; i++)
		scale *= 10;
	*ret = (double)number + (double)fraction / scale;
	return true;
}

unsigned words_numbers(struct str *line, uint64_t *ret, unsigned count)
{
	unsigned i = 0;

	while (i < count && words_u64(line, &ret[i]))
		i++;
	return i;
}
