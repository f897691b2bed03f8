/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod as it is kept: names, owners, containers, and the attributes that rules made of its labels and annotations. All
 * strings are offsets into its texts. Whoever makes a pod fills it alone; then the table (known.h) owns it.
 */
#ifndef HEARTH_ENRICH_KNOWN_POD_H
#define HEARTH_ENRICH_KNOWN_POD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "enrich/known/texts.h"

enum { POD_MAX_CONTAINERS = 256, POD_MAX_ATTRIBUTES = 128 };

struct pod_attribute {
	uint32_t key, value;
};

struct pod_container {
	uint32_t name, image, image_id;
	uint32_t id, ended_id, last_id; /* running, or as it ended; and the one that ran before */
};

struct pod_owner {
	uint32_t kind, name, uid;
};

enum pod_top { POD_TOP_ASK, POD_TOP_NONE, POD_TOP_KNOWN };

struct pod {
	struct buf texts;
	uint32_t uid, name, namespace, node, hostname, ip, start_time;
	uint32_t static_uid;		 /* of the file that a static pod is from: the uid in its cgroups' paths */
	uint32_t template_hash;		 /* the label that only Deployments give */
	uint32_t instance, app, version; /* labels app.kubernetes.io/{instance,name,version} */
	struct pod_owner owner;		 /* its controller */
	struct pod_owner top;		 /* the controller of that one */
	enum pod_top top_state;
	struct pod_attribute *attributes; /* the first of a key counts */
	struct pod_container *containers;
	uint32_t attribute_count, attribute_cap, container_count, container_cap;
	uint64_t gone_ns;     /* CLOCK_MONOTONIC; 0: it is there */
	uint64_t list_number; /* of the list that had it last */
};

struct pod *pod_new(void);
void pod_free(struct pod *p);

static inline const char *pod_text(const struct pod *p, uint32_t offset)
{
	return texts_at(&p->texts, offset);
}

uint32_t pod_add_text(struct pod *p, const char *data, size_t len);

/* Adds an attribute. Nothing happens when there is no room, or no memory. */
void pod_add_attribute(struct pod *p, const char *key, size_t key_len, const char *value, size_t value_len);

/* The container called @name, made where there is none; NULL: no room. */
struct pod_container *pod_container(struct pod *p, const char *name);

/* The container with the id; NULL: none. */
const struct pod_container *pod_container_of(const struct pod *p, const char *id);

/* Gives back what growing took in advance. */
void pod_fit(struct pod *p);

size_t pod_memory_bytes(const struct pod *p);

#endif
