/* SPDX-License-Identifier: Apache-2.0 */
/* Turns events into blocks. block_read.c reads them back; both walk the columns in the same order. */
#include "backend/store/block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/store_read.h"
#include "backend/store/block_times.h"
#include "base/cleanup.h"
#include "base/varint.h"

static int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->labels < y->labels ? -1
				     : x->labels > y->labels; /* alike together: thinned ones have one time and no cpu */
}

void events_sort(struct event *events, size_t count)
{
	qsort(events, count, sizeof(*events), compare_events);
}

/* The parts of a block gathered before its columns are written; every array has a place for each event. */
struct packing {
	const struct event *events;
	size_t count;
	bool has_weights;
	uint32_t series_count, run_count, cell_count, minute_count;
	uint64_t from_ns;
	/* of series */
	uint32_t *series, *runs, *series_events, *cells, *minutes, *period;
	/* of runs, cells, minutes */
	uint32_t *run_stack, *run_events, *cell_set, *cell_events, *minute, *minute_events;
	uint64_t *run_weight, *cell_weight, *minute_weight;
	uint32_t *label; /* of events */
	/* minutes of one series, counted by minute since the block's first */
	uint32_t *by_minute_events;
	int64_t *by_minute_weight;
	uint32_t span_minutes;
	void *memory;
};

enum { U32_ARRAYS = 13, U64_ARRAYS = 3, MAX_SPAN_MINUTES = 1 << 16 };

static int make_arrays(struct packing *p, size_t count)
{
	uint64_t *wide = calloc(count, U64_ARRAYS * sizeof(*wide) + U32_ARRAYS * sizeof(uint32_t));
	uint32_t *narrow;

	p->memory = wide;
	if (!wide)
		return -ENOMEM;
	p->run_weight = wide;
	p->cell_weight = wide + count;
	p->minute_weight = wide + 2 * count;
	narrow = (uint32_t *)(wide + U64_ARRAYS * count);
	uint32_t **arrays[U32_ARRAYS] = { &p->series, &p->runs,		 &p->series_events, &p->cells,	  &p->minutes,
					  &p->period, &p->run_stack,	 &p->run_events,    &p->cell_set, &p->cell_events,
					  &p->minute, &p->minute_events, &p->label };
	for (size_t i = 0; i < U32_ARRAYS; i++)
		*arrays[i] = narrow + i * count;
	return 0;
}

static int packing_init(struct packing *p, const struct event *events, size_t count)
{
	uint64_t last = 0;

	*p = (struct packing){ .events = events, .count = count, .from_ns = UINT64_MAX };
	for (size_t i = 0; i < count; i++) {
		p->from_ns = events[i].time_ns < p->from_ns ? events[i].time_ns : p->from_ns;
		last = events[i].time_ns > last ? events[i].time_ns : last;
		p->has_weights |= events[i].weight != 1;
	}
	if (last / MINUTE_NS - p->from_ns / MINUTE_NS >= MAX_SPAN_MINUTES)
		return -EINVAL;
	p->span_minutes = (uint32_t)(last / MINUTE_NS - p->from_ns / MINUTE_NS + 1);
	p->by_minute_events = calloc(p->span_minutes, sizeof(*p->by_minute_events));
	p->by_minute_weight = calloc(p->span_minutes, sizeof(*p->by_minute_weight));
	return p->by_minute_events && p->by_minute_weight ? make_arrays(p, count) : -ENOMEM;
}

static void packing_fini(struct packing *p)
{
	free(p->memory);
	free(p->by_minute_events);
	free(p->by_minute_weight);
}

/* The place of @set among the cells from @first on; made when it is not there. Newest first: neighbours are alike. */
static uint32_t find_cell(struct packing *p, uint32_t first, uint32_t set)
{
	uint32_t i = p->cell_count;

	while (i > first) {
		if (p->cell_set[--i] == set)
			return i;
	}
	p->cell_set[p->cell_count] = set;
	return p->cell_count++;
}

static void gather_minutes(struct packing *p)
{
	uint32_t first = (uint32_t)(p->from_ns / MINUTE_NS);

	for (uint32_t i = 0; i < p->span_minutes; i++) {
		if (!p->by_minute_events[i])
			continue;
		p->minute[p->minute_count] = first + i;
		p->minute_events[p->minute_count] = p->by_minute_events[i];
		p->minute_weight[p->minute_count++] = column_zigzag(p->by_minute_weight[i]);
		p->by_minute_events[i] = 0;
		p->by_minute_weight[i] = 0;
	}
}

