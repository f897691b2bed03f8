/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearth's own profile at an address of its own, as programs in Go have theirs. Where there is a store it is asked
 * (page_api.c); else a request waits here, suspended, until what was sampled in its window has come. Loop's thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/compat/own_profiles.h"
#include "backend/routes/handlers.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"

#define FOLDER "/debug/pprof/"

enum {
	LOOK_MS = 50,	/* how often, from the end of the window on, whether its last samples have come */
	LATE_MS = 3000, /* then what there is is answered: nothing at all may have been sampled */
};

struct own_request {
	struct own_window window;
	struct request *request;
	struct loop_watch *timer;
	uint64_t late_ns; /* CLOCK_MONOTONIC */
};

static const char index_text[] =
	"hearth's own profile: of its own processes, and of nothing else\n\n"
	"/debug/pprof/profile?seconds=N  the CPU time of the next N seconds (30 when not given, at most 3600), as gzipped "
	"pprof:\n"
	"                                go tool pprof 'http://HOST:PORT/debug/pprof/profile?seconds=5'\n"
	"/debug/pprof/cmdline            the name of the program, without arguments, which may be secrets\n"
	"/debug/pprof/symbol             no symbols: the profile has its names\n";

static const struct reply_header headers[] = {
	{ MHD_HTTP_HEADER_CACHE_CONTROL, "no-store" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Content-Security-Policy", "default-src 'none'; sandbox" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Content-Disposition", "attachment; filename=\"hearth.pb.gz\"" },
	{ NULL, NULL },
};

static void forget(struct request *r)
{
	struct own_request *own = r->own;

	r->own = NULL;
	loop_remove(own->timer);
	free(own);
}

void page_pprof_cancel(struct request *r)
{
	page_api_cancel(r);
	if (!r->own)
		return;
	(void)own_profiles_close(r->server->own, &r->own->window, NULL);
	forget(r);
}

static void answer(struct request *r)
{
	int err = own_profiles_close(r->server->own, &r->own->window, &r->reply.body);

	if (err) {
		buf_reset(&r->reply.body);
		reply_text(r, MHD_HTTP_SERVICE_UNAVAILABLE,
			   err == -E2BIG ? "the profile takes too much memory: ask for fewer seconds\n"
					 : "no memory for this now: try again\n");
	} else {
		r->reply.headers = headers;
		reply_body(r, MHD_HTTP_OK, "application/octet-stream");
	}
	forget(r);
	request_resume(r);
}

static void on_timer(void *arg)
{
	struct own_request *own = arg;
	struct request *r = own->request;

	if (own_profiles_is_whole(r->server->own, &own->window) || clock_mono_ns() >= own->late_ns)
		answer(r);
}

static int wait_for(struct request *r, uint64_t seconds)
{
	const uint64_t from_ns = clock_unix_ns(), end_ns = clock_mono_ns() + seconds * NSEC_PER_SEC;
	struct own_request *own = calloc(1, sizeof(*own));
	int err = own ? loop_add_timer(r->server->loop, on_timer, own, &own->timer) : -ENOMEM;

	if (!err)
		err = loop_set_timer(own->timer, seconds * NSEC_PER_SEC, LOOK_MS * NSEC_PER_MSEC);
	if (!err) {
		own->window = (struct own_window){ .from_ns = from_ns,
						   .to_ns = from_ns + seconds * NSEC_PER_SEC,
						   .hides_addresses = !request_reads_addresses(r) };
		err = own_profiles_open(r->server->own, &own->window);
	}
	if (err) {
		loop_remove(own ? own->timer : NULL);
		free(own);
		return err;
	}
	own->request = r;
	own->late_ns = end_ns + LATE_MS * NSEC_PER_MSEC;
	r->own = own;
	if (r->server->window_ends)
		r->server->window_ends(r->server->window_arg, end_ns);
	return 0;
}

/* --- the paths --- */

/* A program in Go ignores what it does not know; here it would look as if a choice of other profiles had been heard. */
const char *page_pprof_params(const struct request *r)
{
	if (r->server->pages != PAGES_PPROF)
		return page_api_params(r);
	return strcmp(r->path, FOLDER "profile") ? NULL : "seconds debug";
}

static enum MHD_Result take_seconds(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
	const char **seconds = arg;

	(void)kind;
	if (!strcmp(key, "seconds"))
		*seconds = value ? value : "";
	return MHD_YES;
}

static void give_profile(struct request *r)
{
	const char *text = NULL;
	uint64_t seconds;
	int err;

	MHD_get_connection_values(r->connection->mhd, MHD_GET_ARGUMENT_KIND, take_seconds, &text);
	if (!page_api_seconds(r, text, &seconds)) {
		return;
	} else if (!r->server->queries && !r->server->own) {
		reply_text(r, MHD_HTTP_NOT_FOUND,
			   "this hearth samples nothing, so it has no profile of itself: ask a 'hearth run' on this "
			   "machine, at "
			   "its --pprof-address, or send what that samples here and look on the page\n");
	} else if (r->server->queries) {
		page_api_own(r);
	} else {
		err = wait_for(r, seconds);
		if (err) {
			r->reply.retry_after_s = 1;
			reply_text(r, MHD_HTTP_SERVICE_UNAVAILABLE,
				   err == -EAGAIN ? "too many wait for profiles at once: try again\n"
						  : "no memory for this now: try again\n");
		}
	}
}

void page_pprof(struct request *r)
{
	if (r->server->pages != PAGES_PPROF) {
		page_api(r);
	} else if (!strcmp(r->path, FOLDER)) {
		reply_text(r, MHD_HTTP_OK, index_text);
	} else if (!strcmp(r->path, FOLDER "profile")) {
		give_profile(r);
	} else if ((strcmp(r->path, FOLDER "symbol") != 0 && strcmp(r->path, FOLDER "cmdline") != 0) ||
		   !page_api_pprof_extra(r)) {
		metric_add(r->server->stats.rejected[REJECTED_PATH], 1);
		reply_text(r, MHD_HTTP_NOT_FOUND, PAGE_PPROF_INSTEAD);
	}
}
