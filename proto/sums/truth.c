/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts by name: each table is a tally over interned text. Events are counted, not weights: a stack is true or not however
 * long it took. Frames are counted once an event, those of the kernel too, inlined calls not. A name's part of the time is
 * its part of the samples by their innermost function, inlined calls and the kernel too. Not shared between threads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"
#include "proto/text.h"
#include "proto/sums/stack_walk.h"
#include "proto/sums/truth.h"

enum {
	MAX_REASONS = 24, /* told apart; a capture of somebody else's may name more, which share the last */
	NO_REASON = -1,
};

struct line {
	uint64_t stacks, truncated;
	uint64_t frames, unnamed;
	uint64_t unnamed_time;	       /* samples whose innermost function has no name, or that have none */
	uint64_t reasons[MAX_REASONS]; /* of the truncated */
	const char *name;	       /* while printing */
};

struct tally {
	struct intern *keys; /* text, NUL-terminated */
	struct line *lines;  /* parallel */
	uint32_t cap;
};

struct truth {
	uint64_t events, unnamed_time;
	struct line sum;
	struct tally reasons, faults; /* of stacks, of scripts; their order gives the index */
	struct tally executables, ends /* modules where walks ended */, modules, runtimes;
	struct buf key;
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

/* The number of @key's line, a new one when it has none; -ENOMEM. */
static int64_t tally_find(struct tally *t, struct buf *key)
{
	uint32_t index;
	int status = intern_add(t->keys, buf_text(key), strlen(buf_text(key)) + 1, &index);

	if (status < 0 || key->failed)
		return -ENOMEM;
	if (vec_reach(&t->lines, &t->cap, index))
		return -ENOMEM;
	if (status)
		t->lines[index] = (struct line){ 0 };
	return index;
}

struct truth *truth_new(void)
{
	struct truth *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	if (tally_init(&t->reasons) || tally_init(&t->faults) || tally_init(&t->executables) || tally_init(&t->ends) ||
	    tally_init(&t->modules) || tally_init(&t->runtimes)) {
		truth_free(t);
		return NULL;
	}
	return t;
}

void truth_free(struct truth *t)
{
	if (!t)
		return;
	tally_fini(&t->reasons);
	tally_fini(&t->faults);
	tally_fini(&t->executables);
	tally_fini(&t->ends);
	tally_fini(&t->modules);
	tally_fini(&t->runtimes);
	buf_fini(&t->key);
	free(t);
}

/* --- counting --- */

static struct line *line_of(struct truth *t, struct tally *tally, struct str name, struct str instead)
{
	int64_t index;

	buf_reset(&t->key);
	name = name.len ? name : instead;
	buf_append(&t->key, name.data, name.len);
	index = tally_find(tally, &t->key);
	return index < 0 ? NULL : &tally->lines[index];
}

/* The index of @name among the @reasons, which counts @events more of it; a negative errno. */
static int reason_of(struct truth *t, struct tally *reasons, struct str name, uint64_t events)
{
	struct line *line = line_of(t, reasons, name, name);

	if (!line)
		return -ENOMEM;
	line->truncated += events;
	return line - reasons->lines < MAX_REASONS ? (int)(line - reasons->lines) : MAX_REASONS - 1;
}

/* The user part of a sample: why it is truncated (an empty reason: it is not), and how many frames have no name. */
struct user_part {
	bool has_stack;
	struct str reason;
	struct str module; /* of the outermost frame */
	uint64_t frames, unnamed;
	bool is_named; /* the innermost function, of the kernel too */
};

static bool is_marker(const struct frame *f)
{
	return str_is(f->type, TRUTH_MARKER_TYPE);
}

static const struct frame *innermost(const struct stack_sample *s)
{
	for (uint32_t i = 0; i < s->frame_count; i++)
		if (!is_marker(stack_frame(s, i)))
			return stack_frame(s, i);
	return NULL;
}

static int count_frames(struct truth *t, const struct stack_sample *s, struct user_part *part)
{
	const struct frame *leaf = innermost(s);

	part->is_named = leaf && leaf->function.len;
	t->unnamed_time += part->is_named ? 0 : s->events;
	for (uint32_t i = 0; i < s->frame_count; i++) {
		const struct frame *f = stack_frame(s, i);
		struct line *line;

		if (is_marker(f) || f->inlined)
			continue;
		line = line_of(t, &t->modules, f->module, STR("[no file]"));
		if (!line)
			return -ENOMEM;
		line->frames += s->events;
		line->unnamed += f->function.len ? 0 : s->events;
		line->unnamed_time += f == leaf && !part->is_named ? s->events : 0;
		if (str_is(f->type, "kernel"))
			continue;
		part->has_stack = true;
		part->module = f->module.len ? f->module : STR("[no file]");
		part->frames++;
		part->unnamed += !f->function.len;
	}
	return 0;
}

/* Hearth says it by an attribute, others by the marker alone. */
static void find_reason(const struct stack_sample *s, struct user_part *part)
{
	const struct any_value *value = profiles_find_attribute(s->profiles, &s->sample->attributes, TRUTH_TRUNCATED_KEY);
	const struct frame *outermost = s->frame_count ? stack_frame(s, s->frame_count - 1) : NULL;

	if (value && profiles_value_string(s->profiles, value, &part->reason))
		part->has_stack = true;
	else if (outermost && is_marker(outermost))
		part->reason = outermost->function.len ? outermost->function : STR("unknown");
}

static void add_line(struct line *line, const struct user_part *part, int reason, uint64_t events)
{
	line->stacks += events;
	line->frames += part->frames * events;
	line->unnamed += part->unnamed * events;
	line->unnamed_time += part->is_named ? 0 : events;
	if (reason == NO_REASON)
		return;
	line->truncated += events;
	line->reasons[reason] += events;
}

static struct str executable_of(const struct stack_sample *s)
{
	struct str name = profiles_value_text(
		s->profiles, profiles_find_key(s->profiles, &s->resource->resource.attributes, "process.executable.name"));

