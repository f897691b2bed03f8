/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters a walk between the samples and its caller. The patterns are matched once a frame, for a process or thread once for
 * as long as its name stays the same from one sample to the next.
 */
#include "proto/sums/idle_waits.h"
#include "proto/sums/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/hex.h"
#include "base/text/parse.h"
#include "base/text/pattern.h"
#include "base/vec.h"

enum group_by { BY_NOTHING, BY_PROCESS, BY_THREAD, BY_CONTAINER, BY_CPU, BY_COMM, BY_EXE, BY_LABEL };

struct condition {
	bool is_set;
	bool is_number; /* of a process or thread: that id, and not a part of a name */
	uint64_t number;
	struct pattern *pattern; /* owned; NULL where it is a number */
};

struct view {
	struct condition conditions[VIEW_PATTERN_MAX];
	enum group_by by;
	char *label;
	char *kind; /* NULL: any */
};

struct view *view_new(void)
{
	return calloc(1, sizeof(struct view));
}

static void condition_fini(struct condition *c)
{
	pattern_free(c->pattern);
	*c = (struct condition){ 0 };
}

void view_free(struct view *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < VIEW_PATTERN_MAX; i++)
		condition_fini(&v->conditions[i]);
	free(v->label);
	free(v->kind);
	free(v);
}

int view_match(struct view *v, enum view_pattern which, const char *expression, struct buf *error)
{
	struct condition *c = &v->conditions[which];
	struct pattern_error why;
	int err;

	condition_fini(c);
	c->is_number = (which == VIEW_PROCESS || which == VIEW_THREAD) && !parse_u64(expression, &c->number);
	if (!c->is_number) {
		err = pattern_new(expression, 0, &c->pattern, &why);
		if (err == -EINVAL)
			buf_printf(error, "'%s' is no regular expression: %s", expression, why.message);
		if (err)
			return err;
	}
	c->is_set = true;
	return 0;
}

int view_kind(struct view *v, const char *type)
{
	free(v->kind);
	v->kind = type ? strdup(type) : NULL;
	return v->kind || !type ? 0 : -ENOMEM;
}

bool view_gave_up(const struct view *v, enum view_pattern which)
{
	return v->conditions[which].is_set && !v->conditions[which].is_number &&
	       pattern_gave_up(v->conditions[which].pattern);
}

int view_group(struct view *v, const char *by, struct buf *error)
{
	static const char *const names[] = {
		[BY_PROCESS] = "process", [BY_THREAD] = "thread", [BY_CONTAINER] = "container",
		[BY_CPU] = "cpu",	  [BY_COMM] = "comm",	  [BY_EXE] = "exe",
	};

	free(v->label);
	v->label = NULL;
	for (size_t i = BY_PROCESS; i < ARRAY_LEN(names); i++) {
		if (!strcmp(names[i], by)) {
			v->by = (enum group_by)i;
			return 0;
		}
	}
	if (strncmp(by, "label=", 6) || !by[6]) {
		buf_printf(error,
			   "'%s' is nothing to group by; there are process, thread, container, cpu, comm, exe and label=KEY",
			   by);
		return -EINVAL;
	}
	v->by = BY_LABEL;
	v->label = strdup(by + 6);
	return v->label ? 0 : -ENOMEM;
}

bool view_is_grouped(const struct view *v)
{
	return v && v->by != BY_NOTHING;
}

/* --- what is known of a sample --- */

const struct any_value *view_sample_label(const struct stack_sample *s, const char *key)
{
	const struct any_value *value = profiles_find_attribute(s->profiles, &s->sample->attributes, key);

	if (!value)
		value = profiles_find_attribute(s->profiles, &s->profile->attributes, key);
	return value ? value : profiles_find_key(s->profiles, &s->resource->resource.attributes, key);
}

int64_t view_sample_number(const struct stack_sample *s, const char *key)
{
	const struct any_value *value = view_sample_label(s, key);

	return value && value->kind == VALUE_INT ? value->integer : -1;
}

static struct str label_text(const struct stack_sample *s, const char *key)
{
	return profiles_value_text(s->profiles, view_sample_label(s, key));
}

static struct str process_name(const struct stack_sample *s)
{
	struct str name = label_text(s, "process.executable.name");

	return name.len ? name : s->comm;
}

/* --- one walk --- */

enum { FRAME_SEEN = 1, FRAME_IN_FOCUS = 2, FRAME_IGNORED = 4, FRAME_HIDDEN = 8, FRAME_IDLE = 16 };

/* The last name a pattern was tried on; names lie still while their profiles do. */
struct verdict {
	struct str name;
	bool matches;
};

