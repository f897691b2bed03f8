/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a timeline as speedscope reads it: frames once, then for each thread its stacks, root first, with their weights. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "proto/formats/formats.h"
#include "proto/sums/timeline.h"

struct section { /* of the events: one thread's */
	size_t first, end;
	uint64_t weight;
};

static void write_frames(const struct timeline *t, struct json *j)
{
	AUTO(buf_fini) struct buf name = BUF_EMPTY;

	json_key(j, "shared");
	json_object_begin(j);
	json_key(j, "frames");
	json_array_begin(j);
	for (size_t i = 0; i < t->frame_count; i++) {
		const struct frame *f = &t->frames[i];

		buf_reset(&name);
		stack_frame_print(f, 0, &name);
		j->out->failed |= name.failed;
		json_object_begin(j);
		json_key(j, "name");
		json_string_n(j, (const char *)name.data, name.len);
		if (f->file.len) {
			json_key(j, "file");
			json_string_n(j, f->file.data, f->file.len);
		}
		if (f->line > 0) {
			json_key(j, "line");
			json_i64(j, f->line);
		}
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void write_stack(const struct timeline *t, uint32_t stack, struct json *j)
{
	const struct timeline_stack *s = &t->stacks[stack];

	json_array_begin(j);
	for (uint32_t i = s->count; i > 0; i--)
		json_u64(j, t->frame_ids[s->first + i - 1]);
	json_array_end(j);
}

/* Events with the same stack one after the other are one sample. @fn gets the first of them and their weight. */
static void each_run(const struct timeline *t, const struct section *s, struct json *j,
		     void (*fn)(const struct timeline *t, const struct timeline_event *e, uint64_t weight, struct json *j))
{
	for (size_t i = s->first, next; i < s->end; i = next) {
		uint64_t weight = 0;

		for (next = i; next < s->end && t->events[next].stack == t->events[i].stack; next++)
			weight += t->events[next].weight;
		fn(t, &t->events[i], weight, j);
	}
}

static void run_stack(const struct timeline *t, const struct timeline_event *e, uint64_t weight, struct json *j)
{
	(void)weight;
	write_stack(t, e->stack, j);
}

static void run_weight(const struct timeline *t, const struct timeline_event *e, uint64_t weight, struct json *j)
{
	(void)t;
	(void)e;
	json_u64(j, weight);
}

/* Wall-clock time has no unit here: in a file of hearth's, nanoseconds are CPU time to the reader. */
static const char *unit_of(const struct timeline *t)
{
	return t->is_time ? "nanoseconds" : strcmp(t->sum.unit, "bytes") == 0 ? "bytes" : "none";
}

static void write_thread(const struct timeline *t, const struct section *s, struct json *j)
{
	const struct timeline_thread *thread = &t->threads[t->events[s->first].thread];
	AUTO(buf_fini) struct buf name = BUF_EMPTY;

	buf_append(&name, thread->comm.data, thread->comm.len);
	if (thread->pid >= 0)
		buf_printf(&name, " (pid %" PRId64, thread->pid);
	if (thread->pid >= 0 && thread->tid >= 0 && thread->tid != thread->pid)
		buf_printf(&name, ", tid %" PRId64, thread->tid);
	if (thread->pid >= 0)
		buf_putc(&name, ')');
	json_object_begin(j);
	json_key(j, "type");
	json_string(j, "sampled");
	json_key(j, "name");
	json_string_n(j, (const char *)name.data, name.len);
	j->out->failed |= name.failed;
	json_key(j, "unit");
	json_string(j, unit_of(t));
	json_key(j, "startValue");
	json_u64(j, 0);
	json_key(j, "endValue");
	json_u64(j, s->weight);
	json_key(j, "samples");
	json_array_begin(j);
	each_run(t, s, j, run_stack);
	json_array_end(j);
	json_key(j, "weights");
	json_array_begin(j);
	each_run(t, s, j, run_weight);
	json_array_end(j);
	json_object_end(j);
}

static int heaviest_first(const void *a, const void *b)
{
	const struct section *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

int timeline_write_speedscope(const struct timeline *t, const char *name, struct buf *out)
{
	AUTO_FREE struct section *sections = calloc(t->thread_count ? t->thread_count : 1, sizeof(*sections));
	size_t count = 0;
	struct json j;

	if (!sections)
		return -ENOMEM;
	for (size_t i = 0; i < t->event_count; i++) {
		if (!i || t->events[i].thread != t->events[i - 1].thread)
			sections[count++].first = i;
		sections[count - 1].end = i + 1;
		sections[count - 1].weight += t->events[i].weight;
	}
	qsort(sections, count, sizeof(*sections), heaviest_first);
	json_init(&j, out, 0);
	json_object_begin(&j);
	json_key(&j, "$schema");
	json_string(&j, "https://www.speedscope.app/file-format-schema.json");
	json_key(&j, "exporter");
	json_string(&j, "hearth " HEARTH_VERSION);
	json_key(&j, "name");
	json_string(&j, name);
	json_key(&j, "activeProfileIndex");
	json_u64(&j, 0);
	write_frames(t, &j);
	json_key(&j, "profiles");
	json_array_begin(&j);
	for (size_t i = 0; i < count; i++)
		write_thread(t, &sections[i], &j);
	json_array_end(&j);
	json_object_end(&j);
	return out->failed ? -ENOMEM : 0;
}

static int write_timeline(struct timeline *t, struct buf *out)
{
	return timeline_write_speedscope(t, "hearth", out);
}

static int write_profiles(const struct profiles *p, struct buf *out, struct buf *left_out)
{
	return format_write_timeline(p, write_timeline, "addresses, modules, times and attributes", out, left_out);
}

const struct format format_speedscope = {
	.name = "speedscope",
	.suffixes = { ".speedscope.json" },
	.title = "speedscope",
	.sign = SIGN_KEYS,
	.fits = speedscope_fits,
	.read = speedscope_read,
	.write = write_profiles,
};
