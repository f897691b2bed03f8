/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel half as the agent sees it: loads the BPF programs, opens a sampling event on each CPU, reads the rings, writes
 * the caches. Its files, agent/sampler*.c, alone know the skeleton. Agent's thread.
 */
#ifndef HEARTH_AGENT_SAMPLER_H
#define HEARTH_AGENT_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "bpf/event.h"

struct sampler;

/* Opens and loads; nothing is sampled yet. 0 or -errno with @err filled. */
int sampler_new(const struct agent_config *config, struct sampler **ret, struct agent_error *err);
void sampler_free(struct sampler *s);

/* The event on @cpu; enabled at once when sampling has started. 0, -EEXIST, -ENODEV (offline), -errno. */
int sampler_add_cpu(struct sampler *s, uint32_t cpu);
void sampler_remove_cpu(struct sampler *s, uint32_t cpu);

/* Enables or disables all events. 0 or -errno. */
int sampler_enable(struct sampler *s, bool on);

/* Readable when the kernel thinks the rings should be read. */
int sampler_fd(const struct sampler *s);

/* Hands out every record that is there (borrowed during the call). */
int sampler_drain(struct sampler *s, void (*fn)(void *arg, const struct record *record), void *arg);

/* Records that made no sense and were not handed out. */
uint64_t sampler_malformed(const struct sampler *s);

/* Sums over CPUs. */
void sampler_counters(const struct sampler *s, uint64_t counters[COUNTER_MAX]);

/* Samples that time and frequency imply up to now and the kernel never gave, but those of idle CPUs, which nobody asked for
 * (an estimate); of a tracepoint, those of events that the kernel left out. */
uint64_t sampler_not_sampled(struct sampler *s);

/* The caches. Each returns 0 or -errno; sequence numbers are filled in here. */
int sampler_set_proc(struct sampler *s, uint32_t pid, uint64_t start_boottime_ns, uint64_t exec_id, uint32_t asid);
int sampler_forget_proc(struct sampler *s, uint32_t pid);
int sampler_set_mapping(struct sampler *s, struct mapping_value *value);
int sampler_set_block(struct sampler *s, struct unwind_block *block);

/* The pid filter. What a child brought in leaves by itself (on_free_task): its pid may be the next child's already. */
int sampler_filter_add(struct sampler *s, uint32_t pid);
int sampler_filter_remove(struct sampler *s, uint32_t pid);

/* Kernel memory of all its maps, as the kernel counts it. */
uint64_t sampler_map_bytes(const struct sampler *s);

/* "bpf_loop" or "tail calls". */
const char *sampler_form(const struct sampler *s);
uint32_t sampler_rings(const struct sampler *s);
uint64_t sampler_ring_bytes(const struct sampler *s);
uint32_t sampler_cpus(const struct sampler *s);

#endif
