/* SPDX-License-Identifier: Apache-2.0 */
/* Members come in any order: all are read before anything is made of them. */
#include "enrich/kube/pod_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/json_fields.h"

/* The prefix of annotations that are attributes by OpenTelemetry's convention. */
#define OTEL_PREFIX "resource.opentelemetry.io/"

struct reading {
	struct pod *pod;
	struct rules *rules;
	bool is_namespace;
	char *version;				   /* or NULL */
	struct buf attribute;			   /* scratch */
	struct pod_owner owner;			   /* that is read */
	bool is_controller;			   /* it is one */
	uint32_t name, image, image_id, id, ended; /* of the container that is read, texts of the pod */
	bool is_last;				   /* the state that is read is lastState */
	uint32_t last;
};

static bool text_is(struct json_text text, const char *word)
{
	return text.len == strlen(word) && !memcmp(text.data, word, text.len);
}

static bool read_into(struct json_reader *r, struct pod *p, uint32_t *ret)
{
	struct json_text text;

	if (!json_read_text(r, &text))
		return false;
	*ret = pod_add_text(p, text.data, text.len);
	return true;
}

/* A function that reads a text of the pod into @field. */
#define TEXT_READER(function, field)                           \
	static bool function(struct json_reader *r, void *arg) \
	{                                                      \
		struct reading *g = arg;                       \
                                                               \
		return read_into(r, g->pod, &g->field);        \
	}

/* --- metadata --- */

TEXT_READER(read_uid, pod->uid)
TEXT_READER(read_name, pod->name)
TEXT_READER(read_namespace, pod->namespace)
TEXT_READER(read_owner_kind, owner.kind)
TEXT_READER(read_owner_name, owner.name)
TEXT_READER(read_owner_uid, owner.uid)

static bool read_version(struct json_reader *r, void *arg)
{
	struct reading *g = arg;
	struct json_text text;

	if (!json_read_text(r, &text))
		return false;
	if (g->version && text.len < KUBE_VERSION_BYTES)
		snprintf(g->version, KUBE_VERSION_BYTES, "%.*s", (int)text.len, text.data);
	return true;
}

static bool read_is_controller(struct json_reader *r, void *arg)
{
	struct reading *g = arg;

	g->is_controller = false;
	return json_read_null(r) || json_read_bool(r, &g->is_controller);
}

static bool read_owner(struct json_reader *r, void *arg)
{
	static const struct json_field fields[] = {
		{ "kind", read_owner_kind },
		{ "name", read_owner_name },
		{ "uid", read_owner_uid },
		{ "controller", read_is_controller },
	};
	struct reading *g = arg;

	g->owner = (struct pod_owner){ 0 };
	g->is_controller = false;
	if (!json_read_fields(r, fields, ARRAY_LEN(fields), g))
		return false;
	if (g->is_controller)
		g->pod->owner = g->owner;
	return true;
}

static bool read_owners(struct json_reader *r, void *arg)
{
	return json_read_items(r, read_owner, arg);
}

static void add_by_rule(struct reading *g, enum rule_source source, struct json_text key, struct json_text value)
{
	for (size_t at = 0; rules_attribute(g->rules, source, key.data, key.len, &at, &g->attribute);)
		pod_add_attribute(g->pod, (const char *)g->attribute.data, g->attribute.len, value.data, value.len);
}

static void add_label(void *arg, struct json_text key, struct json_text value)
{
	struct reading *g = arg;
	struct pod *p = g->pod;
	const struct {
		const char *name;
		uint32_t *text;
	} known[] = {
		{ "pod-template-hash", &p->template_hash },
		{ "app.kubernetes.io/instance", &p->instance },
		{ "app.kubernetes.io/name", &p->app },
		{ "app.kubernetes.io/version", &p->version },
	};

	for (size_t i = 0; i < ARRAY_LEN(known) && !g->is_namespace; i++)
		if (text_is(key, known[i].name))
			*known[i].text = pod_add_text(p, value.data, value.len);
	add_by_rule(g, g->is_namespace ? RULE_NAMESPACE_LABEL : RULE_POD_LABEL, key, value);
}

static void add_annotation(void *arg, struct json_text key, struct json_text value)
{
	static const size_t prefix = sizeof(OTEL_PREFIX) - 1;
	struct reading *g = arg;

	if (!g->is_namespace && text_is(key, "kubernetes.io/config.hash"))
		g->pod->static_uid = pod_add_text(g->pod, value.data, value.len);
	if (!g->is_namespace && key.len > prefix && !memcmp(key.data, OTEL_PREFIX, prefix))
		pod_add_attribute(g->pod, key.data + prefix, key.len - prefix, value.data, value.len);
	add_by_rule(g, g->is_namespace ? RULE_NAMESPACE_ANNOTATION : RULE_POD_ANNOTATION, key, value);
}

static bool read_labels(struct json_reader *r, void *arg)
{
	return json_read_texts(r, add_label, arg);
}

static bool read_annotations(struct json_reader *r, void *arg)
{
	return json_read_texts(r, add_annotation, arg);
}

