/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison whose figures are made by hand, no two alike. */
#ifndef HEARTH_TESTS_DIFF_RESULTS_H
#define HEARTH_TESTS_DIFF_RESULTS_H

#include "base/cleanup.h"
#include "proto/sums/diff.h"

enum { MAIN, PARSE, LEX, GONE, FRESH, STEADY, FUNCTIONS };

/* The whole of parse and lex differs from themselves by just more, and by just less, than the noise of the whole. */
static const struct diff_function functions[FUNCTIONS] = {
	{ "parse<int>",
	  "/usr/bin/a|b",
	  "native",
	  PARSE,
	  { 1, 1.5, 0.5, 0.04, true },
	  { 2, 2.8125, 0.8125, 0.25, true },
	  true,
	  { 1, 1.5 } },
	{ "lex",
	  "app",
	  "go",
	  LEX,
	  { 0.75, 0.5, -0.25, 0.0625, true },
	  { 0.75, 0.375, -0.375, 0.125, true },
	  true,
	  { 0.75, 0.5 } },
	{ "gone", "", "kernel", GONE, { 0.5, 0, -0.5, 0.03, true }, { 0.5, 0, -0.5, 0.03125, true }, true, { 0.5, 0 } },
	{ "fresh\033[31m",
	  "lib,\"x\".so",
	  "cpython",
	  FRESH,
	  { 0, 0.25, 0.25, 0.02, true },
	  { 0, 0.25, 0.25, 0.02, true },
	  true,
	  { 0, 0.25 } },
	{ "main", "app", "native", MAIN, { 0, 0, 0, 0.01, false }, { 4, 5.5, 1.5, 0.375, true }, true, { 0, 0 } },
	{ "steady",
	  "app",
	  "native",
	  STEADY,
	  { 0.25, 0.2578125, 0.0078125, 0.015, false },
	  { 0.25, 0.2578125, 0.0078125, 0.015, false },
	  false,
	  { 0.25, 0.2578125 } },
};

static const uint32_t paths[][3] = { { MAIN, PARSE, LEX }, { MAIN, GONE }, { MAIN, FRESH }, { MAIN, STEADY }, { PARSE } };

static const struct diff_stack stacks[] = {
	{ paths[0], 3, { 0.75, 0.5, -0.25, 0.0625, true } },
	{ paths[1], 2, { 0.5, 0, -0.5, 0.03, true } },
	{ paths[2], 2, { 0, 0.25, 0.25, 0.02, true } },
	{ NULL, 0, { 1.5, 1.75, 0.25, 0.125, true } },
	{ paths[3], 2, { 0.25, 0.25390625, 0.00390625, 0.5, false } },
	{ paths[4], 1, { 1, 1.125, 0.125, 0.25, false } },
};

static struct diff_function *by_index[FUNCTIONS];

static inline struct diff_result result(enum diff_measure measure)
{
	struct diff_result r = {
		.functions = (struct diff_function *)(uintptr_t)functions,
		.by_index = by_index,
		.stacks = (struct diff_stack *)(uintptr_t)stacks,
		.function_count = FUNCTIONS,
		.stack_count = ARRAY_LEN(stacks),
		.summary = { .runs = { 1, 3 },
			     .events = { 4000, 16500 },
			     .seconds = { 4, 5.5 },
			     .all = { 4, 5.5, 1.5, 0.5, true },
			     .judged_functions = 5,
			     .judged_stacks = 4,
			     .changed_functions = 4,
			     .changed_stacks = 4,
			     .sharpness = 0.0625,
			     .spread = 1.25,
			     .measure = measure },
	};

	for (size_t i = 0; i < FUNCTIONS; i++)
		by_index[functions[i].index] = (struct diff_function *)(uintptr_t)&functions[i];
	return r;
}

#endif
