/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stage that says what a process belongs to: pod, container, service. It is a sink that holds a sink: each resource that
 * names a container (container.id), a pod (k8s.pod.uid), a unit (systemd.unit.name) or an executable gets the attributes
 * that are known of it; one that is there stays. Nothing else of the profiles changes, and they are not copied.
 *
 * consume() runs in the producer's thread and never waits for the network; a container that is new may be waited for as long
 * as its files take to be read, a tenth of a second at most an interval. Needs no privilege; what it may not read it does
 * without.
 */
#ifndef HEARTH_ENRICH_ENRICH_H
#define HEARTH_ENRICH_ENRICH_H

#include <stdbool.h>
#include <stdint.h>

#include "enrich/known/rules.h"

struct buf;
struct metrics;
struct sink;

struct enrich_config {				/* texts are borrowed until the stage is freed; NULL: not given */
	bool pods;				/* where this is a pod, or a kubeconfig is named */
	const char *kube_config, *kube_context; /* a kubeconfig and the context in it */
	const char *kubelet, *kubelet_ca;	/* ask the kubelet at this address, not the API server */
	const char *account;			/* the folder of the service account; NULL: the usual one */
	const char *node;			/* the name of this node; NULL: by the environment */
	const char *namespace;			/* only pods of this one */
	bool containers;			/* look into the host's files */
	const char *host_root;			/* where they are; NULL: found out */
	bool services;				/* units and executables name services, too */
	bool leaves_services; /* a stage behind this one names services of pods, which only it may know well */
	struct rules_config rules;
};

struct sink_enrich;

/*
 * Makes the stage in front of @next, which it owns from the call on, also when that fails. Starts threads. 0; -EINVAL (the
 * configuration is wrong) or another -errno, with @error filled.
 */
int sink_enrich_new(const struct enrich_config *config, struct sink *next, struct metrics *metrics, struct sink **ret,
		    struct buf *error);

/* Waits until the pods of the node are known, if it follows any, until @deadline_ns (CLOCK_MONOTONIC). 0, or -ETIMEDOUT with
 * @why filled. */
int sink_enrich_wait(struct sink *sink, uint64_t deadline_ns, struct buf *why);

/* The folder with the account by which Kubernetes is asked; NULL: none is. Borrowed from @config, or for ever. */
const char *enrich_account(const struct enrich_config *config);

/* Appends the address of the server that is asked for pods: the API's, or the kubelet's. 0; -ENOENT: none is; -errno. */
int enrich_server(const struct enrich_config *config, struct buf *url);

/* Asks the API server for the object at @path, once, and appends it to @out; @timeout_ns bounds the wait. 0; -ENOENT: there
 * is no Kubernetes here, or no such object; another -errno, which it has logged. */
int enrich_ask_kubernetes(const struct enrich_config *config, const char *path, uint64_t timeout_ns, struct buf *out);

/* Looks, for `hearth check`, at what there is. Each appends one line to @found. 1: it is there; 0: it is not, and @found
 * says why; -errno: it is there and cannot be used. */
int enrich_check_kubernetes(const struct enrich_config *config, struct buf *found);
int enrich_check_containers(const struct enrich_config *config, struct buf *found);

#endif
