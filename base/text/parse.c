/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text into numbers. Durations and sizes are one thing: a decimal number, possibly with a fraction, and a unit out of a
 * table. The arithmetic is exact (128-bit integers, no floating point); parts below the smallest unit are cut off.
 */
#include "base/text/parse.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { MAX_FRACTION_DIGITS = 18 }; /* further digits change nothing that fits a 64-bit result */

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit durations[] = {
	{ "", NSEC_PER_SEC },
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", NSEC_PER_MSEC },
	{ "s", NSEC_PER_SEC },
	{ "m", 60 * NSEC_PER_SEC },
	{ "h", 3600 * NSEC_PER_SEC },
	{ "d", 86400 * NSEC_PER_SEC },
};

static const struct unit sizes[] = {
	{ "", 1 },
	{ "b", 1 },
	{ "k", 1ull << 10 },
	{ "kb", 1ull << 10 },
	{ "kib", 1ull << 10 },
	{ "m", 1ull << 20 },
	{ "mb", 1ull << 20 },
	{ "mib", 1ull << 20 },
	{ "g", 1ull << 30 },
	{ "gb", 1ull << 30 },
	{ "gib", 1ull << 30 },
	{ "t", 1ull << 40 },
	{ "tb", 1ull << 40 },
	{ "tib", 1ull << 40 },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads the digits at *@text and moves it behind them. */
static int read_digits(const char **text, uint64_t *ret)
{
	uint64_t value = 0;
	int err = 0;

	if (!is_digit(**text))
		return -EINVAL;
	for (; is_digit(**text); (*text)++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(**text - '0'), &value))
			err = -ERANGE; /* go on: "999...9x" is no number at all */
	}
	*ret = value;
	return err;
}

int parse_u64(const char *text, uint64_t *ret)
{
	uint64_t value;
	int err = read_digits(&text, &value);

	if (*text || err == -EINVAL)
		return -EINVAL;
	if (!err)
		*ret = value;
	return err;
}

static int parse_with_unit(const char *text, const struct unit *units, size_t unit_count,
			   int (*compare)(const char *, const char *), uint64_t *ret)
{
	uint64_t whole, fraction = 0, fraction_scale = 1;
	const struct unit *unit = NULL;
	unsigned __int128 value;
	int err = read_digits(&text, &whole);

	if (err == -EINVAL)
		return err;
	if (*text == '.') {
		if (!is_digit(*++text))
			return -EINVAL;
		for (int i = 0; is_digit(*text); text++, i++) {
			if (i < MAX_FRACTION_DIGITS) {
				fraction = fraction * 10 + (uint64_t)(*text - '0');
				fraction_scale *= 10;
			}
		}
	}
	for (size_t i = 0; i < unit_count && !unit; i++) {
		if (!compare(text, units[i].name))
			unit = &units[i];
	}
	if (!unit)
		return -EINVAL;
	if (err)
		return err;
	value = (unsigned __int128)whole * unit->factor + (unsigned __int128)fraction * unit->factor / fraction_scale;
	if (value > UINT64_MAX)
		return -ERANGE;
	*ret = (uint64_t)value;
	return 0;
}

int parse_duration(const char *text, uint64_t *ns_ret)
{
	return parse_with_unit(text, durations, ARRAY_LEN(durations), strcmp, ns_ret);
}

int parse_size(const char *text, uint64_t *bytes_ret)
{
	return parse_with_unit(text, sizes, ARRAY_LEN(sizes), strcasecmp, bytes_ret);
}

int parse_bool(const char *text, bool *ret)
{
	static const char *const words[][2] = { { "false", "true" }, { "no", "yes" }, { "off", "on" }, { "0", "1" } };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		for (int value = 0; value < 2; value++) {
			if (!strcasecmp(text, words[i][value])) {
				*ret = value;
				return 0;
			}
		}
	}
	return -EINVAL;
}

bool parse_has_control(const char *text)
{
	for (; text && *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}
