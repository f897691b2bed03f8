/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the pods of a node through Kubernetes' API, or its kubelet's, on a thread of its own: a list, then a watch, and
 * single objects (owners, namespaces) that tell more. The table (enrich/known) gets all that it learns. Nobody waits for it
 * but who calls kube_wait(). TLS is always verified; proxies are not used.
 */
#ifndef HEARTH_ENRICH_KUBE_KUBE_H
#define HEARTH_ENRICH_KUBE_KUBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct known;
struct kube;
struct metrics;
struct rules;

/* Where a pod has its service account (kubelet, projected volume). */
#define KUBE_ACCOUNT_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

/* Where the API server is, and as whom it is asked. All texts are owned; NULL: not given. */
struct kube_access {
	char *url;		  /* https://HOST:PORT[/PATH], no slash at its end */
	char *ca_file, *ca_pem;	  /* whose certificates are trusted; neither: the system's */
	char *token_file, *token; /* the file is read again before each request */
	char *cert_file, *cert_pem, *key_file, *key_pem;
	char *namespace; /* only pods of this one; NULL: of all */
	bool is_kubelet; /* the node's kubelet, which has no watch: it is asked again and again */
};

void kube_access_fini(struct kube_access *a);

/* As pods are told by the kubelet: KUBERNETES_SERVICE_HOST and _PORT, and the files of the service account in @folder (NULL:
 * the usual one). 0; -ENOENT: this is no pod; -errno with @error filled. */
int kube_access_of_pod(const char *folder, struct kube_access *ret, struct buf *error);

/* By a kubeconfig, YAML: the context @context, or the current one when NULL. 0; -errno with @error filled. */
int kube_access_of_file(const char *path, const char *context, struct kube_access *ret, struct buf *error);

/* The kubelet at @url, with the token of the service account in @folder where there is one; @ca_file may be NULL. */
int kube_access_of_kubelet(const char *url, const char *ca_file, const char *folder, struct kube_access *ret,
			   struct buf *error);

struct kube_config {
	struct kube_access access; /* taken over by kube_new(), also when that fails */
	const char *node;	   /* its name there; borrowed for the call */
	unsigned backoff_ms;	   /* the pause after a first failure; 0: the usual one */
};

/* Starts. @known and @rules outlive it; the rules' patterns are its thread's from now on. 0 or -errno, with @error filled
 * where a file is at fault. */
int kube_new(struct kube_config *config, struct known *known, struct rules *rules, struct metrics *metrics,
	     struct kube **ret, struct buf *error);
void kube_free(struct kube *k);

/* Waits for the first list until @deadline_ns (CLOCK_MONOTONIC). 0; -ETIMEDOUT: there is none yet, and @why (may be NULL)
 * says what stands in the way. */
int kube_wait(struct kube *k, uint64_t deadline_ns, struct buf *why);

/* Asks once for the pods of the node, with the usual rules, and appends what was found, or why not, to @text, one line.
 * Takes the access over. 0 or -errno. */
int kube_try(struct kube_config *config, struct buf *text);

/* Gets the object at @path, 1 MiB at most, and appends it to @out. Waits at most @timeout_ns. Takes the access over. 0;
 * -ENOENT: there is none; another -errno, which it has logged. */
int kube_ask(struct kube_access *access, const char *path, uint64_t timeout_ns, struct buf *out);

#endif
