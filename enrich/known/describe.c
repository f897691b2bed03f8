/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ladder by which a process gets service.name; the first that there is counts, and what the process says of itself
 * (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES) stands before all of it:
 *
 *   the pod's annotation resource.opentelemetry.io/service.name
 *   the pod's labels app.kubernetes.io/instance and /name, if the user wants that
 *   Deployment, ReplicaSet, StatefulSet, DaemonSet, CronJob, Job, pod (also as a stage before has named it)
 *   Compose's service, the container's name
 *   the systemd unit (a service)
 *   the executable
 */
#include "enrich/known/describe.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

struct teller {
	const struct findings *f;
	known_emit emit;
	void *arg;
};

void pod_set_top(struct pod *p, enum pod_top state, const char *kind, const char *name, const char *uid)
{
	p->top_state = state;
	p->top = (struct pod_owner){ pod_add_text(p, kind, strlen(kind)), pod_add_text(p, name, strlen(name)),
				     pod_add_text(p, uid, strlen(uid)) };
}

void pod_guess_top(struct pod *p)
{
	const char *name = pod_text(p, p->owner.name), *hash = pod_text(p, p->template_hash);
	size_t len = strlen(name), hash_len = strlen(hash);
	char deployment[TEXT_MAX_BYTES + 1];

	p->top_state = POD_TOP_NONE;
	if (strcmp(pod_text(p, p->owner.kind), "ReplicaSet") != 0 || !hash_len || len < hash_len + 2 ||
	    strcmp(name + len - hash_len, hash) != 0 || name[len - hash_len - 1] != '-')
		return;
	snprintf(deployment, sizeof(deployment), "%.*s", (int)(len - hash_len - 1), name);
	pod_set_top(p, POD_TOP_KNOWN, "Deployment", deployment, "");
}

/* --- one attribute --- */

static void tell_form(const struct teller *t, enum enrich_key key, const char *value, enum known_form form)
{
	if (value && *value && rules_tell(t->f->rules, key))
		t->emit(t->arg, enrich_key_names[key], value, form);
}

static void tell(const struct teller *t, enum enrich_key key, const char *value)
{
	tell_form(t, key, value, KNOWN_TEXT);
}

/* --- images: [HOST[:PORT]/]PATH[:TAG][@DIGEST] --- */

struct image {
	char name[TEXT_MAX_BYTES + 1], tag[TEXT_MAX_BYTES + 1], digest[TEXT_MAX_BYTES + 1];
};

static void split_image(const char *text, struct image *image)
{
	const char *at = strchr(text, '@'), *end = at ? at : text + strlen(text);
	const char *slash = memrchr(text, '/', (size_t)(end - text)), *last = slash ? slash : text;
	const char *colon = memchr(last, ':', (size_t)(end - last));

	memset(image, 0, sizeof(*image));
	if (!strncmp(text, "sha256:", 7)) { /* an image that has no name */
		snprintf(image->digest, sizeof(image->digest), "%s", text);
		return;
	}
	snprintf(image->name, sizeof(image->name), "%.*s", (int)((colon ? colon : end) - text), text);
	snprintf(image->digest, sizeof(image->digest), "%s", at ? at + 1 : "");
	if (colon)
		snprintf(image->tag, sizeof(image->tag), "%.*s", (int)(end - colon - 1), colon + 1);
	else if (!at && *text)
		snprintf(image->tag, sizeof(image->tag), "latest"); /* what runtimes take then */
}

static void tell_image(const struct teller *t, const char *text)
{
	struct image image;

	split_image(text, &image);
	tell(t, ENRICH_IMAGE_NAME, image.name);
	tell(t, ENRICH_IMAGE_TAG, image.tag);
}

/* service.version by the image: tag, digest, or TAG@DIGEST. */
static void tell_image_version(const struct teller *t, const char *text)
{
	char version[2 * TEXT_MAX_BYTES + 3];
	struct image image;

	split_image(text, &image);
	snprintf(version, sizeof(version), "%s%s%s", image.tag, image.tag[0] && image.digest[0] ? "@" : "", image.digest);
	tell(t, ENRICH_SERVICE_VERSION, version);
}

