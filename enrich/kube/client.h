/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET requests to the API server over libcurl: TLS verified, no proxies, no redirects, the token read before each. Several
 * may be under way (a watch and what it makes necessary); all belong to one thread. Only client_wake() may be called from
 * elsewhere.
 */
#ifndef HEARTH_ENRICH_KUBE_CLIENT_H
#define HEARTH_ENRICH_KUBE_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "enrich/kube/kube.h"

struct client;

enum kube_outcome {
	KUBE_OK,
	KUBE_STOPPED,	   /* the program ends */
	KUBE_AWAY,	   /* no connection, no answer in time */
	KUBE_UNTRUSTED,	   /* its certificate is not one to trust */
	KUBE_UNAUTHORIZED, /* 401 */
	KUBE_FORBIDDEN,	   /* 403 */
	KUBE_ABSENT,	   /* 404 */
	KUBE_EXPIRED,	   /* 410 */
	KUBE_BUSY,	   /* 429 and 5xx */
	KUBE_STRANGE,	   /* another status, or an answer that is none */
	KUBE_OUTCOMES
};

struct kube_request {
	const char *path;    /* with its query; borrowed */
	bool metadata_only;  /* of the object no more than its metadata is wanted */
	uint64_t timeout_ms; /* of the whole request */
	bool is_watch;	     /* bytes may be far apart */
	/* Gets the body of an answer 200. 0, or -errno to break off. */
	int (*body)(void *arg, const char *data, size_t len);
	/* Called now and then while the request runs; may make further requests; or NULL. */
	void (*turn)(void *arg);
	void *arg;
};

struct kube_answer {
	enum kube_outcome outcome;
	int body_error;		 /* what body() returned */
	uint64_t retry_after_ns; /* 0: not said */
	char message[320];	 /* the reason, for a person */
};

/* @access and @stop are borrowed. 0; -errno: a file of the access cannot be read, said in @error. */
int client_new(const struct kube_access *access, const _Atomic bool *stop, struct client **ret, struct buf *error);
void client_free(struct client *c);

/* Makes one request and waits for its end. */
void client_get(struct client *c, const struct kube_request *request, struct kube_answer *ret);

/* Waits, at most until @deadline_ns (CLOCK_MONOTONIC) or the next client_wake(). */
void client_wait(struct client *c, uint64_t deadline_ns);

void client_wake(struct client *c);

/* The word of an outcome in the counters. */
const char *kube_outcome_name(enum kube_outcome outcome);

#endif
