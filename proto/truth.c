/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts by key: the tables are tallies over interned text, each line with a total and a part of it. Events are counted, not
 * weights: a stack is true or not however long it took. Not shared between threads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "proto/report_text.h"
#include "proto/stack_walk.h"
#include "proto/truth.h"

struct line {
	uint64_t total;
	uint64_t part;
	uint32_t key;
};

struct tally {
	struct intern *keys; /* text, NUL-terminated */
	struct line *lines;  /* parallel */
	uint32_t cap;
};

struct truth {
	uint64_t events, complete, truncated, no_user;
	struct tally ends;	/* reason and module */
	struct tally processes; /* comm: stacks, of these truncated */
	struct tally names;	/* module: frames, of these unnamed */
	struct buf key;
	bool failed;
};

static int tally_init(struct tally *t)
{
	t->keys = intern_new();
	return t->keys ? 0 : -ENOMEM;
}

static void tally_fini(struct tally *t)
{
	intern_free(t->keys);
	free(t->lines);
}

static int tally_add(struct tally *t, const char *key, uint64_t total, uint64_t part)
{
	uint32_t index;
	int status = intern_add(t->keys, key, strlen(key) + 1, &index);

	if (status < 0)
		return status;
	if (index == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 64;
		struct line *lines = realloc(t->lines, cap * sizeof(*lines));

		if (!lines)
			return -ENOMEM;
		t->lines = lines;
		t->cap = cap;
	}
	if (status)
		t->lines[index] = (struct line){ .key = index };
	t->lines[index].total += total;
	t->lines[index].part += part;
	return 0;
}

struct truth *truth_new(void)
{
	struct truth *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	if (tally_init(&t->ends) || tally_init(&t->processes) || tally_init(&t->names)) {
		truth_free(t);
		return NULL;
	}
	return t;
}

void truth_free(struct truth *t)
{
	if (!t)
		return;
	tally_fini(&t->ends);
	tally_fini(&t->processes);
	tally_fini(&t->names);
	buf_fini(&t->key);
	free(t);
}

static void append(struct buf *key, struct str s)
{
	buf_append(key, s.data, s.len);
}

static bool is_kernel(const struct frame *f)
{
	return str_is(f->type, "kernel");
}

static int add_names(struct truth *t, const struct stack_sample *s)
{
	int error = 0;

	for (uint32_t i = 0; i < s->frame_count && !error; i++) {
		const struct frame *f = s->frames[i];

		buf_reset(&t->key);
		append(&t->key, f->module.len ? f->module : STR("[no file]"));
		error = tally_add(&t->names, buf_text(&t->key), s->events, f->function.len ? 0 : s->events);
	}
	return error;
}

static int add_stack(void *arg, const struct stack_sample *s)
{
	const struct any_value *value = profiles_find_attribute(s->profiles, &s->sample->attributes, TRUTH_TRUNCATED_KEY);
	const struct frame *outermost = s->frame_count ? s->frames[s->frame_count - 1] : NULL;
	struct truth *t = arg;
	struct str reason, module;
	int error;

	t->events += s->events;
	error = add_names(t, s);
	if (!error) {
		buf_reset(&t->key);
		append(&t->key, s->comm);
		error = tally_add(&t->processes, buf_text(&t->key), s->events, value ? s->events : 0);
	}
	if (!value || !profiles_value_string(s->profiles, value, &reason)) {
		if (!outermost || is_kernel(outermost))
			t->no_user += s->events;
		else
			t->complete += s->events;
		return error;
	}
	t->truncated += s->events;
	buf_reset(&t->key);
	module = outermost && outermost->module.len ? outermost->module : STR("[no file]");
	buf_printf(&t->key, "%-16.*s  %.*s", (int)reason.len, reason.data, (int)module.len, module.data);
	return error ? error : tally_add(&t->ends, buf_text(&t->key), s->events, s->events);
}

int truth_add(struct truth *t, const struct profiles *p)
{
	return profiles_each_stack(p, add_stack, t);
}

/* --- text --- */

static int by_part(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->part != y->part)
		return x->part < y->part ? 1 : -1;
	return x->key < y->key ? -1 : 1; /* as first seen */
}

/* The lines with a part, heaviest first, under @heading. */
static int print_tally(struct tally *t, const char *heading, bool with_total, struct buf *out)
{
	uint32_t count = intern_count(t->keys);
	AUTO_FREE struct line *lines = malloc((count ? count : 1) * sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	if (count)
		memcpy(lines, t->lines, count * sizeof(*lines));
	qsort(lines, count, sizeof(*lines), by_part);
	if (!count || !lines[0].part)
		return 0;
	buf_printf(out, "\n%s\n", heading);
	for (uint32_t i = 0; i < count && lines[i].part; i++) {
		const char *key = intern_get(t->keys, lines[i].key, NULL);

		buf_printf(out, "%9" PRIu64, lines[i].part);
		if (with_total)
			buf_printf(out, "  %9" PRIu64 "  %7.2f%%", lines[i].total,
				   text_percent(lines[i].part, lines[i].total));
		buf_puts(out, "  ");
		text_name(out, key, 0);
		buf_putc(out, '\n');
	}
	return 0;
}

int truth_report(struct truth *t, struct buf *out)
{
	uint64_t stacks = t->complete + t->truncated;
	int error;

	buf_printf(out,
		   "%" PRIu64 " samples, %" PRIu64 " with a user stack: %" PRIu64 " complete (%.2f %%), %" PRIu64
		   " truncated\n",
		   t->events, stacks, t->complete, text_percent(t->complete, stacks), t->truncated);
	error = print_tally(&t->ends,
			    "truncated stacks, by reason and where the walk stopped\n  SAMPLES  REASON            MODULE",
			    false, out);
	if (!error)
		error = print_tally(&t->processes, "truncated stacks, by process\nTRUNCATED    SAMPLES     PART  PROCESS",
				    true, out);
	if (!error)
		error = print_tally(&t->names, "frames without a name, by module\n  UNNAMED     FRAMES     PART  MODULE",
				    true, out);
	return error ? error : out->failed ? -ENOMEM : 0;
}
