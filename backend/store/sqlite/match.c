/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the series and the sets of labels that meet a selection's matchers. */
#include <errno.h>
#include <string.h>

#include "backend/store/sqlite/scan.h"
#include "base/text/pattern.h"

enum comm_part { COMM_ABSENT, COMM_FITS, COMM_FAILS };
enum { COMM_PARTS = 2 };

/* A regular expression may take its time for a value, so the budget is looked at here, too. */
static bool matches_pattern(const struct scan *scan, struct pattern *pattern, const char *value, int *err)
{
	bool is_match = pattern_matches(pattern, value, strlen(value));

	*err = pattern_gave_up(pattern) ? -ELOOP : *err ? *err : store_selection_check(scan->sel);
	return is_match;
}

bool scan_is_match(const struct scan *scan, size_t i, const char *value, int *err)
{
	const struct store_matcher *m = &scan->sel->matchers[i];

	switch (m->match) {
	case MATCH_EQUAL:
		return !strcmp(m->value, value);
	case MATCH_NOT_EQUAL:
		return strcmp(m->value, value) != 0;
	case MATCH_REGEX:
		return matches_pattern(scan, m->pattern, value, err);
	case MATCH_NOT_REGEX:
		return !matches_pattern(scan, m->pattern, value, err);
	}
	return false;
}

const char *scan_series_value(struct scan *scan, const struct name_series *series, const char *key, int *err)
{
	struct store_names *n = scan->s->names;
	const struct name_set *set;
	const char *value;

	if (scan_is_of_links(key)) /* these are never the series': blocks are left out by their links alone */
		return NULL;
	set = names_set(n, series->resource, err);
	value = set ? names_set_value(set, key) : NULL;
	if (*err || value)
		return value;
	set = names_set(n, series->origin->attributes, err);
	value = set ? names_set_value(set, key) : NULL;
	if (*err || value)
		return value;
	if (!strcmp(key, "otel.scope.name"))
		value = series->origin->scope_name;
	else if (!strcmp(key, "otel.scope.version"))
		value = series->origin->scope_version;
	return value && *value ? value : NULL;
}

/* --- comm: two labels in one --- */

static const char *const comm_labels[COMM_PARTS] = { STORE_THREAD_LABEL, STORE_EXE_LABEL };

static enum comm_part judge_comm(const struct scan *scan, size_t i, const char *value, int *err)
{
	if (!value || !*value)
		return COMM_ABSENT;
	return scan_is_match(scan, i, value, err) ? COMM_FITS : COMM_FAILS;
}

/* Whether matcher @i is met, judged by the parts; -1 while an absent one may still decide. */
static int meet_comm(const struct scan *scan, size_t i, const enum comm_part parts[static COMM_PARTS])
{
	const enum store_match match = scan->sel->matchers[i].match;
	const bool is_positive = match == MATCH_EQUAL || match == MATCH_REGEX;
	const enum comm_part decides = is_positive ? COMM_FITS : COMM_FAILS;

	for (size_t k = 0; k < COMM_PARTS; k++)
		if (parts[k] == decides)
			return is_positive;
	return parts[0] == COMM_ABSENT || parts[1] == COMM_ABSENT ? -1 : !is_positive;
}

static int judge_series_comm(struct scan *scan, const struct name_series *series, size_t i,
			     enum comm_part parts[static COMM_PARTS])
{
	int err = 0;

	for (size_t k = 0; k < COMM_PARTS && !err; k++) /* a value stays until the next is looked for */
		parts[k] = judge_comm(scan, i, scan_series_value(scan, series, comm_labels[k], &err), &err);
	return err;
}

/* Whether matcher @i is met by events of @series with the labels @set. */
static int meet_comm_of_set(struct scan *scan, const struct name_series *series, size_t i, uint32_t set_id, bool *ret)
{
	enum comm_part parts[COMM_PARTS];
	int met, err = judge_series_comm(scan, series, i, parts);
	const struct name_set *set = err ? NULL : names_set(scan->s->names, set_id, &err);

	if (!set)
		return err;
	for (size_t k = 0; k < COMM_PARTS; k++)
		if (parts[k] == COMM_ABSENT)
			parts[k] = judge_comm(scan, i, names_set_value(set, comm_labels[k]), &err);
	met = meet_comm(scan, i, parts);
	if (met < 0 && parts[0] == parts[1])
		*ret = scan_is_match(scan, i, "", &err);
	else
		*ret = met < 0 ? parts[0] == COMM_FITS || parts[1] == COMM_FITS : met;
	return err;
}

static int match_series_comm(struct scan *scan, struct scan_series *m, size_t i)
{
	enum comm_part parts[COMM_PARTS];
	int err = judge_series_comm(scan, m->series, i, parts), met = err ? 0 : meet_comm(scan, i, parts);

	if (met < 0)
		m->undecided |= 1ull << i;
	else
		m->is_out = !met;
	return err;
}

int scan_match_series(struct scan *scan, struct scan_series *m)
{
	int err = 0;

	m->is_out = scan->kind[0] && strcmp(m->series->origin->sample_type, scan->kind) != 0;
	for (size_t i = 0; i < scan->sel->matcher_count && !m->is_out && !err; i++) {
		const char *value;

		if (!strcmp(scan->sel->matchers[i].label, STORE_COMM_LABEL)) {
			err = match_series_comm(scan, m, i);
			continue;
		}
		value = scan_series_value(scan, m->series, scan->sel->matchers[i].label, &err);
		if (!value)
			m->undecided |= 1ull << i;
		else
			m->is_out = !scan_is_match(scan, i, value, &err);
	}
	return err;
}

int scan_match_set(struct scan *scan, uint32_t index, uint64_t undecided, uint32_t set_id, bool *fits)
{
	int err = 0;

	*fits = true;
	for (size_t i = 0; i < scan->sel->matcher_count && *fits && !err; i++) {
		const char *key = scan->sel->matchers[i].label, *value;
		const struct name_set *set;

		if (!(undecided & 1ull << i) || scan_is_of_events(key))
			continue;
		if (!strcmp(key, STORE_COMM_LABEL)) {
			err = meet_comm_of_set(scan, scan->of[index]->series, i, set_id, fits);
			continue;
		}
		set = names_set(scan->s->names, set_id, &err);
		value = set ? names_set_value(set, key) : NULL;
		*fits = !err && scan_is_match(scan, i, value ? value : "", &err);
	}
	return err;
}
