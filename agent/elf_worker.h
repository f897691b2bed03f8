/* SPDX-License-Identifier: Apache-2.0 */
/* The far side of agent/elf_helper.h and agent/index_helper.h: the template process and the workers it makes. */
#ifndef HEARTH_AGENT_ELF_WORKER_H
#define HEARTH_AGENT_ELF_WORKER_H

#include "agent/elf_helper.h"

enum { ELF_WORKER_UNFIT = 100 }; /* exit status of a worker that could not set itself up; says nothing about a file */

/* What workers are for, and what each may take. */
struct elf_worker_kind {
	const char *name;	  /* of their processes */
	elf_service_make_fn make; /* makes the service that answers, inside each */
	uint64_t memory_bytes;	  /* allocated */
	uint64_t file_bytes;	  /* of a file that is written; 0: none may be */
	unsigned cpu_seconds;	  /* processor time until SIGXCPU; 0: the caller looks after that */
	int nice;		  /* at least: what the caller has, if that is more */
};

/*
 * Forks the template while the caller has no secret but its memory: no BPF objects, no events. It holds nothing but
 * @control's other end, is without privileges, and ends with the caller. Returns its pid, the caller's to wait for, and the
 * socket for orders in *@control_ret; or -errno.
 */
int elf_template_fork(const struct elf_worker_kind *kind, int *control_ret);

#endif
