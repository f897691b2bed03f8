/* SPDX-License-Identifier: Apache-2.0 */
/* Prints each lock with the functions that wait for it and those that let it go. */
#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "proto/report/report.h"
#include "proto/text.h"

enum { MAX_PARTIES = 3, PROCESS_COLUMNS = 24 };

static void print_side(const struct lock_row *row, enum lock_side side, const struct report_style *style, struct buf *out)
{
	static const char *const words[] = { [LOCK_WAITERS] = "waits", [LOCK_RELEASERS] = "let go" };
	uint32_t shown = row->party_cnt[side] < MAX_PARTIES ? row->party_cnt[side] : MAX_PARTIES;
	unsigned columns = style->columns > 40 ? style->columns - 20 : style->columns ? 20 : 0;

	for (uint32_t i = 0; i < shown; i++) {
		const struct lock_party *party = &row->parties[side][i];

		buf_printf(out, "%18s %6.2f%%  ", words[side], text_percent(party->weight, row->told_weight[side]));
		text_name(out, party->name, columns);
		buf_putc(out, '\n');
	}
	if (shown < row->party_cnt[side])
		buf_printf(out, "%18s          (%" PRIu32 " more)\n", words[side], row->party_cnt[side] - shown);
}

static void print_row(const struct lock_row *row, const struct report_style *style, struct buf *out)
{
	buf_printf(out, "%10.3f  ", (double)row->weight / NSEC_PER_SEC);
	if (row->count)
		buf_printf(out, "%8" PRIu64 "  %9.3f  ", row->count,
			   (double)row->weight / NSEC_PER_MSEC / (double)row->count);
	else
		buf_printf(out, "%8s  %9s  ", "-", "-");
	buf_printf(out, "%8" PRIu64 "  ", row->events);
	if (row->pid >= 0)
		buf_printf(out, "%8" PRId64 "  ", row->pid);
	else
		buf_printf(out, "%8s  ", "-");
	text_padded(out, row->process, PROCESS_COLUMNS);
	buf_puts(out, "  ");
	text_name(out, row->lock, 0);
	buf_putc(out, '\n');
	for (int side = 0; side < LOCK_SIDES; side++)
		print_side(row, (enum lock_side)side, style, out);
}

int report_locks(struct locks *l, const struct report_style *style, struct buf *out)
{
	uint64_t weight = 0, events = 0;
	uint32_t count, shown;
	const struct lock_row *rows = locks_rows(l, &count);

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		weight += rows[i].weight;
		events += rows[i].events;
	}
	buf_printf(out, "%" PRIu64 " samples, %.1f s of waits for %" PRIu32 " locks\n", events,
		   (double)weight / NSEC_PER_SEC, count);
	if (count) {
		text_tone(out, style->colour, TONE_HEAD);
		buf_printf(out, "\n%10s  %8s  %9s  %8s  %8s  %-*s  LOCK", "WAIT s", "WAITS", "MEAN ms", "SAMPLES", "PID",
			   PROCESS_COLUMNS, "PROCESS");
		text_tone(out, style->colour, TONE_PLAIN);
		buf_putc(out, '\n');
	}
	shown = style->max_rows && style->max_rows < count ? style->max_rows : count;
	for (uint32_t i = 0; i < shown; i++)
		print_row(&rows[i], style, out);
	if (shown < count)
		buf_printf(out, "(%" PRIu32 " more)\n", count - shown);
	return out->failed ? -ENOMEM : 0;
}
