/* SPDX-License-Identifier: Apache-2.0 */
#include "enrich/known/pod.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

struct pod *pod_new(void)
{
	return calloc(1, sizeof(struct pod));
}

void pod_free(struct pod *p)
{
	if (!p)
		return;
	buf_fini(&p->texts);
	free(p->attributes);
	free(p->containers);
	free(p);
}

uint32_t pod_add_text(struct pod *p, const char *data, size_t len)
{
	return texts_add(&p->texts, data, len);
}

void pod_add_attribute(struct pod *p, const char *key, size_t key_len, const char *value, size_t value_len)
{
	struct pod_attribute a;

	if (p->attribute_count == POD_MAX_ATTRIBUTES || vec_reach(&p->attributes, &p->attribute_cap, p->attribute_count))
		return;
	a.key = pod_add_text(p, key, key_len);
	a.value = pod_add_text(p, value, value_len);
	if (a.key)
		p->attributes[p->attribute_count++] = a;
}

struct pod_container *pod_container(struct pod *p, const char *name)
{
	for (uint32_t i = 0; i < p->container_count; i++)
		if (!strcmp(pod_text(p, p->containers[i].name), name))
			return &p->containers[i];
	if (p->container_count == POD_MAX_CONTAINERS || vec_reach(&p->containers, &p->container_cap, p->container_count))
		return NULL;
	p->containers[p->container_count] = (struct pod_container){ .name = pod_add_text(p, name, strlen(name)) };
	return &p->containers[p->container_count++];
}

const struct pod_container *pod_container_of(const struct pod *p, const char *id)
{
	for (uint32_t i = 0; i < p->container_count; i++) {
		const struct pod_container *c = &p->containers[i];

		if ((c->id && !strcmp(pod_text(p, c->id), id)) || (c->ended_id && !strcmp(pod_text(p, c->ended_id), id)) ||
		    (c->last_id && !strcmp(pod_text(p, c->last_id), id)))
			return c;
	}
	return NULL;
}

/* A smaller block may be had or not; the old one is as good. */
static void *fitted(void *items, size_t bytes)
{
	void *smaller = bytes ? realloc(items, bytes) : NULL;

	return smaller ? smaller : items;
}

void pod_fit(struct pod *p)
{
	buf_fit(&p->texts);
	p->attributes = fitted(p->attributes, p->attribute_count * sizeof(*p->attributes));
	p->containers = fitted(p->containers, p->container_count * sizeof(*p->containers));
	p->attribute_cap = p->attribute_count ? p->attribute_count : p->attribute_cap;
	p->container_cap = p->container_count ? p->container_count : p->container_cap;
}

size_t pod_memory_bytes(const struct pod *p)
{
	return sizeof(*p) + p->texts.cap + p->attribute_cap * sizeof(*p->attributes) +
	       p->container_cap * sizeof(*p->containers);
}
