/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/diff_check.h"

#include <inttypes.h>

#include "base/buf.h"
#include "proto/report/diff_table.h"

struct failing {
	const struct diff_result *r;
	double limit; /* in the measure of @r */
	uint32_t count, max_rows;
	struct buf *out;
};

static void check_line(void *arg, const struct diff_line *line)
{
	struct failing *f = arg;

	if (line->change->delta > f->limit && f->count++ < f->max_rows)
		report_diff_line(f->r, line, f->out);
}

uint32_t diff_check(const struct diff_result *r, double limit, uint32_t max_rows, struct buf *out)
{
	const double whole = r->summary.measure == DIFF_TIMES ? r->summary.seconds[DIFF_A] : 1;
	struct failing f = { .r = r, .limit = limit * whole, .max_rows = max_rows, .out = out };

	report_diff_each(r, check_line, &f);
	if (f.count > max_rows)
		buf_printf(out, "  and %" PRIu32 " more\n", f.count - max_rows);
	return f.count;
}
