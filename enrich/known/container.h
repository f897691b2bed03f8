/* SPDX-License-Identifier: Apache-2.0 */
/* A container that this host's files tell of. All strings are offsets into its texts. */
#ifndef HEARTH_ENRICH_KNOWN_CONTAINER_H
#define HEARTH_ENRICH_KNOWN_CONTAINER_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "enrich/known/texts.h"

struct container {
	struct buf texts;
	uint32_t id, name, image;
	uint32_t project, service; /* of Compose */
	uint32_t pod, namespace, pod_uid, pod_container;
	uint64_t used_ns; /* CLOCK_MONOTONIC; the table's */
};

static inline const char *container_text(const struct container *c, uint32_t offset)
{
	return texts_at(&c->texts, offset);
}

static inline void container_free(struct container *c)
{
	if (c)
		buf_fini(&c->texts);
	free(c);
}

#endif