/* Gathers the events [@start, @end), which are one series'. */
static void gather_series(struct packing *p, size_t start, size_t end)
{
	const uint32_t s = p->series_count++;
	const uint32_t first_run = p->run_count, first_cell = p->cell_count, first_minute = p->minute_count;
	int64_t weight = 0;

	p->series[s] = p->events[start].series;
	p->period[s] = p->events[start].period;
	p->series_events[s] = (uint32_t)(end - start);
	for (size_t i = start; i < end; i++) {
		const struct event *e = &p->events[i];
		uint32_t cell = find_cell(p, first_cell, e->labels);
		uint32_t minute = (uint32_t)(e->time_ns / MINUTE_NS - p->from_ns / MINUTE_NS);

		if (i == start || e->stack != e[-1].stack) {
			p->run_stack[p->run_count++] = e->stack;
			weight = 0;
		}
		weight = weights_add(weight, e->weight);
		p->run_events[p->run_count - 1]++;
		p->run_weight[p->run_count - 1] = column_zigzag(weight);
		p->label[i] = cell - first_cell;
		p->cell_events[cell]++;
		p->cell_weight[cell] += (uint64_t)e->weight;
		p->by_minute_events[minute]++;
		p->by_minute_weight[minute] = weights_add(p->by_minute_weight[minute], e->weight);
	}
	gather_minutes(p);
	p->runs[s] = p->run_count - first_run;
	p->cells[s] = p->cell_count - first_cell;
	p->minutes[s] = p->minute_count - first_minute;
}

static void gather(struct packing *p)
{
	size_t start = 0;

	for (size_t i = 1; i <= p->count; i++) {
		if (i < p->count && p->events[i].series == p->events[start].series)
			continue;
		gather_series(p, start, i);
		start = i;
	}
	for (uint32_t i = 0; i < p->cell_count; i++)
		p->cell_weight[i] = column_zigzag((int64_t)p->cell_weight[i]);
}

/* Each of @n values less the one before; @starts[i] begins anew at the runs whose lengths are @lengths. */
static void to_deltas(uint32_t *values, const uint32_t *lengths, uint32_t groups)
{
	for (uint32_t g = 0, at = 0; g < groups; at += lengths[g++]) {
		for (uint32_t i = lengths[g] - 1; i > 0; i--)
			values[at + i] -= values[at + i - 1];
	}
}

static void pack_head(struct column_codec *c, struct packing *p, struct buf *out)
{
	const uint32_t *columns[] = { p->series, p->runs, p->series_events, p->cells, p->minutes, p->period };

	varint_append(out, p->from_ns);
	varint_append(out, p->series_count);
	varint_append(out, p->run_count);
	varint_append(out, p->count);
	varint_append(out, p->cell_count);
	varint_append(out, p->minute_count);
	varint_append(out, p->has_weights);
	to_deltas(p->series, &p->series_count, 1);
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		column_put_u32(c, out, columns[i], p->series_count);
}

static void pack_stacks(struct column_codec *c, struct packing *p, struct buf *out)
{
	to_deltas(p->run_stack, p->runs, p->series_count);
	column_put_u32(c, out, p->run_stack, p->run_count);
	column_put_u32(c, out, p->run_events, p->run_count);
	if (p->has_weights)
		column_put(c, out, p->run_weight, p->run_count);
}

static void pack_cells(struct column_codec *c, struct packing *p, struct buf *out)
{
	column_put_u32(c, out, p->cell_set, p->cell_count);
	column_put_u32(c, out, p->cell_events, p->cell_count);
	to_deltas(p->minute, p->minutes, p->series_count);
	column_put_u32(c, out, p->minute, p->minute_count);
	column_put_u32(c, out, p->minute_events, p->minute_count);
	if (p->has_weights) {
		column_put(c, out, p->cell_weight, p->cell_count);
		column_put(c, out, p->minute_weight, p->minute_count);
	}
}

static void gather_sums(const struct block_sums *sums, uint32_t series, size_t *at, uint32_t *counts, uint32_t *keys,
			uint32_t *events, uint64_t *weights)
{
	const size_t first = *at;

	for (; *at < sums->count && sums->items[*at].series == series; ++*at) {
		keys[*at] = sums->items[*at].key;
		events[*at] = sums->items[*at].events;
		weights[*at] = column_zigzag(sums->items[*at].weight);
	}
	*counts = (uint32_t)(*at - first);
}

