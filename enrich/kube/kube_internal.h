/* SPDX-License-Identifier: Apache-2.0 */
/* The thread's state, and the parts of its work: kube.c has its turns, kube_lists.c lists and watches, kube_objects.c single
 * objects. Everything but the fields under the lock is the thread's. */
#ifndef HEARTH_ENRICH_KUBE_KUBE_INTERNAL_H
#define HEARTH_ENRICH_KUBE_KUBE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/metrics.h"
#include "enrich/kube/client.h"
#include "enrich/kube/kube.h"
#include "enrich/kube/pieces.h"
#include "enrich/kube/pod_json.h"
#include "enrich/known/known.h"

struct kube {
	struct kube_access access;
	char *node;
	unsigned backoff_ms;
	struct known *known;
	struct rules *rules;
	struct client *client;
	pthread_t thread;
	bool is_running;
	_Atomic bool stop;
	pthread_mutex_t lock; /* ... of these four */
	pthread_cond_t changed;
	bool has_list;
	char trouble[512];
	/* the thread's */
	char version[KUBE_VERSION_BYTES]; /* from where to watch; "": a list first */
	bool is_expired;		  /* the server's cache may be too old for a list */
	uint64_t list_number;
	struct kube_list_head head; /* of the answer that is read */
	bool is_watch_over;	    /* an event said so */
	size_t count;		    /* pods of the last list */
	struct pieces pieces;
	struct buf object;
	unsigned failures;
	unsigned refused, said_refused; /* bits of enum known_object */
	uint64_t refused_until_ns, rest_until_ns;
	bool is_away;
	struct metric *requests[3], *errors[KUBE_OUTCOMES], *garbage, *too_large, *restarts, *events, *synced;
};

enum request_kind { REQUEST_LIST, REQUEST_WATCH, REQUEST_GET };

/* Lists all pods of the node, out of the server's cache where that is not too old, into the table. */
void kube_list(struct kube *k, struct kube_answer *ret);

/* Watches from where the list or the last watch ended, until the watch ends. */
void kube_watch(struct kube *k, struct kube_answer *ret);

/* Asks for all objects that tell more of what is known, unless that failed a moment ago. */
void kube_ask_all(struct kube *k);

/* The resource of an object in RBAC's words. */
const char *kube_object_plural(enum known_object object);

/* The server answers again. */
void kube_note_back(struct kube *k);

void kube_count_request(struct kube *k, enum request_kind kind, const struct kube_answer *a);
void kube_count_garbage(struct kube *k, const char *why);

/* A number below @bound, by chance. */
uint64_t kube_random_below(uint64_t bound);

#endif
