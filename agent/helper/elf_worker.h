/* SPDX-License-Identifier: Apache-2.0 */
/* The far side of agent/helper/elf_helper.h and agent/names/index_helper.h: the template process and the workers it makes.
 */
#ifndef HEARTH_AGENT_HELPER_ELF_WORKER_H
#define HEARTH_AGENT_HELPER_ELF_WORKER_H

#include <stdbool.h>

#include "agent/helper/elf_helper.h"

enum { ELF_WORKER_UNFIT = 100 }; /* exit status of a worker that could not set itself up; says nothing about a file */

/* The work of workers, and the limits of each. */
struct elf_worker_kind {
	const char *name;	  /* name of their processes */
	elf_service_make_fn make; /* makes the service that answers, inside each worker */
	uint64_t memory_bytes;	  /* bytes that may be allocated */
	uint64_t file_bytes;	  /* bytes of a written file; 0: none may be written */
	unsigned cpu_seconds;	  /* processor time until SIGXCPU; 0: the caller looks after that */
	int nice;		  /* at least; the caller's own, if that is more */
};

/*
 * Will the helper's processes keep the user id 0, because this process may not change it (CAP_SETUID and CAP_SETGID)? They
 * have no capability all the same, get none back, and workers make no system call beyond their few.
 */
bool elf_worker_stays_root(void);

/*
 * Forks the template while the caller has no secret but its memory: no BPF objects, no events. The template holds only
 * @control's other end, has no privileges, and ends with the caller. Returns its pid, the caller's to wait for, and the
 * socket for orders in *@control_ret; or -errno.
 */
int elf_template_fork(const struct elf_worker_kind *kind, int *control_ret);

#endif
