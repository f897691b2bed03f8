/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kubeconfig: the cluster and the user that a context names. Relative paths are below the file's folder, as kubectl has
 * them. Programs that make tokens (exec) and other authentication are refused: nothing is run here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text/base64.h"
#include "enrich/kube/kube.h"

enum { MAX_FILE_BYTES = 1 << 20 };

struct reading {
	yaml_document_t document;
	const char *path;
	struct buf *error;
};

static const char *text_of(const yaml_node_t *node)
{
	return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

/* The member @key of the mapping @node; NULL: there is none. */
static yaml_node_t *member(struct reading *g, const yaml_node_t *node, const char *key)
{
	if (!node || node->type != YAML_MAPPING_NODE)
		return NULL;
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
		const char *name = text_of(yaml_document_get_node(&g->document, pair->key));

		if (name && !strcmp(name, key))
			return yaml_document_get_node(&g->document, pair->value);
	}
	return NULL;
}

/* The mapping @kind of the item called @name in the list @list: clusters[name=X].cluster. */
static yaml_node_t *named(struct reading *g, const char *list, const char *kind, const char *name)
{
	const yaml_node_t *items = member(g, yaml_document_get_root_node(&g->document), list);

	for (const yaml_node_item_t *item = items && items->type == YAML_SEQUENCE_NODE ? items->data.sequence.items.start
										       : NULL;
	     item && item < items->data.sequence.items.top; item++) {
		const yaml_node_t *node = yaml_document_get_node(&g->document, *item);
		const char *is = text_of(member(g, node, "name"));

		if (is && !strcmp(is, name))
			return member(g, node, kind);
	}
	buf_printf(g->error, "%s has no %s called '%s' in %s", g->path, kind, name, list);
	return NULL;
}

/* --- values --- */

static int copy_text(struct reading *g, const yaml_node_t *node, const char *key, char **ret)
{
	const char *text = text_of(member(g, node, key));

	*ret = text && *text ? strdup(text) : NULL;
	return text && *text && !*ret ? -ENOMEM : 0;
}

static int copy_path(struct reading *g, const yaml_node_t *node, const char *key, char **ret)
{
	const char *text = text_of(member(g, node, key)), *slash = strrchr(g->path, '/');
	int len = slash ? (int)(slash - g->path + 1) : 0;

	*ret = NULL;
	if (!text || !*text)
		return 0;
	return asprintf(ret, "%.*s%s", *text == '/' ? 0 : len, g->path, text) < 0 ? -ENOMEM : 0;
}

/* Text that stands there in base64. */
static int copy_data(struct reading *g, const yaml_node_t *node, const char *key, char **ret)
{
	const char *text = text_of(member(g, node, key));
	size_t len = text ? strlen(text) : 0;

	*ret = NULL;
	if (!len)
		return 0;
	*ret = calloc(1, len + 1);
	if (!*ret)
		return -ENOMEM;
	if (base64_decode(text, len, (uint8_t *)*ret, &len)) {
		(*ret)[len] = '\0';
		return 0;
	}
	buf_printf(g->error, "%s: %s is no base64", g->path, key);
	return -EINVAL;
}

static int read_cluster(struct reading *g, const yaml_node_t *cluster, struct kube_access *ret)
{
	const char *insecure = text_of(member(g, cluster, "insecure-skip-tls-verify"));
	int err = copy_text(g, cluster, "server", &ret->url);

	if (!err)
		err = copy_path(g, cluster, "certificate-authority", &ret->ca_file);
	if (!err)
		err = copy_data(g, cluster, "certificate-authority-data", &ret->ca_pem);
	if (err)
		return err;
	if (insecure && !strcmp(insecure, "true")) {
		buf_printf(g->error,
			   "%s: insecure-skip-tls-verify is true, but hearth always checks the server's certificate; give "
			   "certificate-authority",
			   g->path);
		return -EINVAL;
	}
	if (!ret->url || (strncmp(ret->url, "https://", 8) != 0 && strncmp(ret->url, "http://", 7) != 0)) {
		buf_printf(g->error, "%s: the cluster's server is no http(s):// address", g->path);
		return -EINVAL;
	}
	for (size_t len = strlen(ret->url); len && ret->url[len - 1] == '/'; len--)
		ret->url[len - 1] = '\0';
	return 0;
}

static int read_user(struct reading *g, const yaml_node_t *user, struct kube_access *ret)
{
	static const char *const refused[] = { "exec", "auth-provider", "username" };
	int err = copy_text(g, user, "token", &ret->token);

	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		if (!member(g, user, refused[i]))
			continue;
		buf_printf(g->error,
			   "%s: the user's %s is not for hearth, which takes token, tokenFile, client-certificate and "
			   "client-key",
			   g->path, refused[i]);
		return -EINVAL;
	}
	if (!err)
		err = copy_path(g, user, "tokenFile", &ret->token_file);
	if (!err)
		err = copy_path(g, user, "client-certificate", &ret->cert_file);
	if (!err)
		err = copy_path(g, user, "client-key", &ret->key_file);
	if (!err)
		err = copy_data(g, user, "client-certificate-data", &ret->cert_pem);
	return err ? err : copy_data(g, user, "client-key-data", &ret->key_pem);
}

static int read_context(struct reading *g, const char *context, struct kube_access *ret)
{
	const char *name = context ? context
				   : text_of(member(g, yaml_document_get_root_node(&g->document), "current-context"));
	const yaml_node_t *node, *cluster, *user;
	const char *cluster_name, *user_name;
	int err;

	if (!name || !*name) {
		buf_printf(g->error, "%s has no current-context; --kube-context names one", g->path);
		return -EINVAL;
	}
	node = named(g, "contexts", "context", name);
	cluster_name = text_of(member(g, node, "cluster"));
	user_name = text_of(member(g, node, "user"));
	cluster = node ? named(g, "clusters", "cluster", cluster_name ? cluster_name : "") : NULL;
	user = cluster && user_name && *user_name ? named(g, "users", "user", user_name) : NULL;
	if (!cluster || (user_name && *user_name && !user))
		return -EINVAL;
	err = read_cluster(g, cluster, ret);
	return err ? err : read_user(g, user, ret);
}

int kube_access_of_file(const char *path, const char *context, struct kube_access *ret, struct buf *error)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct reading g = { .path = path, .error = error };
	yaml_parser_t parser;
	int err = io_read_file(path, MAX_FILE_BYTES, &text);

	*ret = (struct kube_access){ 0 };
	if (err) {
		buf_printf(error, "cannot read %s: %s", path, strerror(-err));
		return err;
	}
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)buf_text(&text), text.len);
	if (!yaml_parser_load(&parser, &g.document)) {
		buf_printf(error, "%s:%zu: %s", path, parser.problem_mark.line + 1,
			   parser.problem ? parser.problem : "is no YAML");
		yaml_parser_delete(&parser);
		return -EINVAL;
	}
	err = read_context(&g, context, ret);
	yaml_document_delete(&g.document);
	yaml_parser_delete(&parser);
	if (err)
		kube_access_fini(ret);
	return err;
}
