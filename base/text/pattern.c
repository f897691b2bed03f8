/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCRE2 compiles into at most 64 K units (its link size of 2) whatever the repetitions; the nesting of parentheses and the
 * steps and memory of a match are bounded here.
 */
#include "base/text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_BYTES = 4096, MAX_NESTING = 50, MATCH_STEPS = 100000, MATCH_HEAP_KB = 1024 };

struct pattern {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *limits;
	bool gave_up;
};

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	pcre2_code_free(p->code);
	pcre2_match_data_free(p->data);
	pcre2_match_context_free(p->limits);
	free(p);
}

static int compile(struct pattern *p, const char *expression, unsigned flags, struct pattern_error *err)
{
	uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE;
	pcre2_compile_context *bounds = pcre2_compile_context_create(NULL);
	PCRE2_UCHAR why[120];
	PCRE2_SIZE at;
	int code;

	if (!bounds)
		return -ENOMEM;
	pcre2_set_max_pattern_length(bounds, MAX_BYTES);
	pcre2_set_parens_nest_limit(bounds, MAX_NESTING);
	if (flags & PATTERN_WHOLE)
		options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
	p->code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED, options, &code, &at, bounds);
	pcre2_compile_context_free(bounds);
	if (p->code)
		return 0;
	pcre2_get_error_message(code, why, sizeof(why));
	snprintf(err->message, sizeof(err->message), "%s at character %zu", (const char *)why, (size_t)at + 1);
	return -EINVAL;
}

int pattern_new(const char *expression, unsigned flags, struct pattern **ret, struct pattern_error *err)
{
	struct pattern *p = calloc(1, sizeof(*p));
	int error = p ? compile(p, expression, flags, err) : -ENOMEM;

	if (!error) {
		p->data = pcre2_match_data_create(1, NULL);
		p->limits = pcre2_match_context_create(NULL);
		if (!p->data || !p->limits)
			error = -ENOMEM;
	}
	if (error) {
		pattern_free(p);
		return error;
	}
	pcre2_set_match_limit(p->limits, MATCH_STEPS);
	pcre2_set_heap_limit(p->limits, MATCH_HEAP_KB);
	*ret = p;
	return 0;
}

bool pattern_matches(struct pattern *p, const char *text, size_t len)
{
	int ret = pcre2_match(p->code, (PCRE2_SPTR)text, len, 0, 0, p->data, p->limits);

	p->gave_up |= ret < 0 && ret != PCRE2_ERROR_NOMATCH;
	return ret >= 0;
}

bool pattern_gave_up(const struct pattern *p)
{
	return p->gave_up;
}
