/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables of subjects, executables and modules. An interval is first counted for each subject it met, then the places are
 * given anew, then the counts go into the series of the subject's place, or of TRUTH_OTHER. A subject's rank is its count
 * since it is known, shown or not. Agent's thread; the series are read by others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/report/truth_counts.h"
#include "agent/samples/walk_ends.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/metrics.h"
#include "base/vec.h"

enum {
	MAX_SUBJECTS = 1024,	   /* names known at once; at this bound names without a place are forgotten */
	OTHER_PLACE = TRUTH_SHOWN, /* the place of all subjects that have none */
};

struct counts {
	uint64_t stacks[END_MAX];
	uint64_t frames, unnamed;
};

struct subject {
	struct counts now;	     /* counts of this interval */
	uint64_t truncated, unnamed; /* counts since it is known, which are its rank */
	uint32_t place;		     /* in the table */
};

/* The series of one label, and their values. */
struct place {
	uint32_t subject; /* UINT32_MAX: free */
	struct counts sum;
	struct metric *stacks[END_MAX], *frames, *unnamed; /* NULL until there is something to count */
};

/* The names of the metrics. */
struct table_names {
	const char *label;
	const char *stacks, *stacks_help;
	const char *frames, *frames_help;
	const char *unnamed, *unnamed_help;
};

struct table {
	const struct table_names *names;
	struct metrics *metrics;
	struct intern *keys; /* names; then the two below are parallel to it */
	struct subject *subjects;
	uint32_t cap;
	struct place places[TRUTH_SHOWN + 1]; /* the last is TRUTH_OTHER's */
};

struct truth_counts {
	struct table executables, modules;
};

static const struct table_names executable_names = {
	.label = "executable",
	.stacks = "hearth_executable_stacks_total",
	.stacks_help = "User stacks of an executable's processes, by how the walk ended (root: complete).",
	.frames = "hearth_executable_frames_total",
	.frames_help = "User frames in the stacks of an executable's processes.",
	.unnamed = "hearth_executable_frames_unnamed_total",
	.unnamed_help = "Of these the ones without a function's name.",
};

static const struct table_names module_names = {
	.label = "module",
	.stacks = "hearth_module_stacks_total",
	.stacks_help = "User stacks whose walk ended in a module, by how it ended (root: complete).",
	.frames = "hearth_module_frames_total",
	.frames_help = "Frames in a module.",
	.unnamed = "hearth_module_frames_unnamed_total",
	.unnamed_help = "Of these the ones without a function's name.",
};

/* --- subjects --- */

static int table_init(struct table *t, const struct table_names *names, struct metrics *metrics)
{
	t->names = names;
	t->metrics = metrics;
	t->keys = intern_new();
	for (uint32_t i = 0; i <= TRUTH_SHOWN; i++)
		t->places[i].subject = UINT32_MAX;
	return t->keys ? 0 : -ENOMEM;
}

static void table_fini(struct table *t)
{
	intern_free(t->keys);
	free(t->subjects);
}

/* The number of @name's subject, new or known; UINT32_MAX (it is counted as an other) without memory. */
static uint32_t find_or_add(struct table *t, struct str name)
{
	uint32_t count = intern_count(t->keys), index;
	int status;

	if (vec_reach(&t->subjects, &t->cap, count))
		return UINT32_MAX;
	status = intern_add(t->keys, name.data, name.len, &index);
	if (status < 0)
		return UINT32_MAX;
	if (status)
		t->subjects[index] = (struct subject){ .place = OTHER_PLACE };
	return index;
}

