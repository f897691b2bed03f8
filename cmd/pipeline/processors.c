/* SPDX-License-Identifier: Apache-2.0 */
/* Processors. Each becomes a stage, or nothing where hearth does by itself what it is for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/pipeline/component.h"

static const struct component_key kube_keys[] = {
	{ "auth_type", NULL, NULL },
	{ "kube_config_path", "kube-config", NULL },
	{ "context", "kube-context", NULL },
	{ "passthrough", NULL, NULL },
	{ "wait_for_metadata", NULL, NULL },
	{ "wait_for_metadata_timeout", NULL, NULL },
	{ "watch_sync_period", NULL, "the watch goes on from where it ended" },
	{ "extract.metadata", "kube-attributes", NULL },
	{ "extract.labels", NULL, NULL },
	{ "extract.annotations", NULL, NULL },
	{ "extract.otel_annotations", NULL, NULL },
	{ "extract.deployment_name_from_replicaset", NULL,
	  "a Deployment's name is told without asking for its ReplicaSet, as this wants" },
	{ "filter.node", "kube-node", NULL },
	{ "filter.node_from_env_var", NULL, NULL },
	{ "filter.namespace", "kube-namespace", NULL },
	{ "filter.fields", NULL, "all pods of the node are known" },
	{ "filter.labels", NULL, "all pods of the node are known" },
	{ "pod_association", NULL, NULL },
	{ "exclude", NULL, "all pods of the node are known" },
	{ NULL, NULL, NULL },
};

static const struct component_type kube_attributes = {
	.class = CLASS_PROCESSOR,
	.has_metrics = true,
	.names = { "k8sattributes", "k8s_attributes" },
	.keys = kube_keys,
	.take = kube_attributes_take,
};

static const struct component_key edit_keys[] = {
	{ "attributes", NULL, NULL }, { "actions", NULL, NULL }, { "include", NULL, NULL },
	{ "exclude", NULL, NULL },    { NULL, NULL, NULL },
};

static const struct component_type resource = {
	.class = CLASS_PROCESSOR,
	.has_metrics = true,
	.names = { "resource" },
	.keys = edit_keys,
	.take = stages_take_edits,
};

static const struct component_type attributes = {
	.class = CLASS_PROCESSOR,
	.names = { "attributes" },
	.keys = edit_keys,
	.take = stages_take_edits,
	.note = "edits attributes of resources: who ran, and where; those of samples stay",
};

static const struct component_key filter_keys[] = {
	{ "profiles.include", NULL, NULL },
	{ "profiles.exclude", NULL, NULL },
	{ "profiles.profile", NULL, NULL },
	{ "profiles.profile_conditions", NULL, NULL },
	{ "profile_conditions", NULL, NULL },
	{ "error_mode", NULL, NULL },
	{ "traces", NULL, "hearth's pipelines are of profiles" },
	{ "metrics", NULL, "hearth's pipelines are of profiles" },
	{ "logs", NULL, "hearth's pipelines are of profiles" },
	{ "spans", NULL, "hearth's pipelines are of profiles" },
	{ NULL, NULL, NULL },
};

static const struct component_type filter = {
	.class = CLASS_PROCESSOR,
	.names = { "filter" },
	.keys = filter_keys,
	.take = stages_take_filter,
};

static const struct component_key limit_keys[] = {
	{ "check_interval", NULL, NULL },
	{ "limit_mib", NULL, NULL },
	{ "spike_limit_mib", NULL, NULL },
	{ "limit_percentage", NULL, NULL },
	{ "spike_limit_percentage", NULL, NULL },
	{ "min_gc_interval_when_soft_limited", NULL, "hearth has no garbage collector" },
	{ "min_gc_interval_when_hard_limited", NULL, "hearth has no garbage collector" },
	{ "ballast_size_mib", NULL, "hearth has no garbage collector" },
	{ NULL, NULL, NULL },
};

static const struct component_type memory_limiter = {
	.class = CLASS_PROCESSOR,
	.has_metrics = true,
	.names = { "memory_limiter" },
	.keys = limit_keys,
	.take = stages_take_limit,
};

static const struct component_key detect_keys[] = {
	{ "detectors", NULL, NULL },
	{ "timeout", NULL, NULL },
	{ "override", NULL, NULL },
	{ "attributes", NULL, "each detector tells what it knows" },
	{ "refresh_interval", NULL, "hosts are asked once" },
	{ "system.hostname_sources", NULL, "the host's name is the kernel's" },
	{ "system.resource_attributes", NULL, "each detector tells what it knows" },
	{ "docker.resource_attributes", NULL, "each detector tells what it knows" },
	{ "ec2.tags", NULL, "tags take Amazon's API and an account for it" },
	{ "ec2.resource_attributes", NULL, "each detector tells what it knows" },
	{ "gcp.resource_attributes", NULL, "each detector tells what it knows" },
	{ "azure.resource_attributes", NULL, "each detector tells what it knows" },
	{ "eks.resource_attributes", NULL, "each detector tells what it knows" },
	{ "eks.node_from_env_var", NULL, "the node is asked itself; Amazon's API takes an account" },
	{ "ecs.resource_attributes", NULL, "each detector tells what it knows" },
	{ "kubeadm.auth_type", NULL, NULL },
	{ "kubeadm.kube_config_path", "kube-config", NULL },
	{ "kubeadm.context", "kube-context", NULL },
	{ "kubeadm.resource_attributes", NULL, "each detector tells what it knows" },
	{ NULL, NULL, NULL },
};

static const struct component_type detection = {
	.class = CLASS_PROCESSOR,
	.has_metrics = true,
	.names = { "resourcedetection", "resource_detection" },
	.keys = detect_keys,
	.take = stages_take_detect,
};

/* --- what hearth does by itself --- */