/* NAME@DIGEST of an image id, docker-pullable://NAME@DIGEST; an id without a name is none. */
static void tell_digest(const struct teller *t, const char *id)
{
	const char *scheme = strstr(id, "://"), *text = scheme ? scheme + 3 : id;

	if (strchr(text, '@') && *text != '@')
		tell_form(t, ENRICH_IMAGE_DIGESTS, text, KNOWN_LIST);
}

/* --- owners --- */

static const struct {
	const char *kind;
	enum enrich_key name, uid;
} owner_kinds[] = {
	/* in the order of the ladder */
	{ "Deployment", ENRICH_DEPLOYMENT_NAME, ENRICH_DEPLOYMENT_UID },
	{ "ReplicaSet", ENRICH_REPLICASET_NAME, ENRICH_REPLICASET_UID },
	{ "StatefulSet", ENRICH_STATEFULSET_NAME, ENRICH_STATEFULSET_UID },
	{ "DaemonSet", ENRICH_DAEMONSET_NAME, ENRICH_DAEMONSET_UID },
	{ "CronJob", ENRICH_CRONJOB_NAME, ENRICH_CRONJOB_UID },
	{ "Job", ENRICH_JOB_NAME, ENRICH_JOB_UID },
};

/* The owner of @p of this kind; NULL: none. */
static const struct pod_owner *owner_of_kind(const struct pod *p, const char *kind)
{
	if (p->top_state == POD_TOP_KNOWN && !strcmp(pod_text(p, p->top.kind), kind))
		return &p->top;
	return p->owner.name && !strcmp(pod_text(p, p->owner.kind), kind) ? &p->owner : NULL;
}

static void tell_owners(const struct teller *t, const struct pod *p)
{
	for (size_t i = 0; i < ARRAY_LEN(owner_kinds); i++) {
		const struct pod_owner *owner = owner_of_kind(p, owner_kinds[i].kind);

		if (!owner)
			continue;
		tell(t, owner_kinds[i].name, pod_text(p, owner->name));
		tell(t, owner_kinds[i].uid, pod_text(p, owner->uid));
	}
}

/* --- pods --- */

static void tell_pod(const struct teller *t, const struct pod *p)
{
	bool is_static = p->static_uid && !strcmp(pod_text(p, p->static_uid), t->f->query->pod_uid);

	tell(t, ENRICH_NAMESPACE_NAME, pod_text(p, p->namespace));
	tell(t, ENRICH_POD_NAME, pod_text(p, p->name));
	tell_form(t, ENRICH_POD_UID, pod_text(p, p->uid), is_static ? KNOWN_REPLACE : KNOWN_TEXT);
	tell(t, ENRICH_POD_START_TIME, pod_text(p, p->start_time));
	tell(t, ENRICH_POD_HOSTNAME, pod_text(p, p->hostname));
	tell(t, ENRICH_POD_IP, pod_text(p, p->ip));
	tell_owners(t, p);
	tell(t, ENRICH_NODE_NAME, pod_text(p, p->node));
	if (!strcmp(t->f->node, pod_text(p, p->node)))
		tell(t, ENRICH_NODE_UID, t->f->node_uid);
	tell(t, ENRICH_CLUSTER_UID, t->f->cluster_uid);
}

static void tell_attributes(const struct teller *t, const struct pod *p)
{
	for (uint32_t i = 0; p && i < p->attribute_count; i++)
		t->emit(t->arg, pod_text(p, p->attributes[i].key), pod_text(p, p->attributes[i].value), KNOWN_TEXT);
}

static void tell_pod_container(const struct teller *t, const struct pod *p, const struct pod_container *c)
{
	tell(t, ENRICH_CONTAINER_NAME, pod_text(p, c->name));
	tell_image(t, pod_text(p, c->image));
	tell_digest(t, pod_text(p, c->image_id));
}

