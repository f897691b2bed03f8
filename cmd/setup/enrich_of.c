/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/setup/enrich_of.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text/nearest.h"
#include "cmd/options/config.h"
#include "cmd/pipeline/pipelines.h"
#include "proto/sink.h"

static bool has_word(const struct string_list *words, const char *word)
{
	for (size_t i = 0; i < words->count; i++)
		if (!strcmp(words->items[i], word))
			return true;
	return false;
}

int enrich_check_options(const struct config *config)
{
	static const char *const words[] = { "pods", "containers", "services", "none" };

	for (size_t i = 0; i < config->enrich.count; i++) {
		struct nearest nearest = nearest_to(config->enrich.items[i]);
		bool is_known = false;

		for (size_t j = 0; j < ARRAY_LEN(words); j++) {
			is_known |= !strcmp(config->enrich.items[i], words[j]);
			nearest_offer(&nearest, words[j]);
		}
		if (is_known)
			continue;
		log_error("--enrich: there is no '%s'; %s%s%s", config->enrich.items[i],
			  nearest.best ? "did you mean " : "there are pods, containers, services and none",
			  nearest.best ? nearest.best : "", nearest.best ? "?" : "");
		return -EINVAL;
	}
	return 0;
}

struct enrich_config enrich_config_of(const struct config *config)
{
	return (struct enrich_config){
		.pods = has_word(&config->enrich, "pods"),
		.kube_config = config->kube_config,
		.kube_context = config->kube_context,
		.kubelet = config->kubelet,
		.kubelet_ca = config->kubelet_ca,
		.account = config->kube_account,
		.node = config->kube_node,
		.namespace = config->kube_namespace,
		.containers = has_word(&config->enrich, "containers"),
		.host_root = config->host_root,
		.services = has_word(&config->enrich, "services"),
		.rules = {
			.keys = (const char *const *)config->kube_attributes.items,
			.key_count = config->kube_attributes.count,
			.labels = (const char *const *)config->kube_labels.items,
			.label_count = config->kube_labels.count,
			.annotations = (const char *const *)config->kube_annotations.items,
			.annotation_count = config->kube_annotations.count,
			.service_labels = config->kube_service_labels,
		},
	};
}

bool enrich_asks_network(const struct config *config)
{
	return has_word(&config->enrich, "pods") && !has_word(&config->enrich, "none") &&
	       (config->kube_config || config->kubelet || getenv("KUBERNETES_SERVICE_HOST"));
}

static void wait_for_pods(const struct config *config, struct sink *sink)
{
	AUTO(buf_fini) struct buf why = BUF_EMPTY;

	if (!config->wait_for_metadata_ns)
		return;
	if (sink_enrich_wait(sink, clock_mono_ns() + config->wait_for_metadata_ns, &why))
		log_warn("the pods of this node are not known after --wait-for-metadata (%.1f s): %s; going on without them",
			 (double)config->wait_for_metadata_ns / (double)NSEC_PER_SEC, buf_text(&why));
}

static void take_part(struct enrich_config *enrich, enum enrich_part part)
{
	if (part == ENRICH_OF_AGENT) {
		enrich->pods = enrich->services = false;
		enrich->leaves_services = true;
	} else if (part == ENRICH_OF_BACKEND) {
		enrich->containers = false;
	}
}

/* With pipelines the pods are k8sattributes' business, and so are services where that is in one of them. */
static void leave_to_pipelines(struct enrich_config *enrich, const struct pipelines *pipelines)
{
	bool has_stage = pipelines_have_stage(pipelines, STAGE_KUBERNETES);

	enrich->pods = false;
	enrich->services &= !has_stage;
	enrich->leaves_services |= has_stage;
}

int enrich_stage(const struct config *config, struct sink *next, struct metrics *metrics, struct sink **ret,
		 struct buf *error)
{
	struct enrich_config enrich = enrich_config_of(config);
	int err;

	enrich.pods = enrich.services = true;
	enrich.containers = false;
	err = sink_enrich_new(&enrich, next, metrics, ret, error);
	if (err)
		return err;
	wait_for_pods(config, *ret);
	return 0;
}

int enrich_get(const void *config, const char *path, uint64_t timeout_ns, struct buf *out)
{
	const struct enrich_config enrich = enrich_config_of(config);

	return enrich_ask_kubernetes(&enrich, path, timeout_ns, out);
}

int enrich_wrap(const struct config *config, enum enrich_part part, struct metrics *metrics, struct sink **sink)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct enrich_config enrich = enrich_config_of(config);
	struct sink *next = *sink;
	int err;

	take_part(&enrich, part);
	if (config->pipelines)
		leave_to_pipelines(&enrich, config->pipelines);
	if (has_word(&config->enrich, "none") || (!enrich.pods && !enrich.containers && !enrich.services))
		return 0;
	if (enrich.containers && enrich.host_root && access(enrich.host_root, X_OK))
		log_warn("--rootfs %s: %s; containers go without the names that the runtimes' files there would tell",
			 enrich.host_root, strerror(errno));
	*sink = NULL;
	err = sink_enrich_new(&enrich, next, metrics, sink, &error);
	if (err) {
		log_error("cannot find out what processes belong to: %s", error.len ? buf_text(&error) : strerror(-err));
		return err;
	}
	wait_for_pods(config, *sink);
	return 0;
}
