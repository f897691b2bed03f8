/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as people write them. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/query/selected.h"
#include "base/clock.h"
#include "base/text/parse.h"

enum { FRACTION_DIGITS = 9 };

/* The digits behind a decimal point as nanoseconds; @end_ret behind them. */
static uint64_t fraction_ns(const char *text, const char **end_ret)
{
	uint64_t ns = 0;
	int digits = 0;

	for (; isdigit((unsigned char)*text); text++, digits++)
		if (digits < FRACTION_DIGITS)
			ns = ns * 10 + (uint64_t)(*text - '0');
	for (; digits < FRACTION_DIGITS; digits++)
		ns *= 10;
	*end_ret = text;
	return ns;
}

static int unix_seconds(const char *text, uint64_t *ns_ret)
{
	uint64_t seconds = 0, ns = 0;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (; isdigit((unsigned char)*text); text++) {
		seconds = seconds * 10 + (uint64_t)(*text - '0');
		if (seconds > INT64_MAX / NSEC_PER_SEC)
			return -EINVAL;
	}
	if (*text == '.')
		ns = fraction_ns(text + 1, &text);
	if (*text)
		return -EINVAL;
	*ns_ret = seconds * NSEC_PER_SEC + ns;
	return 0;
}

/* "+01:00", "-0530" or "Z" as seconds. */
static int zone_seconds(const char *text, long *ret)
{
	int hours, minutes, used = 0;

	*ret = 0;
	if ((*text == 'Z' || *text == 'z') && !text[1])
		return 0;
	if (*text != '+' && *text != '-')
		return -EINVAL;
	if (sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 &&
	    sscanf(text + 1, "%2d%2d%n", &hours, &minutes, &used) != 2)
		return -EINVAL;
	if (text[1 + used] || hours < 0 || minutes < 0 || minutes > 59)
		return -EINVAL;
	*ret = (hours * 60L + minutes) * 60 * (*text == '-' ? -1 : 1);
	return 0;
}

static int rfc3339(const char *text, uint64_t *ns_ret)
{
	struct tm tm = { 0 };
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	uint64_t ns = 0;
	long zone;
	time_t seconds;

	if (!rest)
		return -EINVAL;
	if (*rest == '.')
		ns = fraction_ns(rest + 1, &rest);
	if (zone_seconds(rest, &zone))
		return -EINVAL;
	seconds = timegm(&tm) - zone;
	if (seconds < 0)
		return -EINVAL;
	*ns_ret = (uint64_t)seconds * NSEC_PER_SEC + ns;
	return 0;
}

/* "", "-15m", "+1h" behind "now". */
static int shift(const char *text, uint64_t now_ns, uint64_t *ns_ret)
{
	uint64_t by, ns;

	if (!*text) {
		*ns_ret = now_ns;
		return 0;
	}
	/* A plus sign is a space in the query of a URL when nobody escaped it. */
	if ((*text != '-' && *text != '+' && *text != ' ') || parse_duration(text + 1, &by))
		return -EINVAL;
	if (*text == '-')
		ns = by < now_ns ? now_ns - by : 0;
	else if (__builtin_add_overflow(now_ns, by, &ns))
		return -EINVAL;
	*ns_ret = ns;
	return 0;
}

int query_time(const char *text, uint64_t now_ns, const struct store_status *status, uint64_t *ns_ret)
{
	if (!strncmp(text, "now", 3))
		return shift(text + 3, now_ns, ns_ret);
	if (!strcmp(text, "first"))
		*ns_ret = status->first_ns;
	else if (!strcmp(text, "last"))
		*ns_ret = status->last_ns + 1; /* the range is half open */
	else if (unix_seconds(text, ns_ret) && rfc3339(text, ns_ret))
		return -EINVAL;
	return 0;
}
