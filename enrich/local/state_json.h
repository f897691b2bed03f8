/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the state files of container runtimes, JSON of a few kB. Nothing in them is trusted. No state. */
#ifndef HEARTH_ENRICH_LOCAL_STATE_JSON_H
#define HEARTH_ENRICH_LOCAL_STATE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "enrich/known/container.h"

/* Docker's config.v2.json: name, image, labels of Compose and of cri-dockerd. False: it is none. */
bool state_read_docker(const void *json, size_t len, struct container *c);

/* A container's config.json by OCI's runtime specification, whose annotations containerd and CRI-O fill. */
bool state_read_oci(const void *json, size_t len, struct container *c);

/* The containers.json of Podman's storage: all containers; that called @id is taken. False: it is none, or has no such. */
bool state_read_podman(const void *json, size_t len, const char *id, struct container *c);

/* A name in /var/log/containers, POD_NAMESPACE_CONTAINER-ID.log. False: it is another container's, or none. */
bool state_read_log_name(const char *name, const char *id, struct container *c);

#endif