static void name_service_by_pod(const struct teller *t, const struct pod *p)
{
	const struct pod_owner *owner;

	if (rules_use_service_labels(t->f->rules)) {
		tell(t, ENRICH_SERVICE_NAME, pod_text(p, p->instance));
		tell(t, ENRICH_SERVICE_NAME, pod_text(p, p->app));
		tell(t, ENRICH_SERVICE_VERSION, pod_text(p, p->version));
	}
	for (size_t i = 0; i < ARRAY_LEN(owner_kinds); i++) {
		owner = owner_of_kind(p, owner_kinds[i].kind);
		if (owner)
			tell(t, ENRICH_SERVICE_NAME, pod_text(p, owner->name));
	}
	tell(t, ENRICH_SERVICE_NAME, pod_text(p, p->name));
	tell(t, ENRICH_SERVICE_NAMESPACE, pod_text(p, p->namespace));
}

static void tell_instance(const struct teller *t, const char *namespace, const char *pod, const char *container)
{
	char instance[3 * TEXT_MAX_BYTES + 3];

	if (!*namespace || !*pod || !*container)
		return;
	snprintf(instance, sizeof(instance), "%s.%s.%s", namespace, pod, container);
	tell(t, ENRICH_SERVICE_INSTANCE, instance);
}

/* --- containers by the host's files --- */

static void tell_local(const struct teller *t, const struct container *c)
{
	const char *name = container_text(c, c->name);

	tell(t, ENRICH_NAMESPACE_NAME, container_text(c, c->namespace));
	tell(t, ENRICH_POD_NAME, container_text(c, c->pod));
	tell(t, ENRICH_POD_UID, container_text(c, c->pod_uid));
	tell(t, ENRICH_CONTAINER_NAME, container_text(c, c->pod_container));
	if (!c->pod)
		tell(t, ENRICH_LOCAL_NAME, name);
	if (c->image)
		tell_image(t, container_text(c, c->image));
}

static void name_service_by_local(const struct teller *t, const struct container *c)
{
	tell(t, ENRICH_SERVICE_NAME, container_text(c, c->pod));
	tell(t, ENRICH_SERVICE_NAME, container_text(c, c->service));
	tell(t, ENRICH_SERVICE_NAME, container_text(c, c->name));
	tell(t, ENRICH_SERVICE_NAMESPACE, container_text(c, c->pod ? c->namespace : c->project));
	if (c->image)
		tell_image_version(t, container_text(c, c->image));
	tell_instance(t, container_text(c, c->namespace), container_text(c, c->pod), container_text(c, c->pod_container));
}

/* --- the rest --- */

/* A unit that is a service of the system or of a user; what holds a user's session is none. */
static void name_service_by_unit(const struct teller *t, const char *unit)
{
	static const char suffix[] = ".service";
	size_t len = strlen(unit), suffix_len = sizeof(suffix) - 1;
	char name[256];

	if (len <= suffix_len || len - suffix_len >= sizeof(name) || strcmp(unit + len - suffix_len, suffix) != 0 ||
	    !strncmp(unit, "user@", 5))
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(len - suffix_len), unit);
	tell(t, ENRICH_SERVICE_NAME, name);
}

void describe(const struct findings *f, known_emit emit, void *arg)
{
	const struct teller t = { f, emit, arg };
	const struct pod *p = f->pod;

	if (p) {
		tell_pod(&t, p);
		if (f->container)
			tell_pod_container(&t, p, f->container);
	}
	if (f->local)
		tell_local(&t, f->local);
	tell_attributes(&t, p); /* service.name by annotation among them */
	tell_attributes(&t, f->namespace);
	if (p)
		name_service_by_pod(&t, p);
	if (p && f->container) {
		tell_image_version(&t, pod_text(p, f->container->image));
		tell_instance(&t, pod_text(p, p->namespace), pod_text(p, p->name), pod_text(p, f->container->name));
	}
	if (f->local && !(f->local->pod && f->query->leaves_services_of_pods))
		name_service_by_local(&t, f->local);
	tell(&t, ENRICH_SERVICE_NAME, f->query->pod);
	tell(&t, ENRICH_SERVICE_NAMESPACE, f->query->namespace);
	name_service_by_unit(&t, f->query->unit);
	tell(&t, ENRICH_SERVICE_NAME, f->query->executable);
}
