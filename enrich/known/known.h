/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of what is known of pods and containers. Two kinds of threads use it: those that learn (of the API server, of
 * the host's files) put objects in, and whoever has profiles asks what a process belongs to. One lock, never held over a
 * wait. A pod that has gone stays for two minutes, as its samples come late.
 */
#ifndef HEARTH_ENRICH_KNOWN_KNOWN_H
#define HEARTH_ENRICH_KNOWN_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "enrich/known/container.h"
#include "enrich/known/pod.h"
#include "enrich/known/rules.h"

struct known;
struct metrics;

enum {
	KNOWN_KEEP_S = 120,	    /* a pod that has gone */
	KNOWN_MAX_PODS = 20000,	    /* further ones are counted as too many */
	KNOWN_MAX_CONTAINERS = 4096 /* of the host's files */
};

/* @rules are borrowed. 0 or -ENOMEM. */
int known_new(const struct rules *rules, struct metrics *metrics, struct known **ret);
void known_free(struct known *k);

/* --- learning --- */

/* Takes @p over; a pod of the same uid goes. @list_number: of the list or the watch it came by. */
void known_put_pod(struct known *k, struct pod *p, uint64_t list_number);

/* The pod @uid has gone. */
void known_pod_gone(struct known *k, const char *uid);

/* The list @list_number was whole: all pods that it did not have have gone. */
void known_end_list(struct known *k, uint64_t list_number);

/* Takes @c over. */
void known_put_container(struct known *k, struct container *c);

/* An object that would tell more about the pods that are known. */
enum known_object { KNOWN_CLUSTER, KNOWN_NODE, KNOWN_REPLICASET, KNOWN_JOB, KNOWN_NAMESPACE, KNOWN_OBJECTS };

struct known_ask {
	enum known_object object;
	char namespace[254], name[254], uid[64];
};

/* The next of them that is missing; false: none, but for those objects whose bit (1 << object) is in @not. */
bool known_next_ask(struct known *k, unsigned not, struct known_ask *ret);

/* What the API server said of it. Takes @facts over; NULL: there is no such object, or it must not be read. */
void known_answer(struct known *k, const struct known_ask *ask, struct pod *facts);

/* How many pods are there, those that have gone not counted, and how many bytes all that is known takes. */
size_t known_pod_count(struct known *k);
size_t known_memory_bytes(struct known *k);

/* --- asking --- */

/* What a resource says of itself; "" where it does not. */
struct known_query {
	const char *container_id, *pod_uid, *unit, *executable;
	uint64_t samples;	      /* that it stands for */
	const char *pod, *namespace;  /* names that the process has already, by a stage before; NULL: none */
	bool leaves_services_of_pods; /* to a stage behind */
};

enum known_form {
	KNOWN_TEXT,
	KNOWN_LIST,    /* an array with this text */
	KNOWN_REPLACE, /* a text that stands for what the resource says */
};

/* Gets attributes in the order of precedence: the first of a key counts. The texts last for the call. */
typedef void (*known_emit)(void *arg, const char *key, const char *value, enum known_form form);

/* Whether the table has the container. */
bool known_has_container(struct known *k, const char *id);

/* Tells @emit all that is known of what @query says, and counts how it was found. */
void known_describe(struct known *k, const struct known_query *query, known_emit emit, void *arg);

#endif
