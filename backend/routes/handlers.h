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

void page_api(struct request *r);
void page_api_clear(struct request *r);
/* Asks the API for the request's path with @params (copied). */
void page_api_question(struct request *r, const struct query_param *params, size_t count);
/* Has the symbols in *@fd (taken over, -1 then) read; the answer comes later. */
void page_api_symbols(struct request *r, int *fd, enum ingest_encoding encoding);
/* Takes back the question of a request that ends. */
void page_api_cancel(struct request *r);

void page_connect_begin(struct request *r);
void page_connect(struct request *r);

void page_symbols_begin(struct request *r);
void page_symbols_write(struct request *r, const char *data, size_t len);
void page_symbols(struct request *r);
/* Gives back what the request had for its file. */
void page_symbols_end(struct request *r);

#endif
