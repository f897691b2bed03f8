/* SPDX-License-Identifier: Apache-2.0 */
/* The filters of the kernel half (bpf/filter.bpf.h), from struct agent_filter. For sampler.c alone. */
#ifndef HEARTH_AGENT_KERNEL_SAMPLER_FILTER_H
#define HEARTH_AGENT_KERNEL_SAMPLER_FILTER_H

#include <stddef.h>

#include "agent/config.h"

struct sampler_bpf;

/* Checks the filters as far as that needs no kernel. 0, or -EINVAL with @err filled and the option that is wrong in
 * @option_ret. */
int sampler_filter_check(const struct agent_filter *filter, const char **option_ret, struct agent_error *err);

/* Sets options and map sizes, between open and load; the filter was checked. */
void sampler_filter_configure(struct sampler_bpf *skel, const struct agent_filter *filter);

/* The key in filter_pids of the process @pid of user space's pid namespace. */
uint64_t sampler_filter_key(const struct sampler_bpf *skel, uint32_t pid);

/* Fills the maps, after load. 0 or -errno with @err filled. */
int sampler_filter_fill(struct sampler_bpf *skel, const struct agent_filter *filter, struct agent_error *err);

#endif
