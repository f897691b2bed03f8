/* SPDX-License-Identifier: Apache-2.0 */
/* The filters of the kernel half (bpf/filter.bpf.h), from struct agent_filter. For sampler.c alone. */
#ifndef HEARTH_AGENT_SAMPLER_FILTER_H
#define HEARTH_AGENT_SAMPLER_FILTER_H

#include <stddef.h>

#include "agent/agent.h"

struct sampler_bpf;

/* Checks what needs no kernel. 0, or -EINVAL with @err filled and the option that is wrong in @option_ret. */
int sampler_filter_check(const struct agent_filter *filter, const char **option_ret, struct agent_error *err);

/* Options and map sizes, between open and load; the filter was checked. */
void sampler_filter_configure(struct sampler_bpf *skel, const struct agent_filter *filter);

/* What the maps hold, after load. 0 or -errno with @err filled. */
int sampler_filter_fill(struct sampler_bpf *skel, const struct agent_filter *filter, struct agent_error *err);

#endif
