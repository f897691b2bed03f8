/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the tables of processes and of threads, and the timeline: a line of bars for each of them, drawn to its own peak,
 * which stands beside it, so that also what is quiet can be seen.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/report/report.h"
#include "proto/text.h"

enum { NAME_COLUMNS = 24, NAME_MIN_COLUMNS = 8, BARS = 60, BARS_MIN = 10, MAX_BARS = ACTIVITY_SLOTS };

struct table {
	const struct report_style *style;
	const struct weight_sum *sum;
	struct activity_time time;
	enum activity_rows kind;
	bool with_course;
	uint64_t start_unix_ns; /* of the first event */
	unsigned number, pid, name, bars;
};

static unsigned columns_of_number(int64_t n)
{
	unsigned columns = 1;

	for (; n >= 10; n /= 10)
		columns++;
	return columns;
}

static unsigned at_least(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/* --- the course --- */

/* The slots of @row summed up into the bars of a line; the length of one in ns. */
static double make_bars(const struct table *t, const struct activity_row *row, double bars[static MAX_BARS])
{
	double slots_of_bar = (double)t->time.slot_count / t->bars;

	memset(bars, 0, MAX_BARS * sizeof(*bars));
	for (uint32_t i = 0; i < t->time.slot_count; i++) {
		double at = i / slots_of_bar, end = (i + 1) / slots_of_bar;

		/* A slot that lies across bars is shared out between them. */
		while (at < end) {
			unsigned bar = (unsigned)at;
			double until = bar + 1 < end ? bar + 1 : end;

			if (bar < t->bars)
				bars[bar] += (double)row->slots[i] * (until - at) * slots_of_bar;
			if (until <= at)
				break;
			at = until;
		}
	}
	return slots_of_bar * (double)t->time.slot_ns;
}

static void print_course(const struct table *t, const struct activity_row *row, struct buf *out)
{
	static const char *const heights[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	double bars[MAX_BARS], bar_ns = make_bars(t, row, bars), peak = 0;

	for (unsigned i = 0; i < t->bars; i++)
		peak = bars[i] > peak ? bars[i] : peak;
	if (stack_sum_ns(t->sum))
		buf_printf(out, "%6.2f  ", peak * (double)stack_sum_ns(t->sum) / (double)t->sum->weight / bar_ns);
	else
		buf_printf(out, "%6.0f  ", peak);
	text_tone(out, t->style->colour, TONE_KERNEL);
	for (unsigned i = 0; i < t->bars; i++) {
		double part = peak > 0 ? bars[i] / peak * 8 : 0;

		buf_puts(out, heights[bars[i] > 0 && part < 1 ? 1 : (unsigned)(part + 0.5)]);
	}
	text_tone(out, t->style->colour, TONE_PLAIN);
}

/* --- rows --- */

static void print_id(const struct table *t, int64_t id, struct buf *out)
{
	if (id < 0)
		buf_printf(out, "%*s  ", (int)t->pid, "-");
	else
		buf_printf(out, "%*" PRId64 "  ", (int)t->pid, id);
}

static void print_row(const struct table *t, const struct activity_row *row, struct buf *out)
{
	AUTO(buf_fini) struct buf weight = BUF_EMPTY;
	double percent = text_percent(row->weight, t->sum->weight);
	bool colour = t->style->colour && text_heat(percent) != TONE_PLAIN;

	text_tone(out, colour, text_heat(percent));
	buf_printf(out, "%6.2f%%", percent);
	text_tone(out, colour, TONE_PLAIN);
	report_weight(t->sum, row->weight, &weight);
	buf_printf(out, "  %*s  ", (int)t->number, buf_text(&weight));
	out->failed |= weight.failed;
	if (t->kind != ACTIVITY_GROUPS)
		print_id(t, row->pid, out);
	if (t->kind == ACTIVITY_THREADS)
		print_id(t, row->tid, out);
	if (t->with_course) {
		text_padded(out, row->name, t->name);
		buf_puts(out, "  ");
		print_course(t, row, out);
	} else {
		if (t->kind == ACTIVITY_PROCESSES)
			buf_printf(out, "%7" PRIu32 "  ", row->threads);
		buf_printf(out, "%8.3f  %8.3f  ", (double)(row->first_unix_ns - t->start_unix_ns) / NSEC_PER_SEC,
			   (double)(row->last_unix_ns - t->start_unix_ns) / NSEC_PER_SEC);
		if (t->kind == ACTIVITY_THREADS) {
			text_padded(out, row->name, t->name);
			buf_puts(out, "  ");
			text_name(out, row->process, t->style->columns ? t->name : 0);
		} else {
			text_name(out, row->name, t->name);
		}
	}
	while (out->len && out->data[out->len - 1] == ' ')
		out->len--;
	buf_putc(out, '\n');
}

static void print_heading(const struct table *t, struct buf *out)
{
	static const char *const names[] = {
		[ACTIVITY_PROCESSES] = "PROCESS", [ACTIVITY_THREADS] = "THREAD", [ACTIVITY_GROUPS] = "GROUP"
	};

	buf_putc(out, '\n');
	text_tone(out, t->style->colour, TONE_HEAD);
	buf_printf(out, "      %%  %*s  ", (int)t->number,
		   t->sum->cpu_ns	  ? "CPU s"
		   : stack_sum_ns(t->sum) ? "TIME s"
					  : "WEIGHT");
	if (t->kind != ACTIVITY_GROUPS)
		buf_printf(out, "%*s  ", (int)t->pid, "PID");
	if (t->kind == ACTIVITY_THREADS)
		buf_printf(out, "%*s  ", (int)t->pid, "TID");
	if (t->with_course) {
		buf_printf(out, "%-*s  %6s  ", (int)t->name, names[t->kind], t->sum->cpu_ns ? "CPUS" : "PEAK");
		text_duration(out, t->time.slot_ns * t->time.slot_count);
	} else {
		buf_printf(out, "%s%8s  %8s  ", t->kind == ACTIVITY_PROCESSES ? "THREADS  " : "", "FIRST s", "LAST s");
		if (t->kind == ACTIVITY_THREADS)
			buf_printf(out, "%-*s  PROCESS", (int)t->name, names[t->kind]);
		else
			buf_puts(out, names[t->kind]);
	}
	text_tone(out, t->style->colour, TONE_PLAIN);
	buf_putc(out, '\n');
}

static void lay_out(struct table *t, const struct activity_row *const *rows, uint32_t count)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	unsigned columns = t->style->columns, before, widest = NAME_MIN_COLUMNS;

	report_weight(t->sum, t->sum->weight, &text);
	t->number = at_least(6, (unsigned)text.len);
	t->pid = 3;
	t->start_unix_ns = UINT64_MAX;
	for (uint32_t i = 0; i < count; i++) {
		t->pid = at_least(t->pid, at_least(columns_of_number(rows[i]->pid), columns_of_number(rows[i]->tid)));
		widest = at_least(widest, text_columns(rows[i]->name));
		if (rows[i]->first_unix_ns < t->start_unix_ns)
			t->start_unix_ns = rows[i]->first_unix_ns;
	}
	before = 7 + 2 + t->number + 2;
	before += (t->kind == ACTIVITY_GROUPS ? 0 : t->pid + 2) + (t->kind == ACTIVITY_THREADS ? t->pid + 2 : 0);
	if (t->with_course) {
		t->name = widest < NAME_COLUMNS ? widest : NAME_COLUMNS;
		before += t->name + 2 + 8;
		t->bars = !columns ? BARS : columns > before + BARS_MIN ? columns - before : BARS_MIN;
		t->bars = t->bars < MAX_BARS ? t->bars : MAX_BARS;
		return;
	}
	before += 20 + (t->kind == ACTIVITY_PROCESSES ? 9 : 0);
	t->name = columns > before + NAME_MIN_COLUMNS ? columns - before : columns ? NAME_MIN_COLUMNS : 0;
	if (t->kind == ACTIVITY_THREADS) {
		unsigned half = columns ? at_least((t->name - 2) / 2, NAME_MIN_COLUMNS) : widest;

		t->name = widest < half ? widest : half;
	}
}

int report_activity(struct activity *a, bool with_course, const struct report_style *style, struct buf *out)
{
	struct table t = {
		.style = style,
		.sum = activity_sum(a),
		.time = activity_time(a),
		.kind = activity_kind(a),
		.with_course = with_course,
	};
	uint32_t count, shown;
	const struct activity_row *const *all = activity_rows(a, &count);
	uint64_t rest = 0;

	if (!all)
		return -ENOMEM;
	report_sum(t.sum, out);
	buf_putc(out, '\n');
	shown = style->max_rows && style->max_rows < count ? style->max_rows : count;
	lay_out(&t, all, shown);
	if (count)
		print_heading(&t, out);
	for (uint32_t i = 0; i < shown; i++)
		print_row(&t, all[i], out);
	for (uint32_t i = shown; i < count; i++)
		rest += all[i]->weight;
	if (shown < count) {
		AUTO(buf_fini) struct buf weight = BUF_EMPTY;

		report_weight(t.sum, rest, &weight);
		buf_printf(out, "%6.2f%%  %*s  (%" PRIu32 " more)\n", text_percent(rest, t.sum->weight), (int)t.number,
			   buf_text(&weight), count - shown);
		out->failed |= weight.failed;
	}
	return out->failed ? -ENOMEM : 0;
}
