/* SPDX-License-Identifier: Apache-2.0 */
/* The far side of agent/proc/proc_reader.h: its keeper, which forks workers, and what a worker does. */
#ifndef HEARTH_AGENT_PROC_PROC_WORKER_H
#define HEARTH_AGENT_PROC_PROC_WORKER_H

#include <stdint.h>
#include <sys/types.h>

#include "agent/proc/proc_root.h"
#include "base/buf.h"

enum {
	PROC_LANES = 2,		      /* workers at a time */
	PROC_PACKET_BYTES = 48 << 10, /* of an answer */
	PROC_MOST_BYTES = 32 << 20,
};

enum proc_op { PROC_OP_READ, PROC_OP_OPEN, PROC_OP_FOLDER, PROC_OP_LINK };

struct proc_request {
	uint32_t op;	/* enum proc_op */
	uint32_t bytes; /* PROC_OP_READ: so many at @offset; PROC_OP_LINK: so many of the path that the link has */
	uint64_t offset;
	char path[PROC_PATH_BYTES];
	char then[PROC_PATH_BYTES]; /* PROC_OP_READ: and after that up to PROC_SYSCALL_BYTES of this file, unless it is "" */
};

/* Comes in front of the answer's first packet. @bytes and then @then_bytes follow; a descriptor comes with it. */
struct proc_reply {
	int32_t status; /* 0 or -errno */
	uint32_t bytes, then_bytes;
};

/* To the keeper: ends the worker of @lane, and makes another one of the socket that comes with it. */
struct proc_order {
	uint32_t lane;
};

/* Does what @r says: @ret gets the bytes of both files. A descriptor is the caller's to close; -1: none. */
int proc_worker_do(const struct proc_request *r, struct proc_reply *reply, struct buf *ret);

/* Forks the keeper. Returns its pid, which the caller waits for, and the socket for orders in *@control_ret; or -errno. */
pid_t proc_keeper_fork(int *control_ret);

/* Sends @bytes, with @fd unless it is -1. 0 or -errno. */
int proc_wire_send(int sock, const void *head, size_t head_bytes, const void *body, size_t body_bytes, int fd);

/* Receives one packet into @head and @body. Returns the length; 0: the other side has gone; -errno. *@fd_ret: -1, or what
 * came with it. Does not wait with MSG_DONTWAIT in @flags. */
ssize_t proc_wire_receive(int sock, void *head, size_t head_bytes, void *body, size_t body_bytes, int flags, int *fd_ret);

#endif