static bool read_metadata(struct json_reader *r, void *arg)
{
	static const struct json_field fields[] = {
		{ "uid", read_uid },
		{ "name", read_name },
		{ "namespace", read_namespace },
		{ "resourceVersion", read_version },
		{ "ownerReferences", read_owners },
		{ "labels", read_labels },
		{ "annotations", read_annotations },
	};

	return json_read_fields(r, fields, ARRAY_LEN(fields), arg);
}

/* --- containers: names and images by the spec, ids by the status --- */

TEXT_READER(read_container_name, name)
TEXT_READER(read_image, image)
TEXT_READER(read_image_id, image_id)

/* Reads RUNTIME://ID. */
static bool read_id(struct json_reader *r, struct reading *g, uint32_t *ret)
{
	struct json_text text;
	const char *scheme;

	if (!json_read_text(r, &text))
		return false;
	scheme = memmem(text.data, text.len, "://", 3);
	if (scheme)
		text = (struct json_text){ scheme + 3, (size_t)(text.data + text.len - scheme - 3) };
	*ret = pod_add_text(g->pod, text.data, text.len);
	return true;
}

static bool read_container_id(struct json_reader *r, void *arg)
{
	return read_id(r, arg, &((struct reading *)arg)->id);
}

static bool read_ended_id(struct json_reader *r, void *arg)
{
	struct reading *g = arg;

	return read_id(r, g, g->is_last ? &g->last : &g->ended);
}

static bool read_terminated(struct json_reader *r, void *arg)
{
	static const struct json_field fields[] = { { "containerID", read_ended_id } };

	return json_read_fields(r, fields, ARRAY_LEN(fields), arg);
}

static bool read_a_state(struct json_reader *r, struct reading *g, bool is_last)
{
	static const struct json_field fields[] = { { "terminated", read_terminated } };

	g->is_last = is_last;
	return json_read_fields(r, fields, ARRAY_LEN(fields), g);
}

static bool read_state(struct json_reader *r, void *arg)
{
	return read_a_state(r, arg, false);
}

static bool read_last_state(struct json_reader *r, void *arg)
{
	return read_a_state(r, arg, true);
}

static struct pod_container *container_read(struct reading *g)
{
	char name[TEXT_MAX_BYTES + 1];

	snprintf(name, sizeof(name), "%s", pod_text(g->pod, g->name)); /* adding texts moves them */
	return *name ? pod_container(g->pod, name) : NULL;
}

static bool read_spec_container(struct json_reader *r, void *arg)
{
	static const struct json_field fields[] = { { "name", read_container_name }, { "image", read_image } };
	struct reading *g = arg;
	struct pod_container *c;

	g->name = g->image = 0;
	if (!json_read_fields(r, fields, ARRAY_LEN(fields), g))
		return false;
	c = container_read(g);
	if (c && g->image)
		c->image = g->image;
	return true;
}

static bool read_status_container(struct json_reader *r, void *arg)
{
	static const struct json_field fields[] = {
		{ "name", read_container_name }, { "image", read_image },	   { "imageID", read_image_id },
		{ "state", read_state },	 { "lastState", read_last_state }, { "containerID", read_container_id },
	};
	struct reading *g = arg;
	struct pod_container *c;

	g->name = g->image = g->image_id = g->id = g->ended = g->last = 0;
	if (!json_read_fields(r, fields, ARRAY_LEN(fields), g))
		return false;
	c = container_read(g);
	if (!c)
		return true;
	c->image = c->image ? c->image : g->image; /* the spec's word counts */
	c->image_id = g->image_id;
	c->id = g->id;
	c->ended_id = g->ended;
	c->last_id = g->last;
	return true;
}

static bool read_spec_containers(struct json_reader *r, void *arg)
{
	return json_read_items(r, read_spec_container, arg);
}

static bool read_status_containers(struct json_reader *r, void *arg)
{
	return json_read_items(r, read_status_container, arg);
}

/* --- the rest of a pod --- */

TEXT_READER(read_node, pod->node)
TEXT_READER(read_hostname, pod->hostname)
TEXT_READER(read_ip, pod->ip)
TEXT_READER(read_start_time, pod->start_time)

static bool read_spec(struct json_reader *r, void *arg)
{
	static const struct json_field fields[] = {
		{ "nodeName", read_node },
		{ "hostname", read_hostname },
		{ "containers", read_spec_containers },
		{ "initContainers", read_spec_containers },
		{ "ephemeralContainers", read_spec_containers },
	};
	struct reading *g = arg;

	return g->is_namespace ? json_skip(r) : json_read_fields(r, fields, ARRAY_LEN(fields), g);
}

static bool read_status(struct json_reader *r, void *arg)
{
	static const struct json_field fields[] = {
		{ "podIP", read_ip },
		{ "startTime", read_start_time },
		{ "containerStatuses", read_status_containers },
		{ "initContainerStatuses", read_status_containers },
		{ "ephemeralContainerStatuses", read_status_containers },
	};
	struct reading *g = arg;

	return g->is_namespace ? json_skip(r) : json_read_fields(r, fields, ARRAY_LEN(fields), g);
}

