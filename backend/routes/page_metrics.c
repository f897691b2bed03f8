/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /metrics: the whole registry as Prometheus text. The figures of the process are read at this moment, not kept. Loop's
 * thread only.
 */
#include "backend/routes/handlers.h"
#include "base/metrics.h"

void page_metrics(struct request *r)
{
	struct server_stats *stats = &r->server->stats;
	server_stats_refresh_process(stats);
	metrics_write(r->server->metrics, &r->reply.body);
	reply_body(r, r->reply.body.failed ? MHD_HTTP_INTERNAL_SERVER_ERROR : MHD_HTTP_OK,
		   "text/plain; version=0.0.4; charset=utf-8");
}
