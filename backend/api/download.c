/* SPDX-License-Identifier: Apache-2.0 */
/* The selection as a file of any format. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/api/api_call.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/profiles.h"
#include "proto/profiles_hide.h"

struct pieces {
	const struct api_call *call;
	struct profiles **items; /* a reference each */
	size_t count;
	uint64_t bytes;
};

static void pieces_fini(struct pieces *p)
{
	for (size_t i = 0; i < p->count; i++)
		profiles_put(p->items[i]);
	free(p->items);
}

static int take_piece(void *arg, struct profiles *p)
{
	struct pieces *pieces = arg;
	struct profiles **items = reallocarray(pieces->items, pieces->count + 1, sizeof(struct profiles *));

	if (!items)
		return -ENOMEM;
	pieces->items = items;
	if (pieces->call->hides_addresses && profiles_hide_addresses(p, &items[pieces->count]))
		return -ENOMEM;
	if (!pieces->call->hides_addresses)
		items[pieces->count] = profiles_get(p);
	pieces->count++;
	pieces->bytes += profiles_memory_bytes(p);
	return api_within(pieces->call, pieces->bytes);
}

static int write_selection(struct api_call *call, const char *format)
{
	const struct api_export *exports = call->api->config.exports;
	AUTO(pieces_fini) struct pieces pieces = { .call = call };
	AUTO(query_fini) struct query q = { 0 };
	struct api_answer *answer = call->answer;
	const char *suffix = exports ? exports->suffix(format, &answer->content_type) : NULL;
	time_t from;
	struct tm tm;
	char when[32];
	int err;

	if (!suffix) {
		buf_printf(&call->error, "format: there is no format '%s'", format);
		return -EINVAL;
	}
	err = query_read(&q, &call->ctx, call->params, "", &call->error);
	if (!err)
		err = call->ctx.store->read->export(call->ctx.store, &q.sel, take_piece, &pieces);
	if (!err)
		err = exports->write(format, pieces.items, pieces.count, &answer->body);
	if (err)
		return err;
	from = (time_t)(q.sel.from_ns / NSEC_PER_SEC);
	gmtime_r(&from, &tm);
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	snprintf(answer->file_name, sizeof(answer->file_name), "hearth-%s%s", when, suffix);
	return 0;
}

int api_export(struct api_call *call)
{
	const char *format = query_param(call->params, "format");

	if (format && *format)
		return write_selection(call, format);
	buf_puts(&call->error, "format: say which: otlp, pprof, folded, svg, speedscope, ...");
	return -EINVAL;
}

/* A stored range as pprof. The live window is waited for before the store is asked: backend/routes/page_api.c. */
int api_pprof(struct api_call *call)
{
	return write_selection(call, "pprof");
}