struct walk {
	const struct view *v;
	int (*fn)(void *arg, const struct stack_sample *s);
	void *arg;
	uint8_t *frames; /* by id */
	uint32_t *shown; /* ids */
	size_t shown_cap;
	struct verdict verdicts[VIEW_PATTERN_MAX], of_exe; /* of_exe: --comm on the name of the process */
	struct buf text;
};

static bool matches(const struct condition *c, struct str text)
{
	return pattern_matches(c->pattern, text.data, text.len);
}

static bool judge(struct verdict *last, const struct condition *condition, struct str name)
{
	if (last->name.data != name.data || last->name.len != name.len)
		*last = (struct verdict){ name, matches(condition, name) };
	return last->matches;
}

static bool is_named(struct walk *w, enum view_pattern which, struct str name, int64_t number)
{
	const struct condition *condition = &w->v->conditions[which];

	if (!condition->is_set)
		return true;
	if (condition->is_number)
		return number >= 0 && (uint64_t)number == condition->number;
	return judge(&w->verdicts[which], condition, name);
}

static uint8_t judge_frame(struct walk *w, const struct frame *f)
{
	static const struct {
		enum view_pattern pattern;
		uint8_t bit;
	} all[] = { { VIEW_FOCUS, FRAME_IN_FOCUS },
		    { VIEW_IGNORE, FRAME_IGNORED },
		    { VIEW_HIDE, FRAME_HIDDEN },
		    { VIEW_IDLE, FRAME_IDLE } };
	uint8_t *known = &w->frames[f->id];

	if (*known)
		return *known;
	*known = FRAME_SEEN;
	buf_reset(&w->text);
	stack_frame_print(f, 0, &w->text);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		const struct condition *pattern = &w->v->conditions[all[i].pattern];
		struct str name = { buf_text(&w->text), (uint32_t)w->text.len };

		if (pattern->is_set && (matches(pattern, name) || matches(pattern, f->module)))
			*known |= all[i].bit;
	}
	return *known;
}

/* Whether the frames let @s, which @is_wait, pass; takes the hidden ones out of it. -ENOMEM. */
static int filter_frames(struct walk *w, struct stack_sample *s, bool is_wait)
{
	uint8_t seen = 0;
	uint32_t count = 0;

	if (vec_reserve(&w->shown, &w->shown_cap, s->frame_count))
		return -ENOMEM;
	for (uint32_t i = 0; i < s->frame_count; i++) {
		uint8_t verdict = judge_frame(w, stack_frame(s, i));

		seen |= verdict;
		if (!(verdict & FRAME_HIDDEN))
			w->shown[count++] = s->frame_ids[i];
	}
	if (w->text.failed)
		return -ENOMEM;
	s->frame_ids = w->shown;
	s->frame_count = count;
	if (is_wait && seen & FRAME_IDLE)
		return 0;
	return !(seen & FRAME_IGNORED) && (seen & FRAME_IN_FOCUS || !w->v->conditions[VIEW_FOCUS].is_set);
}

/* Trace and span of a sample are its link, and can be asked for as labels. */
static void print_link(const struct stack_sample *s, const char *key, struct buf *out)
{
	const struct profile_link *link = &s->profiles->dict.links[s->sample->link_index];
	struct str id = STR("");
	char text[33];

	if (!strcmp(key, "trace_id"))
		id = link->trace_id;
	else if (!strcmp(key, "span_id"))
		id = link->span_id;
	if (!id.len || id.len > 16)
		return;
	hex_encode(text, (const uint8_t *)id.data, id.len);
	buf_puts(out, text);
}

static void print_label(const struct stack_sample *s, const char *key, struct buf *out)
{
	const struct any_value *value = view_sample_label(s, key);
	struct str text;

	if (value && profiles_value_string(s->profiles, value, &text))
		buf_append(out, text.data, text.len);
	else if (value && value->kind == VALUE_INT)
		buf_printf(out, "%" PRId64, value->integer);
	else if (value && value->kind == VALUE_DOUBLE)
		buf_printf(out, "%g", value->real);
	else if (value && value->kind == VALUE_BOOL)
		buf_puts(out, value->boolean ? "true" : "false");
	else if (!value)
		print_link(s, key, out);
	if (!out->len)
		buf_printf(out, "[no %s]", key);
}

static void print_with_id(struct str name, int64_t id, struct buf *out)
{
	if (name.len)
		buf_append(out, name.data, name.len);
	else
		buf_puts(out, "[unknown]");
	if (id >= 0)
		buf_printf(out, " (%" PRId64 ")", id);
}

