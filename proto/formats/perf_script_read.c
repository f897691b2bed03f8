/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the text of `perf script` (tools/perf/builtin-script.c), with the fields that it prints by default, with pids,
 * periods and source lines: an event's line "comm pid/tid [cpu] time: period event:", then a frame a line, leaf first, then
 * an empty line; without call chains the one frame stands in the event's line. It is read twice: an event whose periods are
 * all equal is sampled at that period, which must be known before its first sample is added. Times are perf's clock,
 * whatever that is.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "proto/formats/formats.h"
#include "proto/stack_maker.h"

enum { MAX_KINDS = 64, MAX_NAME_BYTES = 128 };

/* The fields in the line of an event. */
struct event_line {
	struct str comm, event, rest;
	int64_t pid, tid, cpu, period; /* -1: not said */
	uint64_t time_ns;
};

/* One kind of event, and how its samples are counted. */
struct kind {
	char name[MAX_NAME_BYTES]; /* without modifiers */
	int64_t period;		   /* of the first one; -1: none is said */
	bool varies;
	bool has_values;
	struct builder_profile_spec spec;
};

struct reader {
	struct builder *b; /* NULL in the first pass */
	struct stack_maker maker;
	struct kind kinds[MAX_KINDS];
	uint32_t kind_count;
	uint64_t line;
	uint64_t first_ns, last_ns;
	bool in_event;
	struct event_line event;
	struct kind *kind;
	struct frame_said frame; /* the last one: its source line may follow */
	bool has_frame;
};

/* --- words --- */

/* The word that ends before @end, in [@start, @end); "" when there is none. */
static struct str word_before(const char *start, const char *end)
{
	const char *at;

	while (end > start && isspace((unsigned char)end[-1]))
		end--;
	for (at = end; at > start && !isspace((unsigned char)at[-1]); at--)
		;
	return (struct str){ at, (uint32_t)(end - at) };
}

static struct str word_after(const char *at, const char *end)
{
	const char *stop;

	while (at < end && isspace((unsigned char)*at))
		at++;
	for (stop = at; stop < end && !isspace((unsigned char)*stop); stop++)
		;
	return (struct str){ at, (uint32_t)(stop - at) };
}

/* "123" or "-1". */
static bool read_signed(struct str s, int64_t *ret)
{
	if (str_is(s, "-1")) {
		*ret = -1;
		return true;
	}
	return read_number(s, ret);
}

/* "12.345678:" or with nanoseconds. */
static bool read_time(struct str s, uint64_t *ret)
{
	const char *dot = memchr(s.data, '.', s.len);
	int64_t seconds, fraction;
	struct str digits;

	if (!dot || s.len < 4 || s.data[s.len - 1] != ':')
		return false;
	digits = (struct str){ dot + 1, (uint32_t)(s.data + s.len - 1 - (dot + 1)) };
	if (!read_number((struct str){ s.data, (uint32_t)(dot - s.data) }, &seconds) || !digits.len || digits.len > 9 ||
	    !read_number(digits, &fraction) || seconds > INT64_MAX / 2000000000)
		return false;
	for (uint32_t i = digits.len; i < 9; i++)
		fraction *= 10;
	*ret = (uint64_t)seconds * 1000000000 + (uint64_t)fraction;
	return true;
}

/* "12/34", or "34": a thread. */
static bool read_ids(struct str s, int64_t *pid, int64_t *tid)
{
	const char *slash = memchr(s.data, '/', s.len);

	*pid = -1;
	if (!slash)
		return read_signed(s, tid);
	return read_signed((struct str){ s.data, (uint32_t)(slash - s.data) }, pid) &&
	       read_signed((struct str){ slash + 1, (uint32_t)(s.data + s.len - slash - 1) }, tid);
}

static bool read_cpu(struct str s, int64_t *ret)
{
	return s.len > 2 && s.data[0] == '[' && s.data[s.len - 1] == ']' &&
	       read_number((struct str){ s.data + 1, s.len - 2 }, ret);
}

/* Reads the fields before the time. */
static bool read_who(const char *start, const char *end, struct event_line *e)
{
	struct str word = word_before(start, end);

	e->cpu = -1;
	if (read_cpu(word, &e->cpu))
		word = word_before(start, word.data);
	if (!word.len || !read_ids(word, &e->pid, &e->tid))
		return false;
	e->comm = read_trimmed((struct str){ start, (uint32_t)(word.data - start) });
	return true;
}