static const struct component_key batch_keys[] = {
	{ "timeout", NULL, "a report interval is a batch" },
	{ "send_batch_size", NULL, "a report interval is a batch" },
	{ "send_batch_max_size", NULL, "max-export-bytes bounds requests" },
	{ "metadata_keys", NULL, "no stage reads headers of requests" },
	{ "metadata_cardinality_limit", NULL, "no stage reads headers of requests" },
	{ NULL, NULL, NULL },
};

static const struct component_type batch = {
	.class = CLASS_PROCESSOR,
	.has_metrics = true,
	.names = { "batch" },
	.keys = batch_keys,
	.note = "has no effect: what is sampled comes as a batch each report interval",
};

/* --- the seed's own --- */

static const struct component_key custom_keys[] = { { "foo", NULL, NULL }, { NULL, NULL, NULL } };

static int custom_take(struct reader *r, struct component *c)
{
	const struct tree *at = component_at(c, "foo");

	if (at && at->kind != TREE_TEXT)
		return pipeline_refuse(r, at, "'foo' is a text");
	c->stage = STAGE_EDIT;
	c->edits.items = calloc(1, sizeof(*c->edits.items));
	if (!c->edits.items)
		return -ENOMEM;
	c->edits.items[c->edits.count++] = (struct stage_edit){
		.action = EDIT_UPSERT,
		.key = "foo",
		.value = { .kind = VALUE_STRING, .string = str_z(at ? at->text : "bar") },
	};
	return 0;
}

static const struct component_type custom = {
	.class = CLASS_PROCESSOR,
	.names = { "customprofilesprocessor" },
	.keys = custom_keys,
	.take = custom_take,
};

/* In the seed's quick start the exporter's name stands where the processor's should. */
static const struct component_type custom_slip = {
	.class = CLASS_PROCESSOR,
	.names = { "customprofilesexporter" },
	.keys = custom_keys,
	.take = custom_take,
	.note = "is an exporter; taken for customprofilesprocessor",
};

const struct component_type *const processor_types[] = { &kube_attributes, &detection, &resource, &attributes,	&filter,
							 &memory_limiter,  &batch,     &custom,	  &custom_slip, NULL };
