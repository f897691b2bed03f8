/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spans that came through the receivers of late: what a trace's view needs of each, in memory of a fixed size, where the
 * newest take the place of the oldest. They are gone with the process. Any thread.
 */
#ifndef HEARTH_BACKEND_SPANS_SPANS_H
#define HEARTH_BACKEND_SPANS_SPANS_H

#include <stddef.h>
#include <stdint.h>

struct metrics;
struct otlp_other;

enum { SPAN_NAME_BYTES = 72, SPAN_SERVICE_BYTES = 40 }; /* longer ones are cut */

struct kept_span {
	uint8_t trace[16], span[8], parent[8]; /* parent: all 0: it has none */
	uint64_t start_ns, end_ns;	       /* Unix */
	uint8_t kind, status;		       /* as in OTLP */
	char name[SPAN_NAME_BYTES], service[SPAN_SERVICE_BYTES];
};

struct spans;

/* For @bytes of memory, which is taken as spans come. @metrics is borrowed. 0 or -ENOMEM. */
int spans_new(size_t bytes, struct metrics *metrics, struct spans **ret);
void spans_free(struct spans *s);

/* Keeps the spans of @traces, which is of OTLP_TRACES. */
void spans_keep(struct spans *s, const struct otlp_other *traces);

/* Calls @fn for each span of @trace that is kept, until it returns an error, which is returned. One that came twice is told
 * twice. @fn must not ask for more. */
int spans_of_trace(struct spans *s, const uint8_t trace[static 16], int (*fn)(void *arg, const struct kept_span *span),
		   void *arg);

#endif
