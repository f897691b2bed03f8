/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /workloads, /workload/ID/functions and /workload/ID/process/PID/functions, as the collector distribution's REST exporter
 * has them. An id may have slashes in it, so a path is read from its end. Loop's thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/routes/handlers.h"
#include "backend/compat/workloads.h"
#include "base/cleanup.h"
#include "base/text/parse.h"

#define BELOW	  "/workload/"
#define FUNCTIONS "/functions"
#define PROCESS	  "/process/"

static void answer(struct request *r, int error)
{
	if (error == -ENOENT) {
		buf_reset(&r->reply.body);
		reply_text(r, MHD_HTTP_NOT_FOUND, "404 no such workload or process");
	} else {
		reply_body(r, error ? MHD_HTTP_INTERNAL_SERVER_ERROR : MHD_HTTP_OK, CONTENT_TYPE_JSON);
	}
}

static void not_kept(struct request *r)
{
	reply_text(r, MHD_HTTP_NOT_FOUND, "404 workloads are not kept here: start with --workloads or --rest-address");
}

void page_workloads(struct request *r)
{
	if (r->server->workloads)
		answer(r, workloads_write(r->server->workloads, &r->reply.body));
	else
		not_kept(r);
}

/* Cuts "/process/PID" off the end of @id. False when there is none; *@pid_ret is UINT64_MAX when PID is no number. */
static bool cut_process(char *id, uint64_t *pid_ret)
{
	char *slash = strrchr(id, '/');
	size_t len = strlen(PROCESS) - 1; /* "/process", which the last slash follows */

	if (!slash || (size_t)(slash - id) <= len || memcmp(slash - len, PROCESS, len) != 0)
		return false;
	if (parse_u64(slash + 1, pid_ret) || *pid_ret > INT64_MAX)
		*pid_ret = UINT64_MAX;
	slash[-(ptrdiff_t)len] = '\0';
	return true;
}

void page_workload(struct request *r)
{
	AUTO_FREE char *id = strdup(r->path + strlen(BELOW));
	size_t len = id ? strlen(id) : 0;
	uint64_t pid = 0;

	if (!r->server->workloads) {
		not_kept(r);
		return;
	}
	if (!id) {
		answer(r, -ENOMEM);
		return;
	}
	if (len <= strlen(FUNCTIONS) || strcmp(id + len - strlen(FUNCTIONS), FUNCTIONS) != 0) {
		answer(r, -ENOENT);
		return;
	}
	id[len - strlen(FUNCTIONS)] = '\0';
	if (!cut_process(id, &pid))
		answer(r, workloads_write_functions(r->server->workloads, id, &r->reply.body));
	else if (pid == UINT64_MAX)
		answer(r, -ENOENT);
	else
		answer(r, workloads_write_process_functions(r->server->workloads, id, (int64_t)pid, &r->reply.body));
}