	return name.len ? name : s->comm;
}

/* A frame of a function of a script, by the words of OpenTelemetry and hearth's own for one whose function is not known. */
static bool is_of_script(const struct frame *f)
{
	static const char *const types[] = { "cpython", "php", "perl", "ruby", "lua", "luajit", "script" };

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_is(f->type, types[i]))
			return true;
	return false;
}

/* Takes "RUNTIME: OUTCOME" apart. */
static bool split(struct str text, struct str *runtime, struct str *outcome)
{
	const char *colon = memmem(text.data, text.len, ": ", 2);

	if (!colon)
		return false;
	*runtime = (struct str){ text.data, (uint32_t)(colon - text.data) };
	*outcome = (struct str){ colon + 2, text.len - runtime->len - 2 };
	return true;
}

/* Counts the sample for the runtime of its script, if it has one. */
static int add_script(struct truth *t, const struct stack_sample *s)
{
	const struct any_value *value = profiles_find_attribute(s->profiles, &s->sample->attributes, TRUTH_SCRIPT_KEY);
	struct user_part part = { .is_named = true };
	struct str text, runtime, outcome;
	int reason = NO_REASON;
	struct line *line;

	if (!value || !profiles_value_string(s->profiles, value, &text) || !split(text, &runtime, &outcome))
		return 0;
	for (uint32_t i = 0; i < s->frame_count; i++) {
		bool is_one = is_of_script(stack_frame(s, i));

		part.frames += is_one;
		part.unnamed += is_one && !stack_frame(s, i)->function.len;
	}
	if (!str_is(outcome, TRUTH_SCRIPT_COMPLETE)) {
		reason = reason_of(t, &t->faults, outcome, s->events);
		if (reason < 0)
			return reason;
	}
	line = line_of(t, &t->runtimes, runtime, STR("[no name]"));
	if (!line)
		return -ENOMEM;
	add_line(line, &part, reason, s->events);
	return 0;
}

static int add_stack(void *arg, const struct stack_sample *s)
{
	struct user_part part = { .reason = STR(""), .module = STR("[no frame]") };
	struct truth *t = arg;
	struct line *executable, *end;
	int reason = NO_REASON;

	t->events += s->events;
	if (count_frames(t, s, &part))
		return -ENOMEM;
	find_reason(s, &part);
	if (!part.has_stack)
		return 0;
	if (part.reason.len) {
		reason = reason_of(t, &t->reasons, part.reason, s->events);
		if (reason < 0)
			return reason;
	}
	executable = line_of(t, &t->executables, executable_of(s), STR("[no name]"));
	end = line_of(t, &t->ends, part.module, part.module);
	if (!executable || !end)
		return -ENOMEM;
	add_line(executable, &part, reason, s->events);
	add_line(end, &part, reason, s->events);
	add_line(&t->sum, &part, reason, s->events);
	return add_script(t, s);
}

