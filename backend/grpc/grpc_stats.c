/* SPDX-License-Identifier: Apache-2.0 */
/* The gRPC side's counters; those of requests have the names of the HTTP side's. Series are registered once and live as long
 * as the registry. Loop's thread only. */
#include <string.h>

#include "backend/grpc/grpc_internal.h"
#include "base/metrics.h"

static const char *const cuts[GRPC_CUT_COUNT] = {
	[GRPC_CUT_FLOOD] = "flood", [GRPC_CUT_PROTOCOL] = "protocol", [GRPC_CUT_SLOW] = "slow",
	[GRPC_CUT_DEAD] = "dead",   [GRPC_CUT_MEMORY] = "memory",     [GRPC_CUT_ROOM] = "room",
};

void grpc_stats_init(struct grpc_stats *s, struct metrics *m)
{
	*s = (struct grpc_stats){ .metrics = m };
	s->connections = metrics_gauge(m, "hearth_grpc_connections", NULL, "Open gRPC connections.");
	s->calls = metrics_gauge(m, "hearth_grpc_calls", NULL, "Open gRPC calls.");
	s->received_bytes = metrics_counter(m, "hearth_received_bytes_total", NULL, "Bytes of request bodies, as sent.");
	stats_init_rejected(s->rejected, m);
	s->early_bytes = metrics_gauge(m, "hearth_grpc_early_bytes", NULL,
				       "Memory held by messages that came before there was memory for them.");
	for (int why = 0; why < GRPC_CUT_COUNT; why++) {
		struct buf labels = BUF_EMPTY;

		metrics_label(&labels, "reason", cuts[why], strlen(cuts[why]));
		s->cut[why] = metrics_counter(m, "hearth_grpc_connections_cut_total", buf_text(&labels),
					      "gRPC connections that were closed for what they did.");
		buf_fini(&labels);
	}
}

void grpc_stats_answered(struct grpc_stats *s, const struct grpc_method *method, enum grpc_code code)
{
	struct metric **series = &s->requests[method ? grpc_method_index(method) : GRPC_METHODS_MAX][code];

	if (!*series) {
		struct buf labels = BUF_EMPTY, path = BUF_EMPTY;

		if (method)
			buf_printf(&path, "/%s/%s", method->service, method->name);
		else
			buf_puts(&path, "other");
		metrics_label(&labels, "path", buf_text(&path), path.len);
		metrics_label(&labels, "code", grpc_code_name(code), strlen(grpc_code_name(code)));
		*series = metrics_counter(s->metrics, "hearth_received_requests_total", buf_text(&labels),
					  "Requests answered.");
		buf_fini(&labels);
		buf_fini(&path);
	}
	metric_add(*series, 1);
}
