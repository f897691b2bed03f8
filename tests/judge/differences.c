/* SPDX-License-Identifier: Apache-2.0 */
/* The table, read once; lines are tried in their order. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/judge/differences.h"

enum { MAX_LINES = 100, MAX_NOTED = 200, NAME_BYTES = 64 };

const char *const difference_kinds[] = {
	[JUDGE_WRONG] = "judge-wrong",	 [JUDGE_ENDS] = "judge-ends", [HEARTH_ENDS] = "hearth-ends",
	[BOTH_DIFFER] = "both-differ",	 [BOTH_WRONG] = "both-wrong", [HEARTH_CUT] = "hearth-cut",
	[HEARTH_WRONG] = "hearth-wrong",
};

enum column { NAME, KIND, PROGRAM, MODULE, FUNCTION, END, REASON, COLUMNS };

struct line {
	char *text; /* what the columns stand in */
	const char *column[COLUMNS];
	uint64_t most_percent; /* of a program's stops; 0: no limit */
	uint64_t count;
};

/* Unexplained ones that look alike. */
struct noted {
	enum difference_kind kind;
	char module[NAME_BYTES], function[NAME_BYTES], end[NAME_BYTES];
	uint64_t count;
};

struct differences {
	struct line lines[MAX_LINES];
	struct noted noted[MAX_NOTED];
	uint32_t count, noted_cnt;
};

static const char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && strchr(" \t\n", end[-1]))
		*--end = '\0';
	return text + strspn(text, " \t");
}

static int read_line(struct line *line)
{
	char *rest = line->text, *column, *kind_end = NULL;

	for (int i = 0; i < COLUMNS; i++) {
		if (i == KIND + 1)
			kind_end = (char *)(uintptr_t)line->column[KIND];
		column = strsep(&rest, i == REASON ? "" : "|");
		if (!column)
			return -EINVAL;
		line->column[i] = trim(column);
	}
	line->column[KIND] = strsep(&kind_end, "<");
	line->most_percent = kind_end ? strtoul(kind_end, NULL, 10) : 0;
	for (int kind = JUDGE_WRONG; kind < HEARTH_WRONG; kind++)
		if (!strcmp(line->column[KIND], difference_kinds[kind]))
			return *line->column[REASON] ? 0 : -EINVAL;
	return -EINVAL;
}

struct differences *differences_read(const char *path)
{
	struct differences *d = calloc(1, sizeof(*d));
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	AUTO_FREE char *text = NULL;
	size_t room = 0;

	if (!d || !f) {
		fprintf(stderr, "judge: %s: %s\n", path, strerror(errno));
		differences_free(d);
		return NULL;
	}
	while (getline(&text, &room, f) > 0) {
		struct line *line = &d->lines[d->count];

		if (*text == '#' || *text == '\n')
			continue;
		if (d->count < MAX_LINES)
			line->text = strdup(text);
		if (d->count++ >= MAX_LINES || !line->text || read_line(line)) {
			fprintf(stderr, "judge: %s: this line makes no sense: %s", path, text);
			differences_free(d);
			return NULL;
		}
	}
	return d;
}

void differences_free(struct differences *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; i < MAX_LINES; i++)
		free(d->lines[i].text);
	free(d);
}

const char *differences_explain(struct differences *d, const struct difference *difference)
{
	for (uint32_t i = 0; i < d->count; i++) {
		struct line *l = &d->lines[i];

		if (strcmp(l->column[KIND], difference_kinds[difference->kind]) == 0 &&
		    fnmatch(l->column[PROGRAM], difference->program, 0) == 0 &&
		    fnmatch(l->column[MODULE], difference->module, 0) == 0 &&
		    fnmatch(l->column[FUNCTION], difference->function, 0) == 0 &&
		    fnmatch(l->column[END], difference->end, 0) == 0) {
			l->count++;
			return l->column[NAME];
		}
	}
	return NULL;
}

bool differences_note(struct differences *d, const struct difference *difference)
{
	struct noted n = { .kind = difference->kind, .count = 1 };

	snprintf(n.module, sizeof(n.module), "%s", difference->module);
	snprintf(n.function, sizeof(n.function), "%s", difference->function);
	snprintf(n.end, sizeof(n.end), "%s", difference->end);
	for (uint32_t i = 0; i < d->noted_cnt; i++) {
		struct noted *old = &d->noted[i];

		if (old->kind == n.kind && !strcmp(old->module, n.module) && !strcmp(old->function, n.function) &&
		    !strcmp(old->end, n.end)) {
			old->count++;
			return false;
		}
	}
	if (d->noted_cnt == MAX_NOTED)
		return false;
	d->noted[d->noted_cnt++] = n;
	return true;
}

void differences_print_noted(const struct differences *d)
{
	for (uint32_t i = 0; i < d->noted_cnt; i++) {
		const struct noted *n = &d->noted[i];

		fprintf(stderr, "%8llu %s behind %s %s, end: %s\n", (unsigned long long)n->count, difference_kinds[n->kind],
			n->module, n->function, n->end);
	}
}

bool differences_too_many(const struct differences *d, uint64_t stops)
{
	bool too_many = false;

	for (uint32_t i = 0; i < d->count; i++) {
		const struct line *l = &d->lines[i];

		if (!l->most_percent || l->count * 100 <= l->most_percent * stops)
			continue;
		fprintf(stderr, "%8llu of %llu stops were explained by %s (%s), but it may be %llu %%\n",
			(unsigned long long)l->count, (unsigned long long)stops, l->column[NAME], l->column[KIND],
			(unsigned long long)l->most_percent);
		too_many = true;
	}
	return too_many;
}

void differences_print(const struct differences *d)
{
	for (uint32_t i = 0; i < d->count; i++)
		if (d->lines[i].count)
			printf("class %s %llu\n", d->lines[i].column[NAME], (unsigned long long)d->lines[i].count);
}
