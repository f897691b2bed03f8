/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files in which this host's container runtimes, and the kubelet, keep what a container is called. One const struct a
 * kind of them; local.c asks them in the order of the list, and each fills what those before it left open. No state.
 */
#ifndef HEARTH_ENRICH_LOCAL_SOURCES_H
#define HEARTH_ENRICH_LOCAL_SOURCES_H

#include "enrich/known/container.h"

struct local_source {
	const char *name;
	const char *place; /* a folder or file below the root by which one sees that it is there */
	/* Fills @c with what the files below @root ("" or /FOLDER) tell of the container @id, which is a plain file name. 0;
	 * -ENOENT: nothing; -errno. */
	int (*find)(const char *root, const char *id, struct container *c);
};

#define LOCAL_SOURCES(SOURCE)           \
	SOURCE(local_source_docker)     \
	SOURCE(local_source_containerd) \
	SOURCE(local_source_crio)       \
	SOURCE(local_source_podman)     \
	SOURCE(local_source_log_links)

#define LOCAL_SOURCE_DECLARED(name) extern const struct local_source name;
LOCAL_SOURCES(LOCAL_SOURCE_DECLARED)
#undef LOCAL_SOURCE_DECLARED

/* Puts a text into a field of @c that is not filled yet. */
void local_fill(struct container *c, uint32_t *field, const char *text, size_t len);

#endif
