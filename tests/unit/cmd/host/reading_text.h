/* SPDX-License-Identifier: Apache-2.0 */
/* A reading as text, a line for each point: NAME KEY=VALUE,... NUMBER. */
#ifndef HEARTH_TESTS_READING_TEXT_H
#define HEARTH_TESTS_READING_TEXT_H

#include <inttypes.h>

#include "base/buf.h"
#include "cmd/host/reading.h"

static inline void reading_text(const struct host_reading *r, struct buf *out)
{
	for (size_t i = 0; i < HOST_METRICS; i++) {
		const struct points *points = host_metric_types[i].is_gauge ? &r->data[i].gauge : &r->data[i].sum;

		for (uint32_t k = 0; k < points->count; k++) {
			const struct point *p = &points->items[k];

			buf_printf(out, "%s ", host_metric_types[i].name);
			for (uint32_t n = 0; n < p->attributes.count; n++) {
				const struct key_value *kv = &p->attributes.items[n];

				buf_printf(out, "%s%.*s=%.*s", n ? "," : "", (int)kv->key.len, kv->key.data,
					   (int)kv->value.string.len, kv->value.string.data);
			}
			if (p->has_int)
				buf_printf(out, " %" PRId64 "\n", p->as_int);
			else
				buf_printf(out, " %.3f\n", p->as_double);
		}
	}
}

#endif
