/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access control shared by all servers of a command: certificates and tokens, from --tls-cert, --token-file and similar
 * options. It belongs to the thread whose loop the servers are on.
 */
#ifndef HEARTH_CMD_SETUP_GUARD_H
#define HEARTH_CMD_SETUP_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/http/peer.h"

struct buf;
struct config;
struct metrics;
struct tls;
struct tokens;

struct guard {
	struct tls *tls;	 /* NULL: no TLS */
	struct tokens *tokens;	 /* NULL: no token is asked for */
	bool asks_clients;	 /* for certificates */
	struct peer_users users; /* who may see profiles without */
	uint32_t *uids;		 /* of these */
};

/* Reads the files. @g is all zeros before, and to be ended with guard_fini() also after an error. Logs what fails; 0 or
 * -errno. */
int guard_init(struct guard *g, const struct config *config, struct metrics *metrics);
void guard_fini(struct guard *g);

/* Appends "SCHEME://HOST:PORT", "SCHEMEs://" over TLS, to @out: the host of @address, the port that was taken. Warns when
 * others reach it who should not. */
void guard_url(const struct guard *g, const char *scheme, const char *address, uint16_t port, struct buf *out);

#endif
