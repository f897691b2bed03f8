/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the differences of two selections that are more than noise, judged as `hearth diff` judges runs (proto/sums/diff.h):
 * each side is cut into pieces of time with about as many samples each, and these pieces are its runs.
 */
#ifndef HEARTH_BACKEND_API_API_NOISE_H
#define HEARTH_BACKEND_API_API_NOISE_H

#include "backend/api/api_call.h"
#include "proto/sums/diff.h"

struct noise {
	struct diff *diff;		  /* owned */
	const struct diff_result *result; /* NULL: not asked for, or a side has nothing */
	uint32_t *numbers;		  /* by function, the judge's number of it and 1; 0: it has none */
	uint32_t number_count;
};

/* Judges @a and @b when the parameter "noise" asks for it. 0, -ENOMEM or what the store said; noise_fini() in any case. */
int noise_read(struct noise *n, struct api_call *call, const struct query *a, const struct query *b);
void noise_fini(struct noise *n);

/* The judge's result for @function; NULL: there is none. */
const struct diff_function *noise_of(const struct noise *n, uint32_t function);

/* The part p of both sides on average that @function takes with what it calls, and k, such that noise reaches k * sqrt(p *
 * (1 - p)) around its difference; 0: not known. @arg is a struct noise. */
double noise_part(const void *arg, uint32_t function);
double noise_factor(const void *arg, uint32_t function);

/* Writes the member "noise" of the object that @j is in, where it was asked for. */
void noise_write(const struct noise *n, struct json *j);

#endif
