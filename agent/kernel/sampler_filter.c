/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts filters into the kernel half: small sets are constants of the program, which the verifier removes where they are
 * empty; processes, threads and control groups are in maps.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "agent/proc/cgroup_places.h"
#include "agent/kernel/comm_pattern.h"
#include "agent/kernel/sampler_filter.h"
#include "base/cleanup.h"
#include "bpf/sampler.skel.h"

static int refuse(struct agent_error *err, const char **option_ret, const char *option, const char *message)
{
	*option_ret = option;
	snprintf(err->message, sizeof(err->message), "%s", message);
	return -EINVAL;
}

int sampler_filter_check(const struct agent_filter *filter, const char **option_ret, struct agent_error *err)
{
	struct comm_automaton automaton;
	size_t which = 0;
	int error = comm_patterns_compile(filter->comms, filter->comm_count, &automaton, &which);

	if (error == -EINVAL) {
		*option_ret = "comm";
		snprintf(err->message, sizeof(err->message),
			 "no name matches '%s': names of threads have 1 to 15 characters", filter->comms[which]);
		return -EINVAL;
	}
	if (error)
		return refuse(err, option_ret, "comm",
			      "the patterns are too long together: they may have 64 characters, less one for each");
	if (filter->uid_count > FILTER_UIDS)
		return refuse(err, option_ret, "uid", "there may be 16 users at most");
	if (filter->cgroup_count + filter->container_count > FILTER_CGROUPS)
		return refuse(err, option_ret, filter->cgroup_count ? "cgroup" : "container",
			      "there may be 16 control groups and containers at most");
	if (filter->no_kernel && filter->kernel_only)
		return refuse(err, option_ret, "kernel", "nothing is left where --no-kernel is given too");
	return 0;
}

void sampler_filter_configure(struct sampler_bpf *skel, const struct agent_filter *filter)
{
	bool by_pid = filter->pid_count || filter->follow_pids_only;
	struct comm_automaton automaton;
	size_t which;

	bpf_program__set_autoload(skel->progs.on_new_task, by_pid && !filter->no_inherit);
	bpf_program__set_autoload(skel->progs.on_free_task, by_pid && !filter->no_inherit);
	skel->rodata->cfg_filter_pids = by_pid;
	skel->rodata->cfg_filter_tids = filter->tid_count;
	if (!by_pid)
		bpf_map__set_max_entries(skel->maps.filter_pids, 1);
	if (filter->tid_count)
		bpf_map__set_max_entries(skel->maps.filter_tids, (uint32_t)filter->tid_count);
	skel->rodata->cfg_idle = filter->idle;
	skel->rodata->cfg_no_kernel = filter->no_kernel;
	skel->rodata->cfg_min_age_ns = filter->min_age_ns;
	skel->rodata->cfg_cgroup_cnt = (uint32_t)(filter->cgroup_count + filter->container_count);
	skel->rodata->cfg_uid_cnt = (uint32_t)filter->uid_count;
	for (size_t i = 0; i < filter->uid_count; i++)
		skel->rodata->cfg_uids[i] = filter->uids[i];
	skel->rodata->cfg_filter_comm = filter->comm_count;
	if (filter->comm_count && !comm_patterns_compile(filter->comms, filter->comm_count, &automaton, &which))
		memcpy(&skel->rodata->cfg_comm, &automaton, sizeof(automaton));
}

static int set_group(struct sampler_bpf *skel, uint32_t i, const struct cgroup_place *place)
{
	if (place->fd < 0)
		return bpf_map_update_elem(bpf_map__fd(skel->maps.filter_v1_groups), &i, &place->v1, BPF_ANY);
	return bpf_map_update_elem(bpf_map__fd(skel->maps.filter_cgroups), &i, &place->fd, BPF_ANY);
}

static int fill_cgroups(struct sampler_bpf *skel, const struct agent_filter *filter, struct agent_error *err)
{
	size_t count = filter->cgroup_count + filter->container_count;

	for (uint32_t i = 0; i < count; i++) {
		struct cgroup_place place;
		int error = i < filter->cgroup_count
				    ? cgroup_place_find(filter->cgroups[i], &place, err)
				    : cgroup_place_find_container(filter->containers[i - filter->cgroup_count], &place, err);

		if (error)
			return error;
		error = set_group(skel, i, &place) ? -errno : 0;
		cgroup_place_fini(&place);
		if (error) {
			snprintf(err->message, sizeof(err->message), "cannot filter by control groups: %s",
				 strerror(-error));
			return error;
		}
	}
	return 0;
}

uint64_t sampler_filter_key(const struct sampler_bpf *skel, uint32_t pid)
{
	return pid | (skel->rodata->cfg_pid_ns ? FILTER_PID_TOLD : 0);
}

int sampler_filter_fill(struct sampler_bpf *skel, const struct agent_filter *filter, struct agent_error *err)
{
	uint64_t since = 0;
	uint8_t one = 1;

	for (size_t i = 0; i < filter->pid_count; i++) {
		uint64_t key = sampler_filter_key(skel, filter->pids[i]);

		(void)bpf_map_update_elem(bpf_map__fd(skel->maps.filter_pids), &key, &since, BPF_ANY);
	}
	for (size_t i = 0; i < filter->tid_count; i++)
		(void)bpf_map_update_elem(bpf_map__fd(skel->maps.filter_tids), &filter->tids[i], &one, BPF_ANY);
	return fill_cgroups(skel, filter, err);
}
