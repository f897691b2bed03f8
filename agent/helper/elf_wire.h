/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between the agent, the template of the helper process and its workers: a head, then a body, in packets of a
 * SOCK_SEQPACKET socket; a file descriptor comes with the first packet. A receiver trusts only the form of the packets.
 */
#ifndef HEARTH_AGENT_HELPER_ELF_WIRE_H
#define HEARTH_AGENT_HELPER_ELF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/helper/elf_service.h"

struct buf;

enum { ELF_WIRE_MAX_BYTES = 16 << 20 }; /* a body beyond this is nonsense */

enum elf_wire_kind {
	ELF_WIRE_REQUEST, /* agent to worker: @request, and its payload as the body */
	ELF_WIRE_REPLY,	  /* worker to agent: @number is the status, the body is the answer */
	ELF_WIRE_SPAWN,	  /* agent to template: make a worker at the socket that comes with it */
	ELF_WIRE_SPAWNED, /* template to agent: @number is the worker's pid */
	ELF_WIRE_KILL,	  /* agent to template: end the worker, if it still runs */
	ELF_WIRE_ENDED,	  /* template to agent: the worker has ended; @number as wait(2) tells it. One for each SPAWNED */
};

struct elf_wire {
	uint32_t kind;
	int32_t number;
	struct elf_request request;
	uint64_t body_bytes;
};

/* Says whether to go on. Called each time the socket's own time limit for sending or receiving runs out, and before each
 * packet of a message but the first. */
typedef bool (*elf_wire_wait_fn)(void *arg);

/* Sends @head and @body, of head->body_bytes, with @fd unless it is -1. @wait NULL: never goes on. 0; -ETIMEDOUT; -EPIPE
 * when the other side has gone; another -errno. */
int elf_wire_send(int sock, const struct elf_wire *head, const void *body, int fd, elf_wire_wait_fn wait, void *arg);

/* Receives a head and its body, which replaces @body's content. *@fd_ret is the file descriptor that came with it, the
 * caller's to close, else -1. Errors as above; -EPROTO: not a message; -ENOMEM. */
int elf_wire_receive(int sock, struct elf_wire *head, struct buf *body, int *fd_ret, elf_wire_wait_fn wait, void *arg);

#endif