int truth_add(struct truth *t, const struct profiles *p)
{
	return stack_walk_each(p, add_stack, t);
}

/* --- text --- */

static int by_truncated(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->truncated != y->truncated)
		return x->truncated < y->truncated ? 1 : -1;
	if (x->unnamed != y->unnamed)
		return x->unnamed < y->unnamed ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int by_unnamed(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->unnamed_time != y->unnamed_time)
		return x->unnamed_time < y->unnamed_time ? 1 : -1;
	return x->unnamed != y->unnamed ? (x->unnamed < y->unnamed ? 1 : -1) : strcmp(x->name, y->name);
}

/* A sorted copy of the lines, the caller's; NULL without memory. */
static struct line *sorted(const struct tally *t, int (*order)(const void *a, const void *b))
{
	uint32_t count = intern_count(t->keys);
	struct line *lines = calloc(count + 1, sizeof(*lines));

	if (!lines)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		lines[i] = t->lines[i];
		lines[i].name = intern_get(t->keys, i, NULL);
	}
	qsort(lines, count, sizeof(*lines), order);
	return lines;
}

static const char *reason_name(const struct tally *reasons, uint32_t reason)
{
	return reason == MAX_REASONS - 1 ? "others" : intern_get(reasons->keys, reason, NULL);
}

/* "no rule 12, depth 3": heaviest first, equal ones by name. */
static void print_reasons(const struct tally *reasons, const struct line *line, struct buf *out)
{
	uint64_t left[MAX_REASONS];
	const char *separator = "";

	memcpy(left, line->reasons, sizeof(left));
	for (;;) {
		uint32_t most = 0;

		for (uint32_t i = 1; i < MAX_REASONS; i++)
			if (left[i] > left[most] || (left[i] && left[i] == left[most] &&
						     strcmp(reason_name(reasons, i), reason_name(reasons, most)) < 0))
				most = i;
		if (!left[most])
			return;
		buf_puts(out, separator);
		text_name(out, reason_name(reasons, most), 0);
		buf_printf(out, " %" PRIu64, left[most]);
		left[most] = 0;
		separator = ", ";
	}
}

static void print_more(uint32_t more, const char *what, struct buf *out)
{
	if (more)
		buf_printf(out, "(%" PRIu32 " more, %s)\n", more, what);
}

static int print_by_reason(const struct truth *t, struct buf *out)
{
	AUTO_FREE struct line *lines = sorted(&t->reasons, by_truncated);

	if (!lines)
		return -ENOMEM;
	if (intern_count(t->reasons.keys))
		buf_puts(out, "\ntruncated stacks, by reason\nTRUNCATED     PART  REASON\n");
	for (uint32_t i = 0; i < intern_count(t->reasons.keys); i++) {
		buf_printf(out, "%9" PRIu64 "  %6.2f%%  ", lines[i].truncated,
			   text_percent(lines[i].truncated, t->sum.truncated));
		text_name(out, lines[i].name, 0);
		buf_putc(out, '\n');
	}
	return 0;
}

static unsigned name_columns(const struct line *lines, uint32_t count, const char *heading)
{
	unsigned columns = text_columns(heading);

	for (uint32_t i = 0; i < count; i++)
		columns = text_columns(lines[i].name) > columns ? text_columns(lines[i].name) : columns;
	return columns;
}

/* The lines that have truncated stacks, or @with_unnamed also those with unnamed frames. */
static int print_stacks(const struct truth *t, const struct tally *tally, const char *title, const char *heading,
			bool with_unnamed, struct buf *out)
{
	AUTO_FREE struct line *lines = sorted(tally, by_truncated);
	uint32_t count = intern_count(tally->keys), shown = 0;
	unsigned columns;

	if (!lines)
		return -ENOMEM;
	while (shown < count && (lines[shown].truncated || (with_unnamed && lines[shown].unnamed)))
		shown++;
	if (!shown)
		return 0;
	columns = name_columns(lines, shown, heading);
	buf_printf(out, "\n%s\n   STACKS  COMPLETE  TRUNCATED  %s%-*s  REASONS\n", title,
		   with_unnamed ? "UNNAMED TIME  UNNAMED FRAMES  " : "", (int)columns, heading);
	for (uint32_t i = 0; i < shown; i++) {
		const struct line *l = &lines[i];

		buf_printf(out, "%9" PRIu64 "  %7.2f%%  %9" PRIu64 "  ", l->stacks,
			   text_percent(l->stacks - l->truncated, l->stacks), l->truncated);
		if (with_unnamed)
			buf_printf(out, "%11.2f%%  %13.2f%%  ", text_percent(l->unnamed_time, l->stacks),
				   text_percent(l->unnamed, l->frames));
		if (l->truncated) {
			text_padded(out, l->name, columns);
			buf_puts(out, "  ");
			print_reasons(&t->reasons, l, out);
		} else {
			text_name(out, l->name, 0);
		}
		buf_putc(out, '\n');
	}
	print_more(count - shown, with_unnamed ? "all complete and named" : "all complete", out);
	return 0;
}

