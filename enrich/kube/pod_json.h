/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one object of the API server: a pod, or any other by its metadata (ReplicaSet, Job, Namespace); an event of a watch;
 * the head of a list. Nothing in it is trusted; what is not wanted is passed over and takes no memory. No state.
 */
#ifndef HEARTH_ENRICH_KUBE_POD_JSON_H
#define HEARTH_ENRICH_KUBE_POD_JSON_H

#include <stddef.h>

#include "enrich/known/pod.h"
#include "enrich/known/rules.h"

enum { KUBE_VERSION_BYTES = 128, KUBE_CONTINUE_BYTES = 4096 };

/*
 * Reads the object @json. @is_namespace: labels and annotations go by the rules of namespaces, else by those of pods.
 * @version_ret (may be NULL): its resourceVersion, "" where there is none. Returns the object, the caller's; NULL with @why
 * (a literal) set: it is none, or there is no memory.
 */
struct pod *pod_read_json(const void *json, size_t len, struct rules *rules, bool is_namespace,
			  char version_ret[KUBE_VERSION_BYTES], const char **why);

enum kube_event { KUBE_OTHER, KUBE_PUT, KUBE_DELETED, KUBE_BOOKMARK, KUBE_ERROR };

/* One event of a watch. */
struct kube_watch_event {
	enum kube_event type;
	const void *object; /* inside the text that was read */
	size_t object_len;
};

/* False with *@why: it is none. */
bool kube_read_event(const void *json, size_t len, struct kube_watch_event *ret, const char **why);

/* The facts of a Status: its code (0: none) and its message, cut to fit. False: it is no object. */
bool kube_read_status(const void *json, size_t len, int *code_ret, char *message_ret, size_t message_size);

/* The metadata of a list. */
struct kube_list_head {
	char version[KUBE_VERSION_BYTES], next[KUBE_CONTINUE_BYTES];
};

/* False: it is no object, or the values do not fit. */
bool kube_read_list_head(const void *json, size_t len, struct kube_list_head *ret);

#endif
