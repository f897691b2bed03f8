/* SPDX-License-Identifier: Apache-2.0 */
/* The content of the store, for people who work on hearth: how often stacks repeat, and what takes the room. */
#include <errno.h>
#include <stdlib.h>

#include "backend/api/api_call.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/vec.h"

/* The stacks that were met: a bit a node. */
struct met {
	uint64_t *bits;
	size_t words;
	uint64_t events, stacks;
};

static void met_fini(struct met *m)
{
	free(m->bits);
}

static int meet(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct met *m = arg;
	const size_t word = node / 64;

	(void)group;
	(void)weight;
	if (vec_reach_zero(&m->bits, &m->words, word))
		return -ENOMEM;
	m->events += events;
	m->stacks += !(m->bits[word] >> node % 64 & 1);
	m->bits[word] |= 1ull << node % 64;
	return 0;
}

static int write_table(void *arg, const char *name, uint64_t bytes)
{
	struct json *j = arg;

	json_object_begin(j);
	api_write_text(j, "name", name);
	api_write_number(j, "bytes", (int64_t)bytes);
	json_object_end(j);
	return 0;
}

int api_inside(struct api_call *call)
{
	AUTO(query_fini) struct query q = { 0 };
	AUTO(met_fini) struct met met = { 0 };
	struct store *store = call->ctx.store;
	struct json *j = &call->json;
	int err = query_read(&q, &call->ctx, call->params, "", &call->error);

	err = err ? err : store->read->sum_stacks(store, &q.sel, NULL, meet, &met);
	if (err)
		return err;
	json_object_begin(j);
	api_write_about(call, &q);
	api_write_number(j, "events", (int64_t)met.events);
	api_write_number(j, "stacks", (int64_t)met.stacks);
	json_key(j, "tables");
	json_array_begin(j);
	err = store->maintain->tables ? store->maintain->tables(store, write_table, j) : 0;
	json_array_end(j);
	json_object_end(j);
	return err;
}
