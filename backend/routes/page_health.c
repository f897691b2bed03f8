/* SPDX-License-Identifier: Apache-2.0 */
/* /healthz: whether requests are welcome; /readyz: whether profiles come as well. Loop's thread only. */
#include "backend/routes/handlers.h"

void page_health(struct request *r)
{
	if (r->server->stopping)
		reply_text(r, MHD_HTTP_SERVICE_UNAVAILABLE, "stopping\n");
	else
		reply_text(r, MHD_HTTP_OK, "ok\n");
}

void page_ready(struct request *r)
{
	const struct server *s = r->server;

	if (s->stopping)
		reply_text(r, MHD_HTTP_SERVICE_UNAVAILABLE, "stopping\n");
	else if (s->is_ready && !s->is_ready(s->ready_arg))
		reply_text(r, MHD_HTTP_SERVICE_UNAVAILABLE, "starting\n");
	else
		reply_text(r, MHD_HTTP_OK, "ready\n");
}