static int print_unnamed(const struct truth *t, struct buf *out)
{
	AUTO_FREE struct line *lines = sorted(&t->modules, by_unnamed);
	uint32_t count = intern_count(t->modules.keys), i;

	if (!lines)
		return -ENOMEM;
	if (count && lines[0].unnamed)
		buf_puts(out, "\ncode without a name, by module\n"
			      "  OF ALL TIME    UNNAMED     FRAMES     PART  MODULE\n");
	for (i = 0; i < count && lines[i].unnamed; i++) {
		buf_printf(out, "%12.2f%%  %9" PRIu64 "  %9" PRIu64 "  %6.2f%%  ",
			   text_percent(lines[i].unnamed_time, t->events), lines[i].unnamed, lines[i].frames,
			   text_percent(lines[i].unnamed, lines[i].frames));
		text_name(out, lines[i].name, 0);
		buf_putc(out, '\n');
	}
	print_more(i ? count - i : 0, "all named", out);
	return 0;
}

/* The stacks with functions of scripts. */
static int print_scripts(const struct truth *t, struct buf *out)
{
	AUTO_FREE struct line *lines = sorted(&t->runtimes, by_truncated);
	uint32_t count = intern_count(t->runtimes.keys);
	unsigned columns;

	if (!lines)
		return -ENOMEM;
	columns = name_columns(lines, count, "RUNTIME");
	if (count)
		buf_printf(out, "\nstacks of scripts, by runtime\n   STACKS  COMPLETE  UNNAMED FRAMES  %-*s  REASONS\n",
			   (int)columns, "RUNTIME");
	for (uint32_t i = 0; i < count; i++) {
		const struct line *l = &lines[i];

		buf_printf(out, "%9" PRIu64 "  %7.2f%%  %13.2f%%  ", l->stacks,
			   text_percent(l->stacks - l->truncated, l->stacks), text_percent(l->unnamed, l->frames));
		if (l->truncated) {
			text_padded(out, l->name, columns);
			buf_puts(out, "  ");
			print_reasons(&t->faults, l, out);
		} else {
			text_name(out, l->name, 0);
		}
		buf_putc(out, '\n');
	}
	return 0;
}

int truth_report(struct truth *t, struct buf *out)
{
	uint64_t complete = t->sum.stacks - t->sum.truncated;
	int error;

	buf_printf(out,
		   "%" PRIu64 " samples, %" PRIu64 " with a user stack: %" PRIu64 " complete (%.2f %%), %" PRIu64
		   " truncated\n",
		   t->events, t->sum.stacks, complete, text_percent(complete, t->sum.stacks), t->sum.truncated);
	buf_printf(out,
		   "named: %.2f %% of the time (the innermost function of %" PRIu64 " of %" PRIu64
		   " samples), %.2f %% of user frames (%" PRIu64 " of %" PRIu64 ")\n",
		   text_percent(t->events - t->unnamed_time, t->events), t->events - t->unnamed_time, t->events,
		   text_percent(t->sum.frames - t->sum.unnamed, t->sum.frames), t->sum.frames - t->sum.unnamed,
		   t->sum.frames);
	error = print_by_reason(t, out);
	if (!error)
		error = print_stacks(t, &t->executables, "stacks, by executable", "EXECUTABLE", true, out);
	if (!error)
		error = print_stacks(t, &t->ends, "stacks, by the module where the walk ended", "MODULE", false, out);
	if (!error)
		error = print_scripts(t, out);
	if (!error)
		error = print_unnamed(t, out);
	return error ? error : out->failed ? -ENOMEM : 0;
}
