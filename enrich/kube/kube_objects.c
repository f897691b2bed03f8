/* SPDX-License-Identifier: Apache-2.0 */
/* Objects beside pods: the owners of owners, namespaces, and the one whose uid stands for the cluster. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "enrich/kube/kube_internal.h"

enum {
	OBJECT_MS = 10000,
	OBJECT_MAX_BYTES = 1 << 20,
	ASK_REST_S = 10,      /* after an object could not be read */
	REFUSED_REST_S = 600, /* after it must not be read */
};

static int take_object(void *arg, const char *data, size_t len)
{
	struct kube *k = arg;

	if (k->object.len + len > OBJECT_MAX_BYTES) {
		metric_add(k->too_large, 1);
		return -EFBIG;
	}
	buf_append(&k->object, data, len);
	return k->object.failed ? -ENOMEM : 0;
}

static const struct {
	const char *group, *plural; /* of the path, and of RBAC */
	const char *without;	    /* what is not told then */
} objects[KNOWN_OBJECTS] = {
	[KNOWN_CLUSTER] = { "/api/v1", "namespaces", "k8s.cluster.uid is not told" },
	[KNOWN_NODE] = { "/api/v1", "nodes", "k8s.node.uid is not told" },
	[KNOWN_REPLICASET] = { "/apis/apps/v1", "replicasets",
			       "Deployments are told by the names of their ReplicaSets, without uid" },
	[KNOWN_JOB] = { "/apis/batch/v1", "jobs", "k8s.cronjob.name is not told" },
	[KNOWN_NAMESPACE] = { "/api/v1", "namespaces", "labels and annotations of namespaces are not told" },
};

static void append_path(const struct known_ask *ask, struct buf *path)
{
	buf_puts(path, objects[ask->object].group);
	if (ask->namespace[0]) {
		buf_puts(path, "/namespaces/");
		buf_percent(path, ask->namespace, strlen(ask->namespace), URL_PLAIN);
	}
	buf_printf(path, "/%s/", objects[ask->object].plural);
	buf_percent(path, ask->name, strlen(ask->name), URL_PLAIN);
}

/* It must not be read: that is said once, and lived with. */
static void note_refused(struct kube *k, enum known_object object, const struct kube_answer *a)
{
	k->refused |= 1u << object;
	k->refused_until_ns = clock_mono_ns() + REFUSED_REST_S * NSEC_PER_SEC;
	if (k->said_refused & 1u << object)
		return;
	k->said_refused |= 1u << object;
	log_warn("hearth's account in Kubernetes may not get %s: %s (%s); docs/kubernetes.md has the rights it takes",
		 objects[object].plural, objects[object].without, a->message);
}

/* Asks for one object. False: it could not be read now. */
static bool ask(struct kube *k, const struct known_ask *ask)
{
	AUTO(buf_fini) struct buf path = BUF_EMPTY;
	const char *why = "";
	struct kube_answer a;
	struct pod *facts = NULL;

	if (k->access.is_kubelet || k->refused & 1u << ask->object) {
		known_answer(k->known, ask, NULL);
		return true;
	}
	append_path(ask, &path);
	buf_reset(&k->object);
	client_get(k->client,
		   &(struct kube_request){ .path = buf_text(&path),
					   .metadata_only = true,
					   .timeout_ms = OBJECT_MS,
					   .body = take_object,
					   .arg = k },
		   &a);
	kube_count_request(k, REQUEST_GET, &a);
	if (a.outcome == KUBE_FORBIDDEN)
		note_refused(k, ask->object, &a);
	else if (a.outcome == KUBE_OK)
		facts = pod_read_json(k->object.data, k->object.len, k->rules, ask->object == KNOWN_NAMESPACE, NULL, &why);
	else if (a.outcome != KUBE_ABSENT)
		return false;
	if (a.outcome == KUBE_OK && !facts)
		kube_count_garbage(k, why);
	known_answer(k->known, ask, facts);
	return true;
}

void kube_ask_all(struct kube *k)
{
	struct known_ask next;
	uint64_t now = clock_mono_ns();

	if (now < k->rest_until_ns)
		return;
	if (k->refused && now > k->refused_until_ns)
		k->refused = 0;
	while (!atomic_load(&k->stop) && known_next_ask(k->known, 0, &next)) {
		if (!ask(k, &next)) {
			k->rest_until_ns = clock_mono_ns() + ASK_REST_S * NSEC_PER_SEC;
			return;
		}
	}
}

const char *kube_object_plural(enum known_object object)
{
	return objects[object].plural;
}
