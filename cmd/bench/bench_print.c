/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the figures of `hearth bench` as a table and as JSON. */
#include <math.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/json.h"
#include "cmd/bench/bench.h"

static void put_value(struct buf *out, double value, const char *unit)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	if (isnan(value))
		buf_puts(&text, "-");
	else
		buf_printf(&text, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, unit);
	buf_printf(out, "  %-19s", buf_text(&text));
}

void bench_print_table(const struct bench_figure *figures, size_t count, size_t cpus, double others, struct buf *out)
{
	struct utsname name = { .release = "?" };

	(void)uname(&name);
	buf_printf(out,
		   "hearth %s, Linux %s, %zu CPUs, each busy with a program %d calls deep; load average before: %.1f\n\n",
		   HEARTH_VERSION, name.release, cpus, BENCH_DEPTH, others);
	buf_printf(out, "%-44s  %-19s  %-19s  %-5s  %s\n", "", "HEARTH", "BESIDE IT", "RATIO", "WHO");
	for (size_t i = 0; i < count; i++) {
		const struct bench_figure *f = &figures[i];

		buf_printf(out, "%-44s", f->name);
		put_value(out, f->ours, f->unit);
		put_value(out, f->other, f->unit);
		if (!isnan(f->ours) && !isnan(f->other) && f->other > 0)
			buf_printf(out, "  %-5.2f  %s\n", f->ours / f->other, f->beside);
		else if (isnan(f->ours))
			buf_printf(out, "  %-5s  %s\n", "-", f->why ? f->why : "it failed here");
		else
			buf_printf(out, "  %-5s  %s%s%s\n", "-", f->beside ? f->beside : "", f->beside ? ": " : "",
				   f->beside ? f->why : "nothing to compare it with");
	}
}

static void put_number(struct json *j, const char *key, double value)
{
	json_key(j, key);
	json_double(j, value);
}

void bench_print_json(const struct bench_figure *figures, size_t count, struct buf *out)
{
	struct json j;

	json_init(&j, out, 2);
	json_array_begin(&j);
	for (size_t i = 0; i < count; i++) {
		const struct bench_figure *f = &figures[i];

		json_object_begin(&j);
		json_key(&j, "name");
		json_string(&j, f->name);
		json_key(&j, "unit");
		json_string(&j, f->unit);
		put_number(&j, "hearth", f->ours);
		put_number(&j, "other", f->other);
		json_key(&j, "beside");
		json_string(&j, f->beside ? f->beside : "");
		json_key(&j, "why_not");
		json_string(&j, isnan(f->ours) || (f->beside && isnan(f->other)) ? f->why ? f->why : "it failed here" : "");
		json_object_end(&j);
	}
	json_array_end(&j);
	buf_putc(out, '\n');
}