/* Forgets the subjects without a place, so that memory stays bounded. */
static int forget_unshown(struct table *t)
{
	struct intern *keys = intern_new();
	struct subject kept[TRUTH_SHOWN];
	int error = keys ? 0 : -ENOMEM;

	for (uint32_t i = 0, index; !error && i < TRUTH_SHOWN; i++) {
		size_t len;
		const void *name;

		if (t->places[i].subject == UINT32_MAX)
			continue;
		name = intern_get(t->keys, t->places[i].subject, &len);
		error = intern_add(keys, name, len, &index) < 0 ? -ENOMEM : 0;
		if (!error)
			kept[index] = t->subjects[t->places[i].subject];
	}
	if (error) {
		intern_free(keys);
		return error;
	}
	intern_free(t->keys);
	t->keys = keys;
	for (uint32_t i = 0; i < intern_count(keys); i++) {
		t->subjects[i] = kept[i];
		t->places[kept[i].place].subject = i;
	}
	return 0;
}

/* --- places --- */

static void label_of(const struct table *t, uint32_t place, struct buf *labels)
{
	size_t len = strlen(TRUTH_OTHER);
	const char *name = place == OTHER_PLACE ? TRUTH_OTHER : intern_get(t->keys, t->places[place].subject, &len);

	metrics_label(labels, t->names->label, name, len);
}

static void show(struct metrics *metrics, const char *name, struct buf *labels, const char *help, uint64_t value,
		 struct metric **series)
{
	if (value && !*series)
		*series = metrics_counter(metrics, name, buf_text(labels), help);
	metric_set(*series, value);
}

/* Makes the series of a place say what it has counted. */
static void publish(struct table *t, uint32_t index)
{
	AUTO(buf_fini) struct buf labels = BUF_EMPTY;
	struct place *p = &t->places[index];
	size_t len;

	label_of(t, index, &labels);
	len = labels.len;
	show(t->metrics, t->names->frames, &labels, t->names->frames_help, p->sum.frames, &p->frames);
	show(t->metrics, t->names->unnamed, &labels, t->names->unnamed_help, p->sum.unnamed, &p->unnamed);
	for (int end = 0; end < END_MAX; end++) {
		labels.len = len;
		metrics_label(&labels, "end", walk_end_text(end), strlen(walk_end_text(end)));
		show(t->metrics, t->names->stacks, &labels, t->names->stacks_help, p->sum.stacks[end], &p->stacks[end]);
	}
}

static void counts_add(struct counts *sum, const struct counts *more)
{
	for (int end = 0; end < END_MAX; end++)
		sum->stacks[end] += more->stacks[end];
	sum->frames += more->frames;
	sum->unnamed += more->unnamed;
}

/* Takes the place from its subject: its series end, and the series of TRUTH_OTHER take over their values. */
static void vacate(struct table *t, struct place *p)
{
	counts_add(&t->places[OTHER_PLACE].sum, &p->sum);
	for (int end = 0; end < END_MAX; end++)
		metrics_remove(t->metrics, p->stacks[end]);
	metrics_remove(t->metrics, p->frames);
	metrics_remove(t->metrics, p->unnamed);
	if (p->subject != UINT32_MAX)
		t->subjects[p->subject].place = OTHER_PLACE;
	*p = (struct place){ .subject = UINT32_MAX };
}

static bool is_worse(const struct subject *a, const struct subject *b)
{
	return a->truncated != b->truncated ? a->truncated > b->truncated : a->unnamed > b->unnamed;
}

/* The place for @s: a free one, else that of the best subject shown if @s is worse; OTHER_PLACE when none. */
static uint32_t place_for(const struct table *t, const struct subject *s)
{
	uint32_t best = 0;

	for (uint32_t i = 0; i < TRUTH_SHOWN; i++) {
		if (t->places[i].subject == UINT32_MAX)
			return i;
		if (is_worse(&t->subjects[t->places[best].subject], &t->subjects[t->places[i].subject]))
			best = i;
	}
	return is_worse(s, &t->subjects[t->places[best].subject]) ? best : OTHER_PLACE;
}

/* --- an interval --- */

static void rank(struct subject *s)
{
	for (int end = 0; end < END_MAX; end++)
		s->truncated += walk_end_is_truncated(end) ? s->now.stacks[end] : 0;
	s->unnamed += s->now.unnamed;
}

