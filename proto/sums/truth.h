/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How true the stacks of a capture are: complete or truncated and why, by executable and by the module where the walk ended,
 * which modules lack names, and stacks of scripts by runtime. A sample that hearth could not walk to the outermost frame
 * carries the attribute TRUTH_TRUNCATED_KEY with the reason.
 */
#ifndef HEARTH_PROTO_SUMS_TRUTH_H
#define HEARTH_PROTO_SUMS_TRUTH_H

#include "base/buf.h"
#include "proto/profiles.h"

#define TRUTH_TRUNCATED_KEY "hearth.stack.truncated"

/* A sample with functions of a script has this attribute: "RUNTIME: OUTCOME", where the runtime is that of the chain of
 * frames that came out worst, and the outcome TRUTH_SCRIPT_COMPLETE or what is wrong with the chain. */
#define TRUTH_SCRIPT_KEY      "hearth.script"
#define TRUTH_SCRIPT_COMPLETE "complete"

/* --error-frames: the outermost location of a truncated stack has this profile.frame.type, as in the OpenTelemetry profiler,
 * and its function is named after the reason (a format). */
#define TRUTH_MARKER_TYPE "abort-marker"
#define TRUTH_MARKER_NAME "[stack truncated: %s]"

struct truth;

struct truth *truth_new(void);
void truth_free(struct truth *t);
int truth_add(struct truth *t, const struct profiles *p);

/* The tables as text, the worst lines first, equal ones by name, appended to @out. 0 or -ENOMEM. */
int truth_report(struct truth *t, struct buf *out);

#endif
