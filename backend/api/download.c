/* SPDX-License-Identifier: Apache-2.0 */
/* The selection as a file of any format. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/api/api_call.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/ourselves.h"
#include "proto/profiles.h"
#include "proto/profiles_hide.h"

struct download {
	const struct api_call *call;
	const struct api_export *exports;
	struct api_file *file; /* owned */
	int disk;	       /* for what grows large; -1: there is none; owned */
};

static void download_fini(struct download *d)
{
	if (d->file)
		d->exports->free(d->file);
	if (d->disk >= 0)
		close(d->disk);
}

static int take_piece(void *arg, struct profiles *p)
{
	struct download *d = arg;
	struct profiles *hidden = NULL;
	int err = 0;

	if (d->call->hides_addresses)
		err = profiles_hide_addresses(p, &hidden);
	err = err ? err : d->exports->add(d->file, hidden ? hidden : p);
	profiles_put(hidden);
	return err ? err : api_within(d->call, d->exports->held_bytes(d->file));
}

static int write_selection(struct api_call *call, const char *format)
{
	const struct api_export *exports = call->api->config.exports;
	AUTO(download_fini) struct download download = { .call = call, .exports = exports, .disk = -1 };
	AUTO(query_fini) struct query q = { 0 };
	struct api_answer *answer = call->answer;
	const char *suffix = exports ? exports->suffix(format, &answer->content_type) : NULL;
	time_t from;
	struct tm tm;
	char when[32];
	bool is_on_disk;
	int err;

	if (!suffix) {
		buf_printf(&call->error, "format: there is no format '%s'", format);
		return -EINVAL;
	}
	err = query_read(&q, &call->ctx, call->params, "", &call->error);
	if (!err && call->api->folder) /* else all of it stays in memory */
		download.disk = open(call->api->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	err = err ? err : exports->begin(format, download.disk, &download.file);
	err = err ? err : call->ctx.store->read->export(call->ctx.store, &q.sel, take_piece, &download);
	err = err ? err : exports->write(download.file, call->api->config.memory_bytes, &answer->body, &is_on_disk);
	if (err)
		return err;
	if (is_on_disk) {
		answer->is_on_disk = true;
		answer->disk = MOVE_FD(download.disk);
	}
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

/* A selector of hearth's own processes, as far as they are known by now. The executable's name is asked for, too: a helper's
 * pid may be another's by now. */
static void choose_ourselves(struct buf *query)
{
	struct ourselves us;

	ourselves_known(&us);
	buf_printf(query, "{process.executable.name=`%s`, process.pid=~\"", ourselves_name());
	for (uint32_t i = 0; i < us.count; i++)
		buf_printf(query, "%s%u", i ? "|" : "", us.pids[i]);
	buf_puts(query, "\"}");
}

/* A stored range as pprof. The live window is waited for before the store is asked: backend/routes/page_api.c. */
int api_pprof(struct api_call *call)
{
	const char *process = query_param(call->params, "process");
	AUTO(buf_fini) struct buf query = BUF_EMPTY;
	AUTO_FREE struct query_param *items = NULL;
	const struct query_params *given = call->params;
	struct query_params params = *given;
	int err;

	if (!process || strcmp(process, API_OURSELVES) != 0)
		return write_selection(call, "pprof");
	choose_ourselves(&query);
	items = calloc(params.count + 1, sizeof(*items));
	if (!items || query.failed)
		return -ENOMEM;
	memcpy(items, params.items, params.count * sizeof(*items));
	items[params.count++] = (struct query_param){ "query", buf_text(&query) };
	params.items = items;
	call->params = &params;
	err = write_selection(call, "pprof");
	call->params = given;
	return err;
}
