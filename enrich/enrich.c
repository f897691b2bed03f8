/* SPDX-License-Identifier: Apache-2.0 */
/* The stage keeps nothing of an interval. The table, which its threads fill, has all that it learns. */
#include "enrich/enrich.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "enrich/kube/kube.h"
#include "enrich/known/known.h"
#include "enrich/local/local.h"
#include "proto/resource_edit.h"
#include "proto/sink.h"

enum {
	LOCAL_WAIT_MS = 100, /* an interval, for containers that are new */
	MAX_ADDED = 256,     /* attributes a resource gets */
};

struct sink_enrich {
	struct sink sink;
	struct sink_ops ops; /* as those of the next sink */
	struct sink *next;   /* owned */
	struct rules *rules;
	struct known *known;
	struct kube *kube;   /* or NULL */
	struct local *local; /* or NULL */
	bool services, leaves_services;
	struct metric *unchanged;
};

/* --- one resource --- */

struct adding {
	struct resource_edit edit;
	uint32_t added; /* to this resource */
};

/* The texts of a resource that say what it is, each with a NUL. */
struct named {
	char container_id[160], pod_uid[80], unit[256], executable[256], pod[256], namespace[80];
};

static void copy_text(const struct profiles *p, const struct key_values *list, const char *key, char *out, size_t size)
{
	struct str text = profiles_value_text(p, profiles_find_key(p, list, key));

	out[0] = '\0';
	if (text.len < size && !memchr(text.data, '\0', text.len)) {
		memcpy(out, text.data, text.len);
		out[text.len] = '\0';
	}
}

/* Threads of the kernel have names too, but no file. */
static void read_named(const struct profiles *p, const struct resource_profiles *r, bool services, struct named *n)
{
	const struct key_values *list = &r->resource.attributes;

	memset(n, 0, sizeof(*n));
	copy_text(p, list, "container.id", n->container_id, sizeof(n->container_id));
	copy_text(p, list, "k8s.pod.uid", n->pod_uid, sizeof(n->pod_uid));
	if (!services)
		return;
	copy_text(p, list, "k8s.pod.name", n->pod, sizeof(n->pod));
	copy_text(p, list, "k8s.namespace.name", n->namespace, sizeof(n->namespace));
	copy_text(p, list, "systemd.unit.name", n->unit, sizeof(n->unit));
	if (profiles_find_key(p, list, "process.executable.path"))
		copy_text(p, list, "process.executable.name", n->executable, sizeof(n->executable));
}

static void add(void *arg, const char *key, const char *value, enum known_form form)
{
	struct adding *a = arg;
	const struct any_value *there = resource_edit_find(&a->edit, key);
	struct any_value text = { .kind = VALUE_STRING, .string = str_z(value) };

	if (there ? form != KNOWN_REPLACE : a->added >= MAX_ADDED)
		return;
	a->added += !there;
	if (form == KNOWN_LIST)
		resource_edit_set_list(&a->edit, str_z(key), &text.string, 1);
	else
		resource_edit_set(&a->edit, str_z(key), &text);
}

/* --- the sink --- */

/* Has containers that nobody knows yet looked up. */
static void look_up(struct sink_enrich *e, const struct profiles *p)
{
	bool is_worth_it = false;

	for (uint32_t i = 0; i < p->resource_count; i++) {
		struct named n;

		read_named(p, &p->resources[i], false, &n);
		if (n.container_id[0] && !known_has_container(e->known, n.container_id))
			is_worth_it |= local_want(e->local, n.container_id);
	}
	if (is_worth_it)
		local_wait(e->local, clock_mono_ns() + LOCAL_WAIT_MS * NSEC_PER_MSEC);
}

/* The profiles with what is known added: a reference. They go on as they are where there is no memory. */
static struct profiles *enriched(struct sink_enrich *e, struct profiles *p)
{
	struct adding a = { .edit = { .from = p } };

	for (bool more = p->resource_count; more; more = resource_edit_next(&a.edit)) {
		const struct resource_profiles *r = &p->resources[a.edit.resource];
		struct named n;

		a.added = 0;
		read_named(p, r, e->services, &n);
		known_describe(e->known,
			       &(struct known_query){ n.container_id, n.pod_uid, n.unit, n.executable, resource_events(r),
						      n.pod, n.namespace, e->leaves_services },
			       add, &a);
	}
	if (a.edit.failed)
		metric_add(e->unchanged, p->sample_events);
	return resource_edit_end(&a.edit);
}

static int enrich_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct sink_enrich *e = (struct sink_enrich *)sink;
	struct profiles *out;
	int err;

	if (e->local)
		look_up(e, p);
	out = enriched(e, p);
	err = sink_consume(e->next, out, ack);
	profiles_put(out);
	return err;
}

static int enrich_consume_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	return sink_consume_other(((struct sink_enrich *)sink)->next, signal, data, len, ack);
}

static int enrich_flush(struct sink *sink, uint64_t deadline_ns)
{
	return sink_flush(((struct sink_enrich *)sink)->next, deadline_ns);
}

