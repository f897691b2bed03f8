/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws a comparison as a flame graph: a picture, or a page with a table of the functions. A frame is as wide as both sides
 * together, so that also what is gone has its place. The colours are a diverging scale from blue over grey to red that
 * people with any common kind of colour blindness can tell apart; tool tips and table say the same in figures.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/embed.h"
#include "base/intern.h"
#include "base/text/json.h"
#include "proto/report/flamegraph.h"
#include "proto/report/diff_table.h"

EMBED(flamegraph_compare_js, "proto/report/flamegraph_compare.js");

static const double UNITS = 1e9; /* weights of the tree: of a side as a whole, or of A's run */

struct picture {
	const struct diff *d;
	const struct diff_result *r;
};

enum { STEPS = 4 };

static const char *const more[STEPS] = { "#fbcfb6", "#f5ab88", "#ec8f6c", "#dd6a4f" };
static const char *const less[STEPS] = { "#c2dff1", "#9dcae4", "#78b4d5", "#4f97c4" };
static const char *const same = "#dcdcdc";
static const double LEAST = 0.0005; /* what differs by less of the whole is not coloured */

static void put_style(void *arg, struct buf *out)
{
	(void)arg;
	for (int i = 0; i < STEPS; i++)
		buf_printf(out, ".u%d{fill:%s}.d%d{fill:%s}", i, more[i], i, less[i]);
	buf_printf(out, ".same{fill:%s}\n", same);
}

static void put_title(void *arg, struct buf *out)
{
	const struct picture *p = arg;
	const struct diff_summary *s = &p->r->summary;

	buf_printf(out, "A: %u run%s", s->runs[DIFF_A], s->runs[DIFF_A] == 1 ? "" : "s");
	if (s->seconds[DIFF_A] > 0)
		buf_printf(out, ", %.2f s", s->seconds[DIFF_A]);
	buf_printf(out, "; B: %u run%s", s->runs[DIFF_B], s->runs[DIFF_B] == 1 ? "" : "s");
	if (s->seconds[DIFF_B] > 0)
		buf_printf(out, ", %.2f s", s->seconds[DIFF_B]);
}

static void put_heading(void *arg, struct buf *out)
{
	put_title(arg, out);
	buf_puts(out, "; red: more in B, blue: less, grey: noise");
}

/* The parts (of 1) of A and B that a frame takes; of A's run if times are compared. */
static double side_a(const struct call_node *n)
{
	return (double)n->total[DIFF_A] / UNITS;
}

static double side_b(const struct call_node *n)
{
	return (double)n->total[DIFF_B] / UNITS;
}

static void put_class(void *arg, const struct call_node *n, struct buf *out)
{
	const struct picture *p = arg;
	double a = side_a(n), b = side_b(n), part = fabs(b - a) / fmax(a, b);
	int step = part > 0.5 ? 3 : part > 0.2 ? 2 : part > 0.07 ? 1 : 0;

	if (fabs(b - a) <= fmax(diff_band(p->d, fmin((a + b) / 2, 0.99)), LEAST))
		buf_puts(out, "same");
	else
		buf_printf(out, "%c%d", b > a ? 'u' : 'd', step);
}

static void put_figures(void *arg, const struct call_node *n, struct buf *out)
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
	const int64_t weights[2] = {
		[DIFF_A] = (int64_t)(s->self.a / unit * UNITS + 0.5), [DIFF_B] = (int64_t)(s->self.b / unit * UNITS + 0.5)
	};

	if (!steps)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->count; i++) {
		steps[i].name = r->by_index[s->functions[i]]->name;
		steps[i].type = r->by_index[s->functions[i]]->type;
	}
	return tree_add_path(t, steps, s->count, weights);
}

static int make_tree(const struct diff_result *r, struct tree **ret)
{
	struct tree *t = tree_new();
	int err = t ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < r->stack_count && !err; i++)
		err = add_stack(t, r, &r->stacks[i]);
	if (err) {
		tree_free(t);
		return err;
	}
	*ret = t;
	return 0;
}

