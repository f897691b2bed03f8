/* SPDX-License-Identifier: Apache-2.0 */
/* The resource that the host's own metrics are told of. */
#ifndef HEARTH_CMD_SETUP_HOST_OF_H
#define HEARTH_CMD_SETUP_HOST_OF_H

struct profiles;

/* Profiles without samples of one resource: what OTEL_RESOURCE_ATTRIBUTES says, then host.name, host.arch, os.type and
 * host.id. 0 or -ENOMEM. */
int host_of(struct profiles **ret);

#endif
