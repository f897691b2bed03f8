/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a timeline as `perf script` prints samples: a line with the thread, then a line a frame, leaf first, then an empty
 * one. (tools/perf/builtin-script.c, tools/perf/util/evsel_fprintf.c; times as with --ns.) Blanks and line ends in names
 * become '_': readers split at them.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/buf.h"
#include "proto/formats/formats.h"
#include "proto/sums/timeline.h"

static void put_text(struct str s, struct buf *out)
{
	for (uint32_t i = 0; i < s.len; i++) {
		uint8_t c = (uint8_t)s.data[i];

		buf_putc(out, c < ' ' || c == 0x7f ? '?' : (char)c);
	}
}

static void put_frame(const struct frame *f, struct buf *out)
{
	buf_printf(out, "\t%16" PRIx64 " ", f->address);
	if (f->function.len)
		put_text(f->function, out);
	else
		buf_puts(out, "[unknown]");
	buf_puts(out, " (");
	if (f->inlined)
		buf_puts(out, "inlined");
	else if (f->module.len)
		put_text(f->module, out);
	else
		buf_puts(out, "[unknown]");
	buf_puts(out, ")\n");
}

static void put_event(const struct timeline *t, const struct timeline_event *e, struct buf *out)
{
	const struct timeline_thread *thread = &t->threads[e->thread];
	const struct timeline_stack *stack = &t->stacks[e->stack];

	put_text(thread->comm.len ? thread->comm : STR(":unknown"), out);
	buf_printf(out, " %6" PRId64 "/%-6" PRId64, thread->pid, thread->tid >= 0 ? thread->tid : thread->pid);
	if (e->cpu >= 0)
		buf_printf(out, " [%03d]", e->cpu);
	buf_printf(out, " %" PRIu64 ".%09" PRIu64 ": %10" PRIu64 " %s:\n", e->time_unix_ns / 1000000000,
		   e->time_unix_ns % 1000000000, e->weight, t->is_time ? "cpu-clock" : t->sum.type);
	for (uint32_t i = 0; i < stack->count; i++)
		put_frame(&t->frames[t->frame_ids[stack->first + i]], out);
	buf_putc(out, '\n');
}

int timeline_write_perf_script(const struct timeline *t, struct buf *out)
{
	for (size_t i = 0; i < t->event_count && !out->failed; i++)
		put_event(t, &t->events[i], out);
	return out->failed ? -ENOMEM : 0;
}

static int write_timeline(struct timeline *t, struct buf *out)
{
	timeline_sort_by_time(t);
	return timeline_write_perf_script(t, out);
}

static int write_profiles(const struct profiles *p, struct buf *out, struct buf *left_out)
{
	return format_write_timeline(p, write_timeline, "lines and attributes", out, left_out);
}

const struct format format_perf_script = {
	.name = "perf-script",
	.suffixes = { ".perf.txt" },
	.title = "perf script",
	.sign = SIGN_LINE,
	.fits = perf_script_fits,
	.read = perf_script_read,
	.write = write_profiles,
};
