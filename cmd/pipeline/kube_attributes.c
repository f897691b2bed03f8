/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of k8sattributes, as the options of --kube-... have them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/pipeline/component.h"

int kube_attributes_take_auth(struct reader *r, struct component *c, const char *path)
{
	const char *type = component_text(c, path);

	if (!type || !strcmp(type, "serviceAccount"))
		return 0;
	if (!strcmp(type, "kubeConfig")) {
		if (!tree_find(&c->settings, "kube-config"))
			return pipeline_refuse(r, component_at(c, path),
					       "'auth_type: kubeConfig' takes a 'kube_config_path'");
		return 0;
	}
	return pipeline_refuse(r, component_at(c, path),
			       "'auth_type' is serviceAccount or kubeConfig here; '%s' asks a server that wants no login, "
			       "which a kubeconfig can name",
			       type);
}

static int take_waiting(struct reader *r, struct component *c)
{
	const char *timeout = component_text(c, "wait_for_metadata_timeout");
	bool waits;
	int err = component_bool(r, c, "wait_for_metadata", false, &waits);

	if (err || !waits)
		return err;
	return component_add(&c->settings, component_at(c, "wait_for_metadata"), "wait-for-metadata",
			     timeout ? timeout : "10s");
}

static int take_node(struct reader *r, struct component *c)
{
	const struct tree *at = component_at(c, "filter.node_from_env_var");
	const char *value = at && at->kind == TREE_TEXT ? getenv(at->text) : NULL;

	if (!at || component_at(c, "filter.node"))
		return 0;
	if (at->kind != TREE_TEXT)
		return pipeline_refuse(r, at, "'filter.node_from_env_var' is the name of a variable");
	if (value && *value)
		return component_add(&c->settings, at, "kube-node", value);
	return pipeline_note(r, at,
			     "the variable %s of 'filter.node_from_env_var' is not set: the node is found out otherwise",
			     at->text);
}

/* [{tag_name, key or key_regex, from}] as [ATTRIBUTE=][namespace:]KEY. */
static int take_rule(struct reader *r, struct component *c, const struct tree *rule, const char *option)
{
	const struct tree *key = tree_find(rule, "key"), *regex = tree_find(rule, "key_regex"),
			  *name = tree_find(rule, "tag_name"), *from = tree_find(rule, "from");
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	if (rule->kind != TREE_MAP || !(key ? key : regex) || (key ? key : regex)->kind != TREE_TEXT)
		return pipeline_refuse(r, rule, "a rule of 'extract' is a map with a 'key' or a 'key_regex'");
	if (from && (from->kind != TREE_TEXT || (strcmp(from->text, "pod") != 0 && strcmp(from->text, "namespace") != 0)))
		return pipeline_refuse(r, from,
				       "'from' is pod or namespace here: of nodes and owners hearth reads no labels");
	if (name && name->kind == TREE_TEXT && name->text[0] && key)
		buf_printf(&text, "%s=", name->text);
	else if (name && !key)
		return pipeline_refuse(r, name, "'tag_name' with 'key_regex': the names are those of the labels here");
	buf_puts(&text, from && !strcmp(from->text, "namespace") ? "namespace:" : "");
	buf_printf(&text, key ? "%s" : "/%s/", (key ? key : regex)->text);
	return text.failed ? -ENOMEM : component_add(&c->settings, rule, option, buf_text(&text));
}

static int take_rules(struct reader *r, struct component *c, const char *path, const char *option)
{
	const struct tree *list = component_at(c, path);
	int err = 0;

	if (list && list->kind != TREE_LIST)
		return pipeline_refuse(r, list, "'%s' is a list", path);
	for (size_t i = 0; list && i < list->count && !err; i++)
		err = take_rule(r, c, &list->items[i], option);
	return err;
}

/* By what a pod is found is no choice here: both ways are always tried. */
static int check_association(struct reader *r, const struct tree *association)
{
	const struct tree *sources = tree_find(association, "sources");
	int err = 0;

	if (!sources || sources->kind != TREE_LIST)
		return pipeline_refuse(r, association, "an association is a map with a list of 'sources'");
	for (size_t i = 0; i < sources->count && !err; i++) {
		const struct tree *from = tree_find(&sources->items[i], "from"),
				  *name = tree_find(&sources->items[i], "name");
		const char *word = name && name->kind == TREE_TEXT ? name->text : "";

		if (!from || from->kind != TREE_TEXT)
			return pipeline_refuse(r, &sources->items[i], "a source is a map with 'from' and 'name'");
		if (!strcmp(from->text, "connection"))
			err = pipeline_note(
				r, from,
				"'connection': profiles of this node come by no connection; pods are found by container.id "
				"and k8s.pod.uid");
		else if (strcmp(from->text, "resource_attribute") != 0)
			err = pipeline_refuse(r, from, "'from' is resource_attribute or connection, not '%s'", from->text);
		else if (strcmp(word, "container.id") != 0 && strcmp(word, "k8s.pod.uid") != 0)
			err = pipeline_note(r, &sources->items[i],
					    "pods are not found by '%s' but by container.id and k8s.pod.uid", word);
	}
	return err;
}

static int check_associations(struct reader *r, struct component *c)
{
	const struct tree *list = component_at(c, "pod_association");
	int err = 0;

	if (list && list->kind != TREE_LIST)
		return pipeline_refuse(r, list, "'pod_association' is a list");
	for (size_t i = 0; list && i < list->count && !err; i++)
		err = check_association(r, &list->items[i]);
	return err;
}

static int check_flags(struct reader *r, struct component *c)
{
	bool passthrough, annotations;
	int err = component_bool(r, c, "passthrough", false, &passthrough);

	if (!err && passthrough)
		return pipeline_refuse(r, component_at(c, "passthrough"),
				       "'passthrough' sends a pod's address on to a gateway that asks Kubernetes: not here, "
				       "where each node does");
	if (!err)
		err = component_bool(r, c, "extract.otel_annotations", true, &annotations);
	if (!err && !annotations && component_at(c, "extract.otel_annotations"))
		err = pipeline_note(r, component_at(c, "extract.otel_annotations"),
				    "annotations resource.opentelemetry.io/KEY are always told in hearth");
	return err;
}

/* The Collector names services that it is asked for by labels, too. */
static int take_services(struct reader *r, struct component *c)
{
	AUTO_FREE const char **texts = NULL;
	bool is_asked = false;
	size_t count;
	int err = component_texts(r, c, "extract.metadata", &texts, &count);

	for (size_t i = 0; i < count && !err; i++)
		is_asked |= !strcmp(texts[i], "service.name") || !strcmp(texts[i], "service.version");
	return err || !is_asked
		       ? err
		       : component_add(&c->settings, component_at(c, "extract.metadata"), "kube-service-labels", "true");
}

int kube_attributes_take(struct reader *r, struct component *c)
{
	int err = kube_attributes_take_auth(r, c, "auth_type");

	c->stage = STAGE_KUBERNETES;
	if (!err)
		err = check_flags(r, c);
	if (!err)
		err = take_waiting(r, c);
	if (!err)
		err = take_node(r, c);
	if (!err)
		err = take_rules(r, c, "extract.labels", "kube-label");
	if (!err)
		err = take_rules(r, c, "extract.annotations", "kube-annotation");
	if (!err)
		err = take_services(r, c);
	return err ? err : check_associations(r, c);
}
