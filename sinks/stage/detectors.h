/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts that a host tells of itself, by ways that the detectors of OpenTelemetry have: a row of DETECTORS each. Detectors of
 * a cloud ask 169.254.169.254, where every program of a machine is answered; the answer is somebody's word, so it is
 * bounded.
 */
#ifndef HEARTH_SINKS_STAGE_DETECTORS_H
#define HEARTH_SINKS_STAGE_DETECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sinks/stage/stage.h"

enum { FACTS_MAX = 32, FACT_KEY_BYTES = 128, FACT_VALUE_BYTES = 512 };

struct fact {
	char key[FACT_KEY_BYTES], value[FACT_VALUE_BYTES];
};

struct facts {
	struct fact items[FACTS_MAX];
	size_t count;
};

/* Adds @key with the @len bytes of @value, unless it is there, empty, too long, or there are too many. */
void detectors_add(struct facts *f, const char *key, const char *value, size_t len);

/* How a detector asks. */
struct detector_way {
	const char *base;	      /* where the cloud's service is; NULL: at its usual address */
	uint64_t timeout_ns;	      /* of a question */
	struct stage_kubernetes kube; /* its API server */
};

struct detector {
	const char *name;
	bool asks; /* somebody else, who may be slow */
	/* Fills @f. Nothing found is no error. */
	void (*run)(struct facts *f, const struct detector_way *way);
};

/* The detector called @name, or NULL. */
const struct detector *detector_find(const char *name);

#endif