int report_diff_svg(const struct diff *d, const struct diff_result *r, struct buf *out)
{
	struct picture p = { d, r };
	const struct flamegraph_look look = { put_style, put_heading, put_class, put_figures, &p };
	struct tree *t;
	int err = make_tree(r, &t);

	if (!err) {
		err = flamegraph_write_svg_as(t, &look, out);
		tree_free(t);
	}
	return err;
}

/* --- the page --- */

static void put_list(struct json *j, const char *key, const char *const list[static STEPS])
{
	json_key(j, key);
	json_array_begin(j);
	for (int i = 0; i < STEPS; i++)
		json_string(j, list[i]);
	json_array_end(j);
}

static void put_number(struct json *j, const char *key, double value)
{
	json_key(j, key);
	json_double(j, value);
}

static void put_change(struct json *j, const struct diff_change *c)
{
	json_array_begin(j);
	json_double(j, c->a);
	json_double(j, c->b);
	json_double(j, c->band);
	json_bool(j, c->changed);
	json_array_end(j);
}

static int put_functions(const struct diff_result *r, struct intern *names, struct intern *modules, struct json *j)
{
	json_key(j, "functions");
	json_array_begin(j);
	for (uint32_t i = 0; i < r->function_count; i++) {
		const struct diff_function *f = &r->functions[i];
		uint32_t name, module;

		if (intern_add(names, f->name, strlen(f->name), &name) < 0 ||
		    intern_add(modules, f->module, strlen(f->module), &module) < 0)
			return -ENOMEM;
		json_array_begin(j);
		json_u64(j, name);
		json_u64(j, module);
		put_change(j, &f->self);
		put_change(j, &f->total);
		json_array_end(j);
	}
	json_array_end(j);
	return 0;
}

static int put_data(void *arg, struct intern *names, struct json *j)
{
	const struct picture *p = arg;
	const struct diff_summary *s = &p->r->summary;
	struct intern *modules = intern_new();
	int err = modules ? 0 : -ENOMEM;

	put_number(j, "unit", UNITS);
	put_number(j, "seconds", s->measure == DIFF_TIMES ? s->seconds[DIFF_A] : 0);
	put_number(j, "least", LEAST);
	put_number(j, "factor", diff_band(p->d, 0.5) / 0.5); /* a band is this times sqrt(part * (1 - part)) */
	put_list(j, "more", more);
	put_list(j, "less", less);
	json_key(j, "same");
	json_string(j, same);
	if (!err)
		err = put_functions(p->r, names, modules, j);
	json_key(j, "modules");
	json_array_begin(j);
	for (uint32_t i = 0; !err && i < intern_count(modules); i++) {
		size_t len;
		const char *name = intern_get(modules, i, &len);

		json_string_n(j, name, len);
	}
	json_array_end(j);
	intern_free(modules);
	return err;
}

int report_diff_html(const struct diff *d, const struct diff_result *r, struct buf *out)
{
	struct picture p = { d, r };
	const struct flamegraph_page page = {
		.title = put_title,
		.data = put_data,
		.table_head = "<th class=\"detail\"><button type=\"button\" data-by=\"a\">A</button></th>"
			      "<th class=\"detail\"><button type=\"button\" data-by=\"b\">B</button></th>"
			      "<th><button type=\"button\" data-by=\"self\">Itself</button></th><th>noise</th>"
			      "<th class=\"detail\">A</th><th class=\"detail\">B</th>"
			      "<th><button type=\"button\" data-by=\"total\">With callees</button></th><th>noise</th>"
			      "<th>Function</th>",
		.script = flamegraph_compare_js,
		.script_len = EMBEDDED_LEN(flamegraph_compare_js),
		.has_sides = true,
		.arg = &p,
	};
	struct tree *t;
	int err = make_tree(r, &t);

	if (!err) {
		err = flamegraph_write_html_as(t, &page, out);
		tree_free(t);
	}
	return err;
}
