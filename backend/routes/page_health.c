/* SPDX-License-Identifier: Apache-2.0 */
/* /healthz: whether requests are welcome. Loop's thread only. */
#include "backend/routes/handlers.h"

void page_health(struct request *r)
{
	if (r->server->stopping)
		reply_text(r, MHD_HTTP_SERVICE_UNAVAILABLE, "stopping\n");
	else
		reply_text(r, MHD_HTTP_OK, "ok\n");
}