int block_pack_sums(struct column_codec *c, uint64_t from_ns, const struct block_sums *stacks, const struct block_sums *sets,
		    const struct block_sums *minutes, struct buf parts[BLOCK_PARTS])
{
	AUTO(packing_fini) struct packing p = { .from_ns = from_ns };
	size_t run = 0, cell = 0, minute = 0, starts[BLOCK_CELLS + 1];
	int err = make_arrays(&p, stacks->count + sets->count + minutes->count);

	if (err)
		return err;
	for (; run < stacks->count; p.series_count++) {
		const uint32_t s = p.series_count, number = stacks->items[run].series;

		p.series[s] = number;
		for (size_t i = run; i < stacks->count && stacks->items[i].series == number; i++) {
			p.series_events[s] += stacks->items[i].events;
			p.has_weights |= stacks->items[i].weight != stacks->items[i].events;
		}
		p.count += p.series_events[s];
		gather_sums(stacks, number, &run, &p.runs[s], p.run_stack, p.run_events, p.run_weight);
		gather_sums(sets, number, &cell, &p.cells[s], p.cell_set, p.cell_events, p.cell_weight);
		gather_sums(minutes, number, &minute, &p.minutes[s], p.minute, p.minute_events, p.minute_weight);
	}
	p.run_count = (uint32_t)run;
	p.cell_count = (uint32_t)cell;
	p.minute_count = (uint32_t)minute;
	for (size_t i = 0; i <= BLOCK_CELLS; i++)
		starts[i] = parts[i].len;
	pack_head(c, &p, &parts[BLOCK_HEAD]);
	pack_stacks(c, &p, &parts[BLOCK_STACKS]);
	pack_cells(c, &p, &parts[BLOCK_CELLS]);
	for (size_t i = 0; i <= BLOCK_CELLS; i++) {
		column_seal(&parts[i], starts[i]);
		if (parts[i].failed)
			return -ENOMEM;
	}
	return 0;
}

/* Writes two columns; the arrays of runs, which are written already, are used again. */
static void pack_times(struct column_codec *c, struct packing *p, struct buf *out)
{
	uint64_t *periods = p->run_weight, *rest = p->cell_weight;
	struct usual_rest usual = { 0 };
	size_t at = 0;

	for (uint32_t r = 0; r < p->run_count; r++) {
		uint64_t before = 0;

		for (uint32_t i = 0; i < p->run_events[r]; i++, at++) {
			const struct event *e = &p->events[at];
			uint64_t period = period_or_default(e->period);
			uint64_t since = e->time_ns - p->from_ns;

			periods[at] = since / period - before;
			before = since / period;
			rest[at] = usual_rest_difference(&usual, e->cpu, period, since % period);
		}
	}
	column_put(c, out, periods, p->count);
	column_put(c, out, rest, p->count);
}

/* Packs the part made of one 32-bit number of each event; the arrays of minutes are used for it. */
#define PACK_FIELD(c, p, out, field)                                 \
	do {                                                         \
		for (size_t i_ = 0; i_ < (p)->count; i_++)           \
			(p)->minute[i_] = (p)->events[i_].field;     \
		column_put_u32((c), (out), (p)->minute, (p)->count); \
	} while (0)

static void pack_weights(struct column_codec *c, struct packing *p, struct buf *out)
{
	for (size_t i = 0; i < p->count; i++)
		p->minute_weight[i] = column_zigzag(p->events[i].weight);
	column_put(c, out, p->minute_weight, p->count);
}

static bool has_links(const struct packing *p)
{
	for (size_t i = 0; i < p->count; i++) {
		if (p->events[i].link)
			return true;
	}
	return false;
}

int block_pack(struct column_codec *c, const struct event *events, size_t count, struct buf parts[BLOCK_PARTS])
{
	AUTO(packing_fini) struct packing p;
	size_t starts[BLOCK_PARTS];
	int err = packing_init(&p, events, count);

	if (err)
		return err;
	for (size_t i = 0; i < BLOCK_PARTS; i++)
		starts[i] = parts[i].len;
	gather(&p);
	pack_head(c, &p, &parts[BLOCK_HEAD]);
	pack_stacks(c, &p, &parts[BLOCK_STACKS]);
	pack_cells(c, &p, &parts[BLOCK_CELLS]);
	column_put_u32(c, &parts[BLOCK_LABELS], p.label, count);
	PACK_FIELD(c, &p, &parts[BLOCK_CPUS], cpu);
	if (p.has_weights)
		pack_weights(c, &p, &parts[BLOCK_WEIGHTS]);
	pack_times(c, &p, &parts[BLOCK_TIMES]);
	if (has_links(&p))
		PACK_FIELD(c, &p, &parts[BLOCK_LINKS], link);
	for (size_t i = 0; i < BLOCK_PARTS; i++) {
		if (parts[i].len > starts[i])
			column_seal(&parts[i], starts[i]);
		if (parts[i].failed)
			return -ENOMEM;
	}
	return 0;
}
