/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles for who may see which code ran, but not where in memory the kernel and other users' processes have it. */
#ifndef HEARTH_PROTO_PROFILES_HIDE_H
#define HEARTH_PROTO_PROFILES_HIDE_H

#include "proto/profiles.h"

/*
 * What @p says without addresses of the kernel, and of memory that belongs to no file; mappings begin at 0, and addresses in
 * them count from there, so that they are found in the mapped file as before. Functions and lines stay. @ret shares the
 * memory of @p, of which it takes a reference. 0 or -ENOMEM.
 */
int profiles_hide_addresses(struct profiles *p, struct profiles **ret);

#endif