static void print_group(const struct view *v, const struct stack_sample *s, struct buf *out)
{
	int64_t cpu;

	buf_reset(out);
	switch (v->by) {
	case BY_NOTHING:
		break;
	case BY_PROCESS:
		print_with_id(process_name(s), s->pid, out);
		break;
	case BY_THREAD:
		print_with_id(s->comm, view_sample_number(s, "thread.id"), out);
		break;
	case BY_CONTAINER:
		print_label(s, view_sample_label(s, "container.name") ? "container.name" : "container.id", out);
		break;
	case BY_CPU:
		cpu = view_sample_number(s, "cpu.logical_number");
		buf_printf(out, cpu < 0 ? "[no cpu]" : "CPU %" PRId64, cpu);
		break;
	case BY_COMM:
		print_with_id(s->comm, -1, out);
		break;
	case BY_EXE:
		print_with_id(process_name(s), -1, out);
		break;
	case BY_LABEL:
		print_label(s, v->label, out);
		break;
	}
}

/* Is @s of the kind that is wanted? Makes it one of wall time if that is. */
static bool is_of_kind(const char *wanted, struct stack_sample *s)
{
	static const struct sample_kind wall = { .type = { VIEW_WALL, sizeof(VIEW_WALL) - 1 }, .unit = STR("nanoseconds") };

	if (!wanted || str_is(s->kind->type, wanted))
		return true;
	if (strcmp(wanted, VIEW_WALL) != 0)
		return false;
	if (s->kind->cpu_ns)
		s->weight *= s->kind->cpu_ns;
	else if (!str_is(s->kind->type, "off_cpu") && !str_is(s->kind->type, "runnable"))
		return false;
	s->kind = &wall;
	return true;
}

static int take(void *arg, const struct stack_sample *sample)
{
	struct walk *w = arg;
	const struct condition *conditions = w->v->conditions;
	struct stack_sample s = *sample;
	int passes;

	if (!is_of_kind(w->v->kind, &s))
		return 0;
	if (conditions[VIEW_PROCESS].is_set && !is_named(w, VIEW_PROCESS, process_name(&s), s.pid))
		return 0;
	if (!is_named(w, VIEW_COMM, s.comm, -1) && !judge(&w->of_exe, &conditions[VIEW_COMM], process_name(&s)))
		return 0;
	if (conditions[VIEW_THREAD].is_set && !is_named(w, VIEW_THREAD, s.comm, view_sample_number(&s, "thread.id")))
		return 0;
	if (w->frames) {
		passes = filter_frames(w, &s, idle_waits_are_in(sample->kind->type));
		if (passes <= 0)
			return passes;
	}
	if (w->v->by != BY_NOTHING) {
		print_group(w->v, &s, &w->text);
		s.group = (struct str){ buf_text(&w->text), (uint32_t)w->text.len };
		if (w->text.failed)
			return -ENOMEM;
	}
	return w->fn(w->arg, &s);
}

typedef int each_fn(const struct profiles *p, int (*fn)(void *arg, const struct stack_sample *s), void *arg);

static bool judges_frames(const struct view *v)
{
	return v->conditions[VIEW_FOCUS].is_set || v->conditions[VIEW_IGNORE].is_set || v->conditions[VIEW_HIDE].is_set ||
	       v->conditions[VIEW_IDLE].is_set;
}

/* Looks at what samples of one stack can differ in. */
static bool judges_samples(const struct view *v)
{
	return v->conditions[VIEW_PROCESS].is_set || v->conditions[VIEW_COMM].is_set || v->conditions[VIEW_THREAD].is_set ||
	       v->by != BY_NOTHING;
}

static int each(const struct view *v, const struct profiles *p, each_fn *walk,
		int (*fn)(void *arg, const struct stack_sample *s), void *arg)
{
	struct walk w = { .v = v, .fn = fn, .arg = arg };
	int err = 0;

	if (!v || (!v->kind && !judges_frames(v) && !judges_samples(v)))
		return walk(p, fn, arg);
	if (judges_frames(v)) {
		w.frames = calloc(stack_walk_frame_count(p) + 1, 1);
		err = w.frames ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < VIEW_PATTERN_MAX; i++)
		w.verdicts[i].name = (struct str){ NULL, 0 };
	if (!err)
		err = walk(p, take, &w);
	free(w.frames);
	free(w.shown);
	buf_fini(&w.text);
	return err;
}

int view_each_stack(const struct view *v, const struct profiles *p, int (*fn)(void *arg, const struct stack_sample *s),
		    void *arg)
{
	return each(v, p, stack_walk_each, fn, arg);
}

int view_each_sum(const struct view *v, const struct profiles *p, int (*fn)(void *arg, const struct stack_sample *s),
		  void *arg)
{
	return each(v, p, v && judges_samples(v) ? stack_walk_each : stack_walk_each_sum, fn, arg);
}
