/* SPDX-License-Identifier: Apache-2.0 */
/* The options of one component of a pipeline, laid over those of the process. */
#ifndef HEARTH_CMD_OPTIONS_OVERLAY_H
#define HEARTH_CMD_OPTIONS_OVERLAY_H

struct buf;
struct component;
struct config;
struct pipelines;

/*
 * Fills @ret with @config as the settings of @c change it; all else is borrowed from @config. 0; -EINVAL with @error filled;
 * -ENOMEM. overlay_fini() either way.
 */
int overlay_init(const struct component *c, const struct config *config, struct config *ret, struct buf *error);
void overlay_fini(const struct component *c, struct config *config);

/* Whether the settings of all stages and exporters are ones that options take; as overlay_init(). */
int overlay_check(const struct pipelines *p, struct buf *error);

#endif
