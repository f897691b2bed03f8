/* SPDX-License-Identifier: Apache-2.0 */
/* Values as protobuf's JSON mapping writes them. The readers return NULL, or the error in words. */
#ifndef HEARTH_PROTO_OTLP_JSON_JSON_VALUE_H
#define HEARTH_PROTO_OTLP_JSON_JSON_VALUE_H

#include "base/text/json_read.h"

struct json_int {
	uint64_t magnitude;
	bool negative;
};

/* An integer, in quotes or not; 1.0 and 1e3 are integers too. */
const char *json_read_int(struct json_reader *r, struct json_int *ret);

/* A number, in quotes or not, or "NaN", "Infinity", "-Infinity". */
const char *json_read_double(struct json_reader *r, double *ret);

#endif
