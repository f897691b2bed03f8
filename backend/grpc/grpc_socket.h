/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's bytes, with TLS or without; never blocks. Loop's thread. */
#ifndef HEARTH_BACKEND_GRPC_GRPC_SOCKET_H
#define HEARTH_BACKEND_GRPC_GRPC_SOCKET_H

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct tls;
struct tls_keys;

struct grpc_socket {
	int fd;		       /* owned */
	gnutls_session_t tls;  /* NULL: plain */
	struct tls_keys *keys; /* the keys that its session uses */
	bool is_shaken;	       /* hands: the bytes of both sides may flow */
	bool is_sending;       /* a record that the kernel did not take yet */
};

/* Takes @fd over, also on failure; @tls NULL: plain. 0 or -errno. */
int grpc_socket_open(struct grpc_socket *s, int fd, struct tls *tls);
void grpc_socket_close(struct grpc_socket *s);

/* Takes the handshake's next steps. 0: it is done, or the socket is plain; -EAGAIN: call again when the socket is ready;
 * -EPROTO: it failed. */
int grpc_socket_shake(struct grpc_socket *s);
/* Whether -EAGAIN of grpc_socket_shake() waits for room to write. */
bool grpc_socket_waits_to_write(const struct grpc_socket *s);

/* Reads at least one byte; 0: the end, -EAGAIN, or another -errno. */
ssize_t grpc_socket_read(struct grpc_socket *s, void *data, size_t size);
/* Writes at least one byte; -EAGAIN (then the next call must bring the same bytes again), or another -errno. */
ssize_t grpc_socket_write(struct grpc_socket *s, const void *data, size_t len);

/* The address of the other end, in @ret; NULL when it is not known. */
const struct sockaddr *grpc_socket_peer(const struct grpc_socket *s, struct sockaddr_storage *ret);

/* Ends the sending side: the other end reads an end of the stream. */
void grpc_socket_shut(struct grpc_socket *s);

#endif
