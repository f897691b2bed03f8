/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as a flame graph. A frame is as wide as both sides together, so that also what is gone has its place. The
 * colours are a diverging scale from blue over grey to red that people with any common kind of colour blindness can tell
 * apart; the tool tips say the same in figures.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/flamegraph.h"
#include "proto/report_diff.h"

static const double UNITS = 1e9; /* weights of the tree: of a side as a whole, or of A's run */

struct picture {
	const struct diff *d;
	const struct diff_result *r;
};

enum { STEPS = 4 };

static void put_style(void *arg, struct buf *out)
{
	static const char *const more[STEPS] = { "#fbdccb", "#f6b799", "#ec8f6c", "#dd6a4f" };
	static const char *const less[STEPS] = { "#d6e8f2", "#a9d0e5", "#78b4d5", "#4f97c4" };

	(void)arg;
	for (int i = 0; i < STEPS; i++)
		buf_printf(out, ".u%d{fill:%s}.d%d{fill:%s}", i, more[i], i, less[i]);
	buf_puts(out, ".same{fill:#dcdcdc}\n");
}

static void put_heading(void *arg, struct buf *out)
{
	const struct picture *p = arg;
	const struct diff_summary *s = &p->r->summary;

	buf_printf(out, "A: %u run%s", s->runs[DIFF_A], s->runs[DIFF_A] == 1 ? "" : "s");
	if (s->seconds[DIFF_A] > 0)
		buf_printf(out, ", %.2f s", s->seconds[DIFF_A]);
	buf_printf(out, "; B: %u run%s", s->runs[DIFF_B], s->runs[DIFF_B] == 1 ? "" : "s");
	if (s->seconds[DIFF_B] > 0)
		buf_printf(out, ", %.2f s", s->seconds[DIFF_B]);
	buf_puts(out, "; red: more in B, blue: less, grey: noise");
}

/* What a frame takes of A and B, in parts of 1; of A's run where times are compared. */
static double side_a(const struct tree_node *n)
{
	return (double)(n->total - n->second) / UNITS;
}

static double side_b(const struct tree_node *n)
{
	return (double)n->second / UNITS;
}

static void put_class(void *arg, const struct tree_node *n, struct buf *out)
{
	const struct picture *p = arg;
	double a = side_a(n), b = side_b(n), part = fabs(b - a) / fmax(a, b);
	int step = part > 0.5 ? 3 : part > 0.2 ? 2 : part > 0.07 ? 1 : 0;

	if (fabs(b - a) <= fmax(diff_band(p->d, fmin((a + b) / 2, 0.99)), 0.0005))
		buf_puts(out, "same");
	else
		buf_printf(out, "%c%d", b > a ? 'u' : 'd', step);
}

static void put_figures(void *arg, const struct tree_node *n, struct buf *out)
{
	const struct picture *p = arg;
	const struct diff_summary *s = &p->r->summary;
	double a = side_a(n), b = side_b(n), band = diff_band(p->d, fmin((a + b) / 2, 0.99));
	bool is_time = s->measure == DIFF_TIMES;
	double unit = is_time ? s->seconds[DIFF_A] : 100;
	const char *name = is_time ? " s" : " %";

	buf_printf(out, "A %.3f%s, B %.3f%s: %+.3f%s", a * unit, name, b * unit, name, (b - a) * unit, name);
	if (a > 0 && b > 0)
		buf_printf(out, ", %+.1f %%", (b / a - 1) * 100);
	buf_printf(out, ", noise \u00b1%.3f%s", band * unit, name);
}

static int add_stack(struct tree *t, const struct diff_result *r, const struct diff_stack *s)
{
	AUTO_FREE struct tree_step *steps = calloc((size_t)s->count + 1, sizeof(*steps));
	double unit = r->summary.measure == DIFF_TIMES ? r->summary.seconds[DIFF_A] : 1;
	uint64_t a = (uint64_t)(s->self.a / unit * UNITS + 0.5), b = (uint64_t)(s->self.b / unit * UNITS + 0.5);

	if (!steps)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->count; i++) {
		steps[i].name = r->by_index[s->functions[i]]->name;
		steps[i].type = r->by_index[s->functions[i]]->type;
	}
	return tree_add_path(t, steps, s->count, a + b, b);
}

int report_diff_svg(const struct diff *d, const struct diff_result *r, struct buf *out)
{
	struct picture p = { d, r };
	const struct flamegraph_look look = { put_style, put_heading, put_class, put_figures, &p };
	struct tree *t = tree_new();
	int err = t ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < r->stack_count && !err; i++)
		err = add_stack(t, r, &r->stacks[i]);
	if (!err)
		err = flamegraph_write_svg_as(t, &look, out);
	tree_free(t);
	return err;
}