struct pod *pod_read_json(const void *json, size_t len, struct rules *rules, bool is_namespace,
			  char version_ret[KUBE_VERSION_BYTES], const char **why)
{
	static const struct json_field fields[] = {
		{ "metadata", read_metadata },
		{ "spec", read_spec },
		{ "status", read_status },
	};
	struct reading g = { .pod = pod_new(), .rules = rules, .is_namespace = is_namespace, .version = version_ret };
	struct json_reader r;
	bool is_read;

	if (version_ret)
		version_ret[0] = '\0';
	*why = "memory is used up";
	if (!g.pod)
		return NULL;
	json_reader_init(&r, json, len);
	is_read = json_read_fields(&r, fields, ARRAY_LEN(fields), &g) && json_at_end(&r);
	if (!is_read)
		*why = r.error ? r.error : "has something behind its end";
	if (is_read && g.pod->texts.failed)
		is_read = false;
	if (!is_read) {
		pod_free(g.pod);
		g.pod = NULL;
	}
	json_reader_fini(&r);
	buf_fini(&g.attribute);
	return g.pod;
}

/* --- events, statuses, heads of lists --- */

struct event_reading {
	struct kube_watch_event *event;
};

static bool read_type(struct json_reader *r, void *arg)
{
	struct event_reading *g = arg;
	struct json_text text;

	if (!json_read_text(r, &text))
		return false;
	g->event->type = text_is(text, "ADDED") || text_is(text, "MODIFIED") ? KUBE_PUT
			 : text_is(text, "DELETED")			     ? KUBE_DELETED
			 : text_is(text, "BOOKMARK")			     ? KUBE_BOOKMARK
			 : text_is(text, "ERROR")			     ? KUBE_ERROR
									     : KUBE_OTHER;
	return true;
}

static bool read_object(struct json_reader *r, void *arg)
{
	struct event_reading *g = arg;

	json_peek(r);
	g->event->object = r->p;
	if (!json_skip(r))
		return false;
	g->event->object_len = (size_t)(r->p - (const uint8_t *)g->event->object);
	return true;
}

bool kube_read_event(const void *json, size_t len, struct kube_watch_event *ret, const char **why)
{
	static const struct json_field fields[] = { { "type", read_type }, { "object", read_object } };
	struct event_reading g = { ret };
	struct json_reader r;
	bool is_read;

	*ret = (struct kube_watch_event){ .type = KUBE_OTHER };
	json_reader_init(&r, json, len);
	is_read = json_read_fields(&r, fields, ARRAY_LEN(fields), &g) && ret->object;
	*why = r.error ? r.error : "has no object";
	json_reader_fini(&r);
	return is_read;
}

struct status_reading {
	int code;
	char *message;
	size_t size;
};

static bool read_code(struct json_reader *r, void *arg)
{
	struct status_reading *g = arg;
	struct json_text text;

	if (!json_read_number(r, &text))
		return false;
	if (text.len < 8) {
		char digits[8] = "";

		memcpy(digits, text.data, text.len);
		g->code = atoi(digits);
	}
	return true;
}

static bool read_message(struct json_reader *r, void *arg)
{
	struct status_reading *g = arg;
	struct json_text text;

	if (!json_read_text(r, &text))
		return false;
	snprintf(g->message, g->size, "%.*s", (int)(text.len < 1024 ? text.len : 1024), text.data);
	for (char *c = g->message; *c; c++)
		*c = *c < ' ' || *c > '~' ? '.' : *c; /* it goes to a terminal */
	return true;
}

bool kube_read_status(const void *json, size_t len, int *code_ret, char *message_ret, size_t message_size)
{
	static const struct json_field fields[] = { { "code", read_code }, { "message", read_message } };
	struct status_reading g = { 0, message_ret, message_size };
	struct json_reader r;
	bool is_read;

	message_ret[0] = '\0';
	json_reader_init(&r, json, len);
	is_read = json_read_fields(&r, fields, ARRAY_LEN(fields), &g);
	json_reader_fini(&r);
	*code_ret = g.code;
	return is_read;
}

static bool read_fitting(struct json_reader *r, char *out, size_t size)
{
	struct json_text text;

	if (!json_read_text(r, &text) || text.len >= size)
		return false;
	memcpy(out, text.data, text.len);
	out[text.len] = '\0';
	return true;
}

static bool read_list_version(struct json_reader *r, void *arg)
{
	return read_fitting(r, ((struct kube_list_head *)arg)->version, KUBE_VERSION_BYTES);
}

static bool read_list_next(struct json_reader *r, void *arg)
{
	return read_fitting(r, ((struct kube_list_head *)arg)->next, KUBE_CONTINUE_BYTES);
}

bool kube_read_list_head(const void *json, size_t len, struct kube_list_head *ret)
{
	static const struct json_field fields[] = { { "resourceVersion", read_list_version },
						    { "continue", read_list_next } };
	struct json_reader r;
	bool is_read;

	memset(ret, 0, sizeof(*ret));
	json_reader_init(&r, json, len);
	is_read = json_read_fields(&r, fields, ARRAY_LEN(fields), ret);
	json_reader_fini(&r);
	return is_read;
}
