/* SPDX-License-Identifier: Apache-2.0 */
/* From what is known of a process's pod and container to attributes. No state; the table's lock is held. */
#ifndef HEARTH_ENRICH_KNOWN_DESCRIBE_H
#define HEARTH_ENRICH_KNOWN_DESCRIBE_H

#include "enrich/known/known.h"

struct findings { /* all borrowed; NULL: not known */
	const struct known_query *query;
	const struct rules *rules;
	const char *cluster_uid;
	const char *node, *node_uid; /* the node that was asked for, and its uid; "": not known */
	struct pod *pod;
	const struct pod_container *container; /* of the pod */
	const struct pod *namespace;	       /* its attributes */
	struct container *local;
};

void describe(const struct findings *f, known_emit emit, void *arg);

/* Sets the owner of the pod's owner. */
void pod_set_top(struct pod *p, enum pod_top state, const char *kind, const char *name, const char *uid);

/* What can be told of it without reading the owner: a ReplicaSet whose pods have the label that only Deployments give is
 * called after its Deployment and that label's value. */
void pod_guess_top(struct pod *p);

#endif
