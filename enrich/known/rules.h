/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes that are told of pods and containers, and which labels and annotations become attributes. Unchanging once
 * made, but its patterns: those belong to the thread that reads pods. */
#ifndef HEARTH_ENRICH_KNOWN_RULES_H
#define HEARTH_ENRICH_KNOWN_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* All keys that may be told, and whether they are when nobody chose. The names are those of OpenTelemetry's conventions and
 * of the Collector's k8sattributes. */
#define ENRICH_KEYS(KEY)                                          \
	KEY(NAMESPACE_NAME, "k8s.namespace.name", true)           \
	KEY(POD_NAME, "k8s.pod.name", true)                       \
	KEY(POD_UID, "k8s.pod.uid", true)                         \
	KEY(POD_START_TIME, "k8s.pod.start_time", true)           \
	KEY(POD_HOSTNAME, "k8s.pod.hostname", false)              \
	KEY(POD_IP, "k8s.pod.ip", false)                          \
	KEY(DEPLOYMENT_NAME, "k8s.deployment.name", true)         \
	KEY(DEPLOYMENT_UID, "k8s.deployment.uid", false)          \
	KEY(REPLICASET_NAME, "k8s.replicaset.name", false)        \
	KEY(REPLICASET_UID, "k8s.replicaset.uid", false)          \
	KEY(STATEFULSET_NAME, "k8s.statefulset.name", true)       \
	KEY(STATEFULSET_UID, "k8s.statefulset.uid", false)        \
	KEY(DAEMONSET_NAME, "k8s.daemonset.name", true)           \
	KEY(DAEMONSET_UID, "k8s.daemonset.uid", false)            \
	KEY(JOB_NAME, "k8s.job.name", true)                       \
	KEY(JOB_UID, "k8s.job.uid", false)                        \
	KEY(CRONJOB_NAME, "k8s.cronjob.name", true)               \
	KEY(CRONJOB_UID, "k8s.cronjob.uid", false)                \
	KEY(NODE_NAME, "k8s.node.name", true)                     \
	KEY(NODE_UID, "k8s.node.uid", false)                      \
	KEY(CLUSTER_UID, "k8s.cluster.uid", true)                 \
	KEY(CONTAINER_NAME, "k8s.container.name", true)           \
	KEY(IMAGE_NAME, "container.image.name", true)             \
	KEY(IMAGE_TAG, "container.image.tag", true)               \
	KEY(IMAGE_DIGESTS, "container.image.repo_digests", false) \
	KEY(LOCAL_NAME, "container.name", true)                   \
	KEY(SERVICE_NAME, "service.name", true)                   \
	KEY(SERVICE_NAMESPACE, "service.namespace", true)         \
	KEY(SERVICE_VERSION, "service.version", true)             \
	KEY(SERVICE_INSTANCE, "service.instance.id", true)

enum enrich_key {
#define ENRICH_KEY_NUMBER(word, name, usual) ENRICH_##word,
	ENRICH_KEYS(ENRICH_KEY_NUMBER) ENRICH_KEY_COUNT
#undef ENRICH_KEY_NUMBER
};

extern const char *const enrich_key_names[ENRICH_KEY_COUNT];

enum rule_source { RULE_POD_LABEL, RULE_POD_ANNOTATION, RULE_NAMESPACE_LABEL, RULE_NAMESPACE_ANNOTATION };

struct rules_config {
	const char *const *keys; /* names out of ENRICH_KEYS, `all`, or -NAME to leave one of the usual out; borrowed */
	size_t key_count;	 /* 0: the usual ones */
	const char *const *labels, *const *annotations; /* [ATTRIBUTE=][namespace:]KEY, KEY being a name or /PATTERN/ */
	size_t label_count, annotation_count;
	bool service_labels; /* services are named by app.kubernetes.io/{instance,name,version}, too */
};

struct rules;

/* 0; -ENOMEM; -EINVAL with what is wrong in @error. */
int rules_new(const struct rules_config *config, struct rules **ret, struct buf *error);
void rules_free(struct rules *r);

bool rules_tell(const struct rules *r, enum enrich_key key);
bool rules_use_service_labels(const struct rules *r);

/* Whether anything of namespaces is wanted. */
bool rules_want_namespaces(const struct rules *r);

/* Writes the next attribute that the label or annotation @key of @source becomes into @out (emptied before), each once. @at:
 * 0 at first, then as it was left. False: there is no further one. */
bool rules_attribute(struct rules *r, enum rule_source source, const char *key, size_t len, size_t *at, struct buf *out);

#endif