static bool read_event_line(struct str line, struct event_line *e)
{
	const char *end = line.data + line.len;
	struct str word = word_after(line.data, end);

	for (; word.len; word = word_after(word.data + word.len, end)) {
		if (read_time(word, &e->time_ns) && read_who(line.data, word.data, e))
			break;
	}
	if (!word.len)
		return false;
	word = word_after(word.data + word.len, end);
	e->period = -1;
	if (read_number(word, &e->period))
		word = word_after(word.data + word.len, end);
	if (!word.len || word.data[word.len - 1] != ':')
		return false;
	e->event = (struct str){ word.data, word.len - 1 };
	e->rest = read_trimmed((struct str){ word.data + word.len, (uint32_t)(end - word.data - word.len) });
	return true;
}

/* --- frames --- */

/* "name+0x12" without the offset. */
static struct str without_offset(struct str name)
{
	uint32_t at = name.len;

	while (at && isxdigit((unsigned char)name.data[at - 1]))
		at--;
	if (at > 3 && at < name.len && !memcmp(name.data + at - 3, "+0x", 3))
		name.len = at - 3;
	return name;
}

/* Splits "name (module)" at the module's parenthesis, which may itself say "(deleted)". */
static void split_module(struct str text, struct str *name, struct str *module)
{
	uint32_t depth = 0;

	*name = text;
	*module = STR("");
	if (!text.len || text.data[text.len - 1] != ')')
		return;
	for (uint32_t i = text.len; i > 0; i--) {
		depth += text.data[i - 1] == ')';
		depth -= text.data[i - 1] == '(';
		if (depth || (i > 1 && text.data[i - 2] != ' '))
			continue;
		*module = (struct str){ text.data + i, text.len - i - 1 };
		*name = read_trimmed((struct str){ text.data, i - 1 });
		return;
	}
}

/* "7f12 name+0x3 (module)", without blanks around it. */
static bool read_frame(struct str text, struct frame_said *f)
{
	struct str word = word_after(text.data, text.data + text.len), name, module;
	char hex[20], *end;

	if (!word.len || word.len > 16)
		return false;
	memcpy(hex, word.data, word.len);
	hex[word.len] = '\0';
	if (!isxdigit((unsigned char)hex[0]))
		return false;
	*f = FRAME_SAID_NOTHING;
	f->address = strtoull(hex, &end, 16);
	if (*end)
		return false;
	split_module(
		read_trimmed((struct str){ word.data + word.len, text.len - (uint32_t)(word.data + word.len - text.data) }),
		&name, &module);
	f->inlined = str_is(module, "inlined");
	if (!f->inlined && !str_is(module, "[unknown]"))
		f->module = module;
	if (!str_is(name, "[unknown]"))
		f->function = without_offset(name);
	return true;
}

/* "file.c:12" of the frame before it. */
static void read_source(struct reader *r, struct str text)
{
	const char *colon = text.len ? memrchr(text.data, ':', text.len) : NULL;
	int64_t line;

	if (!r->has_frame || !colon || r->frame.file.len ||
	    !read_number((struct str){ colon + 1, (uint32_t)(text.data + text.len - colon - 1) }, &line))
		return;
	r->frame.file = (struct str){ text.data, (uint32_t)(colon - text.data) };
	r->frame.line = line;
}

static void put_frame(struct reader *r)
{
	if (r->has_frame && r->b)
		stack_maker_add(&r->maker, &r->frame);
	r->has_frame = false;
}

/* --- events --- */

static struct kind *kind_of(struct reader *r, const struct event_line *e)
{
	struct str name = e->event;
	const char *modifiers = name.len ? memrchr(name.data, ':', name.len) : NULL;
	struct kind *k;

	/* "cycles:ppp", but not "sched:sched_switch" */
	if (modifiers && strspn(modifiers + 1, "ukhpPGHIDSWeb") >= (size_t)(name.data + name.len - modifiers - 1))
		name.len = (uint32_t)(modifiers - name.data);
	if (name.len >= MAX_NAME_BYTES)
		name.len = MAX_NAME_BYTES - 1;
	name.len = (uint32_t)strnlen(name.data, name.len); /* it is kept as a string */
	for (uint32_t i = 0; i < r->kind_count; i++) {
		if (str_is(name, r->kinds[i].name))
			return &r->kinds[i];
	}
	if (r->kind_count == MAX_KINDS)
		return NULL;
	k = &r->kinds[r->kind_count++];
	memcpy(k->name, name.data, name.len);
	k->period = e->period;
	return k;
}

