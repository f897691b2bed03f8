/* SPDX-License-Identifier: Apache-2.0 */
/* The log of the kernel's BPF verifier on standard error (--bpf-log-level). */
#ifndef HEARTH_AGENT_KERNEL_VERIFIER_LOG_H
#define HEARTH_AGENT_KERNEL_VERIFIER_LOG_H

#include <stdint.h>

struct bpf_object;
struct verifier_log;

/* How many bytes the log of a program may have on this kernel. */
uint32_t verifier_log_bytes(void);

/*
 * To be called between open and load: asks for the log of every program of @object that is loaded, at @level 1 (failures and
 * sums) or 2 (every instruction). 0 or -ENOMEM.
 */
int verifier_log_new(struct bpf_object *object, unsigned level, struct verifier_log **ret);

/* Writes the verifier's log, after load, whether that worked or not. */
void verifier_log_print(const struct verifier_log *l);

void verifier_log_free(struct verifier_log *l);

#endif
