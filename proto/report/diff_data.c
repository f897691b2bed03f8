/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a comparison as data for programs: every function and judged stack, changed or not, with all figures. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "proto/report/diff_table.h"

static void csv_change(const struct diff_change *c, struct buf *out)
{
	buf_printf(out, ",%.9g,%.9g,%.9g,%.9g,%d\n", c->a, c->b, c->delta, c->band, c->changed);
}

static bool is_anywhere(const struct diff_change *c)
{
	return c->a > 0 || c->b > 0;
}

int report_diff_csv(const struct diff_result *r, struct buf *out)
{
	buf_puts(out, "of,module,name,a,b,delta,band,changed\n");
	for (uint32_t i = 0; i < r->function_count; i++) {
		const struct diff_function *f = &r->functions[i];

		for (int total = 0; total < 2; total++) {
			if (!total && !is_anywhere(&f->self))
				continue;
			buf_puts(out, total ? "total," : "self,");
			report_csv_text(out, f->module);
			buf_putc(out, ',');
			report_csv_text(out, f->name);
			csv_change(total ? &f->total : &f->self, out);
		}
	}
	for (uint32_t i = 0; i < r->stack_count; i++) {
		const struct diff_stack *s = &r->stacks[i];
		AUTO(buf_fini) struct buf path = BUF_EMPTY;

		for (uint32_t k = 0; k < s->count; k++)
			buf_printf(&path, "%s%s", k ? ";" : "", r->by_index[s->functions[k]]->name);
		buf_puts(out, "stack,,");
		report_csv_text(out, buf_text(&path));
		csv_change(&s->self, out);
		out->failed |= path.failed;
	}
	return out->failed ? -ENOMEM : 0;
}

static void json_change(struct json *j, const char *key, const struct diff_change *c)
{
	json_key(j, key);
	json_object_begin(j);
	json_key(j, "a");
	json_double(j, c->a);
	json_key(j, "b");
	json_double(j, c->b);
	json_key(j, "delta");
	json_double(j, c->delta);
	json_key(j, "band");
	json_double(j, c->band);
	json_key(j, "changed");
	json_bool(j, c->changed);
	json_object_end(j);
}

static void json_pair(struct json *j, const char *key, double a, double b)
{
	json_key(j, key);
	json_object_begin(j);
	json_key(j, "a");
	json_double(j, a);
	json_key(j, "b");
	json_double(j, b);
	json_object_end(j);
}

static void json_text(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_string(j, value);
}

static void json_head(struct json *j, const struct diff_summary *s)
{
	bool is_time = s->measure == DIFF_TIMES;

	json_text(j, "measure", is_time ? "cpu time a run" : "share");
	json_text(j, "unit", is_time ? "seconds" : "1");
	json_pair(j, "runs", s->runs[0], s->runs[1]);
	json_pair(j, "samples", (double)s->events[0], (double)s->events[1]);
	json_pair(j, "cpu_seconds", s->seconds[0], s->seconds[1]);
	json_change(j, "program_seconds", &s->all);
	json_key(j, "changed_functions");
	json_u64(j, s->changed_functions);
	json_key(j, "changed_stacks");
	json_u64(j, s->changed_stacks);
	json_key(j, "judged_functions");
	json_u64(j, s->judged_functions);
	json_key(j, "judged_stacks");
	json_u64(j, s->judged_stacks);
	json_key(j, "sharpness");
	json_double(j, s->sharpness);
	json_key(j, "spread");
	json_double(j, s->spread);
}

int report_diff_json(const struct diff_result *r, struct buf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_object_begin(&j);
	json_head(&j, &r->summary);
	json_key(&j, "functions");
	json_array_begin(&j);
	for (uint32_t i = 0; i < r->function_count; i++) {
		const struct diff_function *f = &r->functions[i];

		json_object_begin(&j);
		json_text(&j, "name", f->name);
		json_text(&j, "module", f->module);
		json_text(&j, "type", f->type);
		json_pair(&j, "cpu_seconds", f->seconds[0], f->seconds[1]);
		json_change(&j, "self", &f->self);
		json_change(&j, "total", &f->total);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_key(&j, "stacks");
	json_array_begin(&j);
	for (uint32_t i = 0; i < r->stack_count; i++) {
		const struct diff_stack *s = &r->stacks[i];

		json_object_begin(&j);
		json_key(&j, "stack");
		json_array_begin(&j);
		for (uint32_t k = 0; k < s->count; k++)
			json_string(&j, r->by_index[s->functions[k]]->name);
		json_array_end(&j);
		json_change(&j, "self", &s->self);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	buf_putc(out, '\n');
	return out->failed ? -ENOMEM : 0;
}
