/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that answer on the paths of routes.c. Each runs on the loop's thread, with the whole request there, and
 * decides the reply, now or later.
 */
#ifndef HEARTH_BACKEND_ROUTES_HANDLERS_H
#define HEARTH_BACKEND_ROUTES_HANDLERS_H

#include "backend/http/http.h"

/* OTLP. */
void receiver_begin(struct request *r);
void receiver_take(struct request *r);

void page_metrics(struct request *r);
void page_health(struct request *r);
void page_ready(struct request *r);
void page_workloads(struct request *r);
void page_workload(struct request *r);
void page_file(struct request *r);
/* The form that a browser without a token is shown instead of the page. */
void page_login_form(struct request *r);

const char *page_api_params(const struct request *r);
void page_api(struct request *r);
void page_api_clear(struct request *r);
/* Asks the store for a profile of hearth itself, of the time to come. */
void page_api_own(struct request *r);
/* The length of a live profile's window by the parameter seconds=@text (NULL: not given). False: it is wrong, which is
 * answered. */
bool page_api_seconds(struct request *r, const char *text, uint64_t *ret);
/* Answers what pprof's tools may ask for beside the profile; false: it is something else. */
bool page_api_pprof_extra(struct request *r);
/* Asks the API for the request's path with @params (copied). */
void page_api_question(struct request *r, const struct query_param *params, size_t count);
/* Has the symbols in *@fd (taken over, -1 then) read; the answer comes later. */
void page_api_symbols(struct request *r, int *fd, enum ingest_encoding encoding);
/* Takes back the question of a request that ends. */
void page_api_cancel(struct request *r);

/* /debug/pprof/ and below: the page's, or hearth's own profile at an address of its own, whose other paths are answered with
 * a line that says what is there instead. */
#define PAGE_PPROF_INSTEAD                                                                                        \
	"404 not found: here are /debug/pprof/, /debug/pprof/profile?seconds=N (the CPU time of hearth itself), " \
	"/debug/pprof/cmdline and /debug/pprof/symbol\n"
const char *page_pprof_params(const struct request *r);
void page_pprof(struct request *r);
void page_pprof_cancel(struct request *r);

void page_connect_begin(struct request *r);
void page_connect(struct request *r);

void page_symbols_begin(struct request *r);
void page_symbols_write(struct request *r, const char *data, size_t len);
void page_symbols(struct request *r);
/* Gives back what the request had for its file. */
void page_symbols_end(struct request *r);

#endif
