/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page and the query API, and /metrics, beside an agent in the same process: an HTTP server on a loop and a thread of
 * its own, so that neither a slow question nor a slow client holds up sampling. `hearth serve` has the same server on its
 * one loop.
 */
#ifndef HEARTH_CMD_SETUP_PAGE_H
#define HEARTH_CMD_SETUP_PAGE_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct config;
struct loop;
struct page;
struct query_thread;
struct session;

/* Whether there is something to show, and --page-address does not say that nobody is to see it. */
bool page_is_wanted(const struct session *s);

/* Warns where --page-address was given and there is nothing to show. */
void page_warn_of_nothing(const struct session *s);

/* Has records of spans, logs and exemplars that come in kept, in s->signals, where there is a page that shows them;
 * @is_read_only: shows those that were. 0 or -errno, said. */
int page_signals(struct session *s, bool is_read_only);

/* The thread that answers questions about @s->store; answers come on @loop. Logs what fails; 0 or -errno. */
int page_queries(struct session *s, struct loop *loop, bool is_live, struct query_thread **ret);

/*
 * Starts serving @s->store, if there is one, after s->agent was made, and receiving into it, or into s->received, at
 * --page-address and --http-address; /metrics at --metrics-address, /workloads at --rest-address, and hearth's own
 * profile at --pprof-address. When a port of the
 * former is taken, another is looked for and said.
 * *@ret stays NULL where all are off. Logs what fails; 0 or -errno.
 */
int page_start(struct session *s, struct page **ret);

/* Its ports: of the page (or all), of the receiver apart from it, of /metrics alone, of OTLP/gRPC, of /workloads alone, of
 * hearth's own profile. */
enum { PAGE_PORT_SHOWN, PAGE_PORT_RECEIVER, PAGE_PORT_METRICS, PAGE_PORT_GRPC, PAGE_PORT_REST, PAGE_PORT_PPROF, PAGE_PORTS };

/* Those that were taken; 0: none. Accepts NULL. */
void page_ports(const struct page *page, uint16_t ports[static PAGE_PORTS]);

/* Writes the page's address as page_url() has it, for a page that another process shows on @port. */
void page_write_url(const struct config *config, uint16_t port, struct buf *out);

/* "http://127.0.0.1:4318/"; NULL: there is no page, or @page is NULL. */
const char *page_url(const struct page *page);

/* Ends requests, for session_drain(). @page is a struct page. */
void page_stop(void *page, uint64_t deadline_ns);

/* Called before session_close(). Accepts NULL. */
void page_free(struct page *page);

#endif