/* After the first pass: what a sample of @k is counted in. */
static void settle(struct kind *k)
{
	bool is_clock = !strcmp(k->name, "cpu-clock") || !strcmp(k->name, "task-clock");

	k->spec = (struct builder_profile_spec){ .scope_name = "hearth",
						 .scope_version = HEARTH_VERSION,
						 .sample_type = k->name,
						 .sample_unit = strcmp(k->name, "off_cpu") ? "count" : "nanoseconds",
						 .period_type = "",
						 .period_unit = "" };
	k->has_values = k->period > 1 || k->varies;
	if (is_clock && k->has_values && k->varies) {
		k->spec.sample_type = "cpu";
		k->spec.sample_unit = "nanoseconds";
	} else if (is_clock) {
		k->spec.sample_type = "samples";
		k->spec.period_type = k->period > 0 ? "cpu" : "";
		k->spec.period_unit = k->period > 0 ? "nanoseconds" : "";
		k->spec.period = k->period > 0 ? k->period : 0;
		k->has_values = false;
	}
}

static void end_event(struct reader *r)
{
	const struct event_line *e = &r->event;
	int32_t attributes[3];
	struct key_value pid = { .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = e->pid } };
	uint32_t count = 0, resource;

	put_frame(r);
	r->in_event = false;
	if (!r->b)
		return;
	resource = builder_resource(r->b, &pid, e->pid >= 0);
	if (e->comm.len)
		attributes[count++] = builder_attribute_string(r->b, "thread.name", e->comm);
	if (e->tid >= 0)
		attributes[count++] = builder_attribute_int(r->b, "thread.id", e->tid);
	if (e->cpu >= 0)
		attributes[count++] = builder_attribute_int(r->b, "cpu.logical_number", e->cpu);
	builder_event(r->b, builder_profile(r->b, resource, &r->kind->spec), stack_maker_end(&r->maker), attributes, count,
		      0, e->time_ns, r->kind->has_values, e->period < 0 ? 1 : e->period);
}

static int begin_event(struct reader *r, struct otlp_error *error)
{
	struct frame_said only;

	r->in_event = true;
	r->first_ns = r->event.time_ns < r->first_ns ? r->event.time_ns : r->first_ns;
	r->last_ns = r->event.time_ns > r->last_ns ? r->event.time_ns : r->last_ns;
	r->kind = kind_of(r, &r->event);
	if (!r->kind)
		return read_fail(error, "line %" PRIu64 ": more than %d kinds of events", r->line, MAX_KINDS);
	r->kind->varies |= r->kind->period != r->event.period;
	if (r->event.rest.len && read_frame(r->event.rest, &only)) {
		r->frame = only;
		r->has_frame = true;
	}
	return 0;
}

static int take_line(struct reader *r, struct str line, struct otlp_error *error)
{
	struct str text = read_trimmed(line);
	struct event_line event;
	struct frame_said f;

	if (!text.len && r->in_event)
		end_event(r);
	if (!text.len || line.data[0] == '#')
		return 0;
	if (line.data[0] != '\t' && read_event_line(line, &event)) {
		if (r->in_event)
			end_event(r); /* without call chains no empty line stands between events */
		r->event = event;
		return begin_event(r, error);
	}
	if (!r->in_event)
		return read_fail(error, "line %" PRIu64 " is not the line of an event as perf script prints it", r->line);
	if (read_frame(text, &f)) {
		put_frame(r);
		r->frame = f;
		r->has_frame = true;
	} else {
		read_source(r, text); /* or a field that we have no use for */
	}
	return 0;
}

static int pass(struct reader *r, const uint8_t *data, size_t len, struct otlp_error *error)
{
	struct read_lines lines = { .at = (const char *)data, .end = (const char *)data + len };
	struct str line;
	int err = 0;

	while (!err && read_line(&lines, &line)) {
		r->line = lines.number;
		err = take_line(r, line, error);
	}
	if (!err && r->in_event)
		end_event(r);
	return err;
}

bool perf_script_fits(const uint8_t *data, size_t len)
{
	struct read_lines lines = { .at = (const char *)data, .end = (const char *)data + len };
	struct event_line e;
	struct str line;

	while (read_line(&lines, &line)) {
		if (read_trimmed(line).len && line.data[0] != '#')
			return read_event_line(line, &e);
	}
	return false;
}

int perf_script_read(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *error)
{
	AUTO_FREE struct reader *r = calloc(1, sizeof(*r));
	bool failed;
	int err;

	if (!r)
		return -ENOMEM;
	r->first_ns = UINT64_MAX;
	err = pass(r, data, len, error);
	if (err)
		return err;
	for (uint32_t i = 0; i < r->kind_count; i++)
		settle(&r->kinds[i]);
	r->b = builder_new();
	if (!r->b)
		return -ENOMEM;
	stack_maker_init(&r->maker, r->b);
	pass(r, data, len, error);
	failed = stack_maker_failed(&r->maker);
	stack_maker_fini(&r->maker);
	return read_freeze(r->b, failed, r->kind_count ? r->first_ns : 0, r->kind_count ? r->last_ns + 1 : 0, ret);
}