static void close_interval(struct table *t)
{
	uint32_t count = intern_count(t->keys);

	for (uint32_t i = 0; i < count; i++)
		rank(&t->subjects[i]);
	for (uint32_t i = 0; i < count; i++) {
		struct subject *s = &t->subjects[i];
		uint32_t place = s->place == OTHER_PLACE ? place_for(t, s) : s->place;

		if (place != s->place) {
			vacate(t, &t->places[place]);
			t->places[place].subject = i;
			s->place = place;
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		counts_add(&t->places[t->subjects[i].place].sum, &t->subjects[i].now);
		t->subjects[i].now = (struct counts){ 0 };
	}
	for (uint32_t i = 0; i <= TRUTH_SHOWN; i++)
		if (i == OTHER_PLACE || t->places[i].subject != UINT32_MAX)
			publish(t, i);
	if (count >= MAX_SUBJECTS)
		(void)forget_unshown(t); /* else the next interval tries again */
}

static struct counts *counts_of(struct table *t, uint32_t subject)
{
	return subject == UINT32_MAX ? &t->places[OTHER_PLACE].sum : &t->subjects[subject].now;
}

static void add_stack(struct truth_counts *c, const struct traces *t, const struct trace *trace,
		      const struct truth_frame *frames, struct truth_stack *s)
{
	const uint32_t *ids = traces_frame_ids(t, trace);
	const struct truth_frame *last = NULL; /* where the walk ended */

	for (uint32_t i = 0; i < trace->frame_cnt; i++) {
		const struct truth_frame *frame = &frames[ids[i]];
		struct counts *module = counts_of(&c->modules, frame->module);

		module->frames += s->events;
		module->unnamed += frame->is_named ? 0 : s->events;
		if (!trace_frame_kind(traces_frame(t, ids[i]))->is_user)
			continue;
		s->frames++;
		s->unnamed += !frame->is_named;
		last = frame;
	}
	if (walk_end_has_stack(trace->end))
		counts_of(&c->modules, last ? last->module : truth_counts_module(c, STR("[no frame]")))
			->stacks[trace->end] += s->events;
}

static void add_event(struct truth_counts *c, const struct trace_event *e, const struct trace *trace,
		      const struct truth_stack *s)
{
	struct counts *counts;

	if (!walk_end_has_stack(trace->end))
		return;
	counts = counts_of(&c->executables, find_or_add(&c->executables, process_name(e->process)));
	counts->stacks[trace->end]++;
	counts->frames += s->frames;
	counts->unnamed += s->unnamed;
}

uint32_t truth_counts_module(struct truth_counts *c, struct str name)
{
	return find_or_add(&c->modules, name);
}

void truth_counts_add(struct truth_counts *c, const struct traces *t, const struct truth_frame *frames,
		      struct truth_stack *stacks)
{
	uint32_t stack_cnt = traces_count(t), event_cnt = traces_event_count(t);
	const struct trace_event *events = traces_events(t);

	for (uint32_t i = 0; i < event_cnt; i++)
		stacks[events[i].trace].events++;
	for (uint32_t i = 0; i < stack_cnt; i++)
		add_stack(c, t, traces_get(t, i), frames, &stacks[i]);
	for (uint32_t i = 0; i < event_cnt; i++)
		add_event(c, &events[i], traces_get(t, events[i].trace), &stacks[events[i].trace]);
	close_interval(&c->executables);
	close_interval(&c->modules);
}

/* --- life --- */

int truth_counts_new(struct metrics *metrics, struct truth_counts **ret)
{
	struct truth_counts *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (table_init(&c->executables, &executable_names, metrics) || table_init(&c->modules, &module_names, metrics)) {
		truth_counts_free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

void truth_counts_free(struct truth_counts *c)
{
	if (!c)
		return;
	table_fini(&c->executables);
	table_fini(&c->modules);
	free(c);
}

static size_t table_memory_bytes(const struct table *t)
{
	return intern_memory_bytes(t->keys) + t->cap * sizeof(*t->subjects);
}

size_t truth_counts_memory_bytes(const struct truth_counts *c)
{
	return sizeof(*c) + table_memory_bytes(&c->executables) + table_memory_bytes(&c->modules);
}
