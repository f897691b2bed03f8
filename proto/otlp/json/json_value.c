/* SPDX-License-Identifier: Apache-2.0 */
/* Values of protobuf's JSON mapping. Whole numbers, which are most of a message, are read in place. Stateless. */
#include "proto/otlp/json/json_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/parse.h"

enum { NUMBER_CHARS = 64 };

/* Digits of an integer of at most 64 bits from @p on; returns what is behind them, NULL when it is too large. */
static const uint8_t *read_digits(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;

	for (; p < end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return NULL;
	*ret = v;
	return p;
}

static bool goes_on(const uint8_t *p, const uint8_t *end)
{
	return p < end && (*p == '.' || *p == 'e' || *p == 'E');
}

/* The text of a number, in quotes or not, as a C string. */
static const char *number_text(struct json_reader *r, char out[static NUMBER_CHARS])
{
	struct json_reader inner;
	struct json_text text, number;

	if (json_peek(r) != '"') {
		if (!json_read_number(r, &text))
			return "is not a number";
	} else if (!json_read_string(r, &text)) {
		return r->error;
	}
	json_reader_init(&inner, text.data, text.len);
	if (!text.len || text.data[0] == ' ' || !json_read_number(&inner, &number) || inner.p != inner.end)
		return "is not a number";
	if (text.len >= NUMBER_CHARS)
		return "is a number of too many digits";
	memcpy(out, text.data, text.len);
	out[text.len] = '\0';
	return NULL;
}

/* The forms that JavaScript writes large numbers in. */
static const char *read_int_slowly(struct json_reader *r, struct json_int *ret)
{
	char text[NUMBER_CHARS];
	const char *what = number_text(r, text);
	double v;

	if (what)
		return what;
	v = strtod(text, NULL);
	if (v != trunc(v))
		return "is not a whole number";
	if (fabs(v) >= 0x1p64)
		return "is out of range";
	*ret = (struct json_int){ (uint64_t)fabs(v), v < 0 };
	return NULL;
}

const char *json_read_int(struct json_reader *r, struct json_int *ret)
{
	bool quoted = json_peek(r) == '"';
	const uint8_t *start = r->p + quoted, *p = start;
	const uint8_t *digits;

	ret->negative = p < r->end && *p == '-';
	p += ret->negative;
	digits = p;
	p = read_digits(p, r->end, &ret->magnitude);
	if (!p)
		return "is out of range";
	if (p == digits || (*digits == '0' && p - digits > 1))
		return "is not a number";
	if (goes_on(p, r->end))
		return read_int_slowly(r, ret);
	if (quoted && (p == r->end || *p++ != '"'))
		return "is not a number";
	r->p = p;
	return NULL;
}

const char *json_read_double(struct json_reader *r, double *ret)
{
	static const struct {
		const char *name;
		double value;
	} words[] = { { "\"NaN\"", NAN }, { "\"Infinity\"", INFINITY }, { "\"-Infinity\"", -INFINITY } };
	char text[NUMBER_CHARS];
	const char *what;

	json_peek(r);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i].name);

		if ((size_t)(r->end - r->p) >= len && !memcmp(r->p, words[i].name, len)) {
			r->p += len;
			*ret = words[i].value;
			return NULL;
		}
	}
	what = number_text(r, text);
	if (what)
		return what;
	*ret = strtod(text, NULL);
	return isinf(*ret) ? "is out of range" : NULL;
}
