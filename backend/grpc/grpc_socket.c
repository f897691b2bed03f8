/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of gRPC connections. TLS by GnuTLS, as libmicrohttpd uses it, with ALPN "h2": a client that names protocols but
 * not this one is refused in the handshake; a client that names none is accepted when it then speaks HTTP/2.
 */
#include "backend/grpc/grpc_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/http/tls.h"

static int verify_client(gnutls_session_t session)
{
	const struct grpc_socket *s = gnutls_session_get_ptr(session);

	return tls_keys_verify(s->keys, session);
}

static int open_tls(struct grpc_socket *s, struct tls *tls)
{
	static const gnutls_datum_t h2 = { (unsigned char *)(uintptr_t) "h2", 2 };

	if (gnutls_init(&s->tls, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL))
		return -ENOMEM;
	s->keys = tls_keys_get(tls);
	gnutls_session_set_ptr(s->tls, s);
	gnutls_transport_set_int(s->tls, s->fd);
	tls_read_whole(s->tls);
	if (gnutls_priority_set_direct(s->tls, TLS_PRIORITIES, NULL) ||
	    gnutls_credentials_set(s->tls, GNUTLS_CRD_CERTIFICATE, tls_keys_credentials(s->keys)) ||
	    gnutls_alpn_set_protocols(s->tls, &h2, 1, GNUTLS_ALPN_MANDATORY))
		return -ENOMEM;
	if (tls_keys_ask_clients(s->keys)) {
		gnutls_certificate_server_set_request(s->tls, GNUTLS_CERT_REQUIRE);
		gnutls_session_set_verify_function(s->tls, verify_client);
	}
	return 0;
}

int grpc_socket_open(struct grpc_socket *s, int fd, struct tls *tls)
{
	*s = (struct grpc_socket){ .fd = fd, .is_shaken = !tls };
	int ret = tls ? open_tls(s, tls) : 0;
	if (ret)
		grpc_socket_close(s);
	return ret;
}

void grpc_socket_close(struct grpc_socket *s)
{
	if (s->tls)
		gnutls_deinit(s->tls);
	s->tls = NULL;
	tls_keys_put(s->keys);
	s->keys = NULL;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

int grpc_socket_shake(struct grpc_socket *s)
{
	int ret = 0;

	if (s->is_shaken)
		return 0;
	do
		ret = gnutls_handshake(s->tls);
	while (ret == GNUTLS_E_INTERRUPTED || (ret < 0 && ret != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(ret)));
	if (ret == GNUTLS_E_AGAIN)
		return -EAGAIN;
	if (ret < 0) {
		gnutls_alert_send_appropriate(s->tls, ret); /* may find no room: so be it */
		return -EPROTO;
	}
	s->is_shaken = true;
	return 0;
}

bool grpc_socket_waits_to_write(const struct grpc_socket *s)
{
	return !s->is_shaken && gnutls_record_get_direction(s->tls) == 1;
}

static ssize_t tls_error(ssize_t ret)
{
	return ret == GNUTLS_E_AGAIN || ret == GNUTLS_E_INTERRUPTED || !gnutls_error_is_fatal((int)ret) ? -EAGAIN : -EPROTO;
}

ssize_t grpc_socket_read(struct grpc_socket *s, void *data, size_t size)
{
	ssize_t n;

	if (s->tls) {
		n = gnutls_record_recv(s->tls, data, size);
		return n < 0 ? tls_error(n) : n;
	}
	do
		n = recv(s->fd, data, size, 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t grpc_socket_write(struct grpc_socket *s, const void *data, size_t len)
{
	ssize_t n;

	if (s->tls) {
		n = gnutls_record_send(s->tls, s->is_sending ? NULL : data, s->is_sending ? 0 : len);
		s->is_sending = n < 0 && tls_error(n) == -EAGAIN;
		return n < 0 ? tls_error(n) : n;
	}
	do
		n = send(s->fd, data, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

void grpc_socket_shut(struct grpc_socket *s)
{
	if (s->tls && s->is_shaken)
		gnutls_bye(s->tls, GNUTLS_SHUT_WR);
	shutdown(s->fd, SHUT_WR);
}

const struct sockaddr *grpc_socket_peer(const struct grpc_socket *s, struct sockaddr_storage *ret)
{
	socklen_t len = sizeof(*ret);

	return getpeername(s->fd, (struct sockaddr *)ret, &len) ? NULL : (const struct sockaddr *)ret;
}
