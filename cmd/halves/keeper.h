/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process between the halves: forked from the agent before anything foreign was read and before there are threads, it
 * forks the backend, and another one when that dies. It is root, listens to nobody but the agent, and reads nothing but
 * files with secrets, to copy them.
 */
#ifndef HEARTH_CMD_HALVES_KEEPER_H
#define HEARTH_CMD_HALVES_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/halves/share.h"
#include "cmd/setup/page.h"

/* From the keeper: a backend has ended. */
struct keeper_note {
	int32_t pid, wait_status; /* as of waitpid(2) */
	uint64_t pause_ns;	  /* until the next one is started; UINT64_MAX: none is */
};

/* To the keeper: the ports that further backends must take again; 0: none. */
struct keeper_ports {
	uint16_t ports[PAGE_PORTS];
};

/* Forks it. @keeps and @is_lenient as in struct backend_task. @sock_ret: the agent's end of the channel, @control_ret: of
 * the line to the keeper, which ends when that is closed and the backend has ended. The keeper's pid or -errno. */
pid_t keeper_fork(struct share *share, bool keeps, bool is_lenient, int *sock_ret, int *control_ret);

#endif
