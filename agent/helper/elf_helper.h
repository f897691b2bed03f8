/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper form of the ELF service: requests are answered by a worker process that has no privileges, no files but those
 * asked about, and bounded time and memory. A file that makes it crash, hang or take too much memory ends the worker; the
 * next request gets a new one.
 */
#ifndef HEARTH_AGENT_HELPER_ELF_HELPER_H
#define HEARTH_AGENT_HELPER_ELF_HELPER_H

#include "agent/helper/elf_service.h"

struct metrics;

typedef int (*elf_service_make_fn)(struct elf_service **ret);

/*
 * Forks the helper; to be called before the process has threads that hold locks, or descriptors that must not be inherited.
 * @make makes the service inside each worker: elf_service_new. Beside that service's errors elf_service_call then returns
 * the errors of elf_service_is_hostile(), and -ECHILD when there is no helper any more (somebody killed it three times;
 * until then another takes its place). A call takes at most 0.5 s of the worker's processor time, or three times that when
 * the worker gets no processor or disk. A request that can come back takes 0.25 s at most: the worker goes on with it. Until
 * that is done other such requests get -EAGAIN at once, and all others wait for it. Freed with elf_service_free. 0 or
 * -errno.
 */
int elf_helper_new(elf_service_make_fn make, struct metrics *metrics, struct elf_service **ret);

/* The same for the service that reads other processes' memory (agent/helper/code_service.h), whose @make is
 * code_service_new. Replies to it are not looked at here: the caller does that (elf_service_distrust). */
int elf_helper_new_code(elf_service_make_fn make, struct metrics *metrics, struct elf_service **ret);

#endif