static void enrich_free(struct sink *sink)
{
	struct sink_enrich *e = (struct sink_enrich *)sink;

	kube_free(e->kube);
	local_free(e->local);
	known_free(e->known);
	rules_free(e->rules);
	sink_free(e->next);
	free(e);
}

/* --- settings --- */

/* The name of this node, as the deployment's manifest tells it; in a pod the host's name is the pod's. */
static const char *node_name(const struct enrich_config *config, struct utsname *uts)
{
	static const char *const variables[] = { "KUBE_NODE_NAME", "KUBERNETES_NODE_NAME", "K8S_NODE_NAME", "NODE_NAME" };

	if (config->node)
		return config->node;
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		const char *value = getenv(variables[i]);

		if (value && *value)
			return value;
	}
	return uname(uts) ? "" : uts->nodename;
}

const char *enrich_account(const struct enrich_config *config)
{
	if (!config->pods)
		return NULL;
	return config->account ? config->account : KUBE_ACCOUNT_FOLDER;
}

/* 0; -ENOENT: there is no Kubernetes here; -errno with @error filled. */
static int find_access(const struct enrich_config *config, struct kube_access *ret, struct buf *error)
{
	int err;

	if (!config->pods)
		return -ENOENT;
	if (config->kubelet)
		err = kube_access_of_kubelet(config->kubelet, config->kubelet_ca, config->account, ret, error);
	else if (config->kube_config)
		err = kube_access_of_file(config->kube_config, config->kube_context, ret, error);
	else
		err = kube_access_of_pod(config->account, ret, error);
	if (!err && config->namespace) {
		free(ret->namespace);
		ret->namespace = strdup(config->namespace);
		err = ret->namespace ? 0 : -ENOMEM;
	}
	return err;
}

static int start_kube(struct sink_enrich *e, const struct enrich_config *config, struct metrics *metrics, struct buf *error)
{
	struct kube_config kube = { .node = NULL };
	struct utsname uts;
	int err = find_access(config, &kube.access, error);

	if (err)
		return err == -ENOENT && !error->len ? 0 : err;
	kube.node = node_name(config, &uts);
	return kube_new(&kube, e->known, e->rules, metrics, &e->kube, error);
}

int sink_enrich_new(const struct enrich_config *config, struct sink *next, struct metrics *metrics, struct sink **ret,
		    struct buf *error)
{
	struct sink_enrich *e = calloc(1, sizeof(*e));
	int err;

	if (!e) {
		sink_free(next);
		return -ENOMEM;
	}
	e->ops = (struct sink_ops){
		.name = next->ops->name,
		.durable = next->ops->durable,
		.consume = enrich_consume,
		.consume_other = enrich_consume_other,
		.flush = enrich_flush,
		.free = enrich_free,
	};
	e->sink.ops = &e->ops;
	e->next = next;
	e->services = config->services;
	e->leaves_services = config->leaves_services;
	e->unchanged = metrics_counter(metrics, "hearth_enrich_failed_samples_total", NULL,
				       "Samples that went on without what is known of their process, for want of memory.");
	err = rules_new(&config->rules, &e->rules, error);
	if (!err)
		err = known_new(e->rules, metrics, &e->known);
	if (!err && config->containers)
		err = local_new(config->host_root, e->known, metrics, &e->local);
	if (!err)
		err = start_kube(e, config, metrics, error);
	if (err) {
		enrich_free(&e->sink);
		return err;
	}
	*ret = &e->sink;
	return 0;
}

int sink_enrich_wait(struct sink *sink, uint64_t deadline_ns, struct buf *why)
{
	struct sink_enrich *e = (struct sink_enrich *)sink;

	return e->kube ? kube_wait(e->kube, deadline_ns, why) : 0;
}

int enrich_server(const struct enrich_config *config, struct buf *url)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct kube_access access = { 0 };
	int err = find_access(config, &access, &error);

	if (!err)
		buf_puts(url, access.url);
	kube_access_fini(&access);
	return err;
}

int enrich_ask_kubernetes(const struct enrich_config *config, const char *path, uint64_t timeout_ns, struct buf *out)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct enrich_config asked = *config;
	struct kube_access access;
	int err;

	asked.pods = true;
	asked.kubelet = NULL; /* which knows pods alone */
	err = find_access(&asked, &access, &error);
	if (err && error.len)
		log_warn("%s", buf_text(&error));
	return err ? err : kube_ask(&access, path, timeout_ns, out);
}

/* --- hearth check --- */

int enrich_check_kubernetes(const struct enrich_config *config, struct buf *found)
{
	struct kube_config kube = { .node = NULL };
	struct utsname uts;
	int err = find_access(config, &kube.access, found);

	if (err == -ENOENT && !found->len) {
		buf_puts(found, "this is no pod, and no --kube-config is given");
		return 0;
	}
	if (err)
		return err;
	kube.node = node_name(config, &uts);
	err = kube_try(&kube, found);
	return err ? err : 1;
}

int enrich_check_containers(const struct enrich_config *config, struct buf *found)
{
	local_describe(config->host_root, found);
	return strcmp(buf_text(found), "none") != 0;
}
