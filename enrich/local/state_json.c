/* SPDX-License-Identifier: Apache-2.0 */
#include "enrich/local/state_json.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text/json_fields.h"
#include "enrich/local/sources.h"

static bool text_is(struct json_text text, const char *word)
{
	return text.len == strlen(word) && !memcmp(text.data, word, text.len);
}

static bool read_into(struct json_reader *r, struct container *c, uint32_t *field)
{
	struct json_text text;

	if (!json_read_text(r, &text))
		return false;
	local_fill(c, field, text.data, text.len);
	return true;
}

/* Labels of docker, and annotations of the others, that say what a container is. */
static void add_label(void *arg, struct json_text key, struct json_text value)
{
	struct container *c = arg;
	const struct {
		const char *key;
		uint32_t *field;
	} labels[] = {
		{ "com.docker.compose.project", &c->project },
		{ "com.docker.compose.service", &c->service },
		{ "nerdctl/name", &c->name },
		{ "io.kubernetes.container.name", &c->pod_container }, /* cri-dockerd, CRI-O */
		{ "io.kubernetes.pod.name", &c->pod },
		{ "io.kubernetes.pod.namespace", &c->namespace },
		{ "io.kubernetes.pod.uid", &c->pod_uid },
		{ "io.kubernetes.cri-o.ImageName", &c->image },
		{ "io.kubernetes.cri.container-name", &c->pod_container }, /* containerd */
		{ "io.kubernetes.cri.sandbox-name", &c->pod },
		{ "io.kubernetes.cri.sandbox-namespace", &c->namespace },
		{ "io.kubernetes.cri.sandbox-uid", &c->pod_uid },
		{ "io.kubernetes.cri.image-name", &c->image },
	};

	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		if (text_is(key, labels[i].key))
			local_fill(c, labels[i].field, value.data, value.len);
}

static bool read_labels(struct json_reader *r, void *arg)
{
	return json_read_texts(r, add_label, arg);
}

static bool read_image(struct json_reader *r, void *arg)
{
	return read_into(r, arg, &((struct container *)arg)->image);
}

static bool read_fields(const void *json, size_t len, const struct json_field *fields, size_t count, void *arg)
{
	struct json_reader r;
	bool is_read;

	json_reader_init(&r, json, len);
	is_read = json_read_fields(&r, fields, count, arg);
	json_reader_fini(&r);
	return is_read;
}

/* --- docker --- */

static bool read_docker_config(struct json_reader *r, void *arg)
{
	static const struct json_field fields[] = { { "Image", read_image }, { "Labels", read_labels } };

	return json_read_fields(r, fields, ARRAY_LEN(fields), arg);
}

/* Docker's names begin with a slash. */
static bool read_docker_name(struct json_reader *r, void *arg)
{
	struct container *c = arg;
	struct json_text text;

	if (!json_read_text(r, &text))
		return false;
	if (text.len && text.data[0] == '/')
		text = (struct json_text){ text.data + 1, text.len - 1 };
	local_fill(c, &c->name, text.data, text.len);
	return true;
}

bool state_read_docker(const void *json, size_t len, struct container *c)
{
	static const struct json_field fields[] = { { "Name", read_docker_name }, { "Config", read_docker_config } };

	return read_fields(json, len, fields, ARRAY_LEN(fields), c);
}

/* --- containerd, CRI-O --- */

bool state_read_oci(const void *json, size_t len, struct container *c)
{
	static const struct json_field fields[] = { { "annotations", read_labels } };

	return read_fields(json, len, fields, ARRAY_LEN(fields), c);
}

/* --- podman --- */

struct podman_reading {
	const char *id;
	struct container *c;
	bool is_meant, is_found;
	struct container one; /* of the item that is read */
};

static bool read_podman_id(struct json_reader *r, void *arg)
{
	struct podman_reading *g = arg;
	struct json_text text;

	if (!json_read_text(r, &text))
		return false;
	g->is_meant = text_is(text, g->id);
	return true;
}

static bool read_podman_name(struct json_reader *r, void *arg)
{
	struct podman_reading *g = arg;

	return read_into(r, &g->one, &g->one.name); /* the first of them */
}

static bool read_podman_names(struct json_reader *r, void *arg)
{
	return json_read_items(r, read_podman_name, arg);
}

/* A text that is JSON. */
static bool read_podman_metadata(struct json_reader *r, void *arg)
{
	static const struct json_field fields[] = { { "image-name", read_image } };
	struct podman_reading *g = arg;
	struct json_text text;

	if (!json_read_text(r, &text))
		return false;
	(void)read_fields(text.data, text.len, fields, ARRAY_LEN(fields), &g->one);
	return true;
}

static bool read_podman_container(struct json_reader *r, void *arg)
{
	static const struct json_field fields[] = {
		{ "id", read_podman_id },
		{ "names", read_podman_names },
		{ "metadata", read_podman_metadata },
	};
	struct podman_reading *g = arg;
	bool is_read;

	g->is_meant = false;
	is_read = json_read_fields(r, fields, ARRAY_LEN(fields), g);
	if (is_read && g->is_meant) {
		const char *name = container_text(&g->one, g->one.name), *image = container_text(&g->one, g->one.image);

		local_fill(g->c, &g->c->name, name, strlen(name));
		local_fill(g->c, &g->c->image, image, strlen(image));
		g->is_found = true;
	}
	buf_fini(&g->one.texts);
	g->one = (struct container){ 0 };
	return is_read;
}

bool state_read_podman(const void *json, size_t len, const char *id, struct container *c)
{
	struct podman_reading g = { .id = id, .c = c };
	struct json_reader r;
	bool is_read;

	json_reader_init(&r, json, len);
	is_read = json_read_items(&r, read_podman_container, &g);
	json_reader_fini(&r);
	return is_read && g.is_found;
}

/* --- the kubelet's links --- */

bool state_read_log_name(const char *name, const char *id, struct container *c)
{
	size_t len = strlen(name), id_len = strlen(id), end;
	const char *namespace = strchr(name, '_'), *container = namespace ? strchr(namespace + 1, '_') : NULL;

	if (!container || len < id_len + 5 || strcmp(name + len - 4, ".log") != 0)
		return false;
	end = len - 4 - id_len; /* where the id begins */
	if (memcmp(name + end, id, id_len) != 0 || name[end - 1] != '-' || container + 1 >= name + end - 1)
		return false;
	local_fill(c, &c->pod, name, (size_t)(namespace - name));
	local_fill(c, &c->namespace, namespace + 1, (size_t)(container - namespace - 1));
	local_fill(c, &c->pod_container, container + 1, (size_t)(name + end - 1 - (container + 1)));
	return true;
}
