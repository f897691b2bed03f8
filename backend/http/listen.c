/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "host:port" to a listening socket. The host must be given: an address that all the world may reach is never a default.
 * Errors are told here in full, because only here is it known what failed.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "backend/http/http.h"
#include "backend/http/server.h"
#include "base/cleanup.h"
#include "base/handed.h"
#include "base/text/parse.h"

enum { HOST_MAX = 256 };

__attribute__((format(printf, 3, 4))) static int refuse(struct server_error *err, int error, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, args);
	va_end(args);
	return error;
}

/* Splits @address; @host gets the name without brackets. */
static int split(const char *address, char host[HOST_MAX], const char **port_ret, struct server_error *err)
{
	const char *colon = strrchr(address, ':');
	uint64_t port;
	if (parse_has_control(address))
		return refuse(err, -EINVAL, "an address to listen on has a control character");
	if (!colon || parse_u64(colon + 1, &port) || port > UINT16_MAX)
		return refuse(err, -EINVAL, "'%.64s' is no address to listen on: write HOST:PORT, such as 127.0.0.1:4318",
			      address);
	if (colon == address)
		return refuse(
			err, -EINVAL,
			"'%.64s' names no host: write 127.0.0.1%.8s to be reached from this machine, 0.0.0.0%.8s from any",
			address, address, address);

	const char *name = address;
	size_t len = (size_t)(colon - address);
	if (name[0] == '[' && name[len - 1] == ']') {
		name++;
		len -= 2;
	} else if (memchr(name, ':', len)) {
		return refuse(err, -EINVAL,
			      "'%.64s' could be read in two ways: write an IPv6 address in brackets, as in [::1]:4318",
			      address);
	}
	if (len == 0 || len >= HOST_MAX)
		return refuse(err, -EINVAL, "'%.64s' is no address to listen on: the host is missing or too long", address);
	memcpy(host, name, len);
	host[len] = '\0';
	if (!strcasecmp(host, "localhost")) /* its meaning by RFC 6761, also where nothing resolves it */
		strcpy(host, "127.0.0.1");
	*port_ret = colon + 1;
	return 0;
}

/* Chooses IPv4 for a name with several addresses: most clients try it first. */
static const struct addrinfo *choose(const struct addrinfo *list)
{
	const struct addrinfo *a = list;
	while (a->ai_family != AF_INET && a->ai_next)
		a = a->ai_next;
	return a->ai_family == AF_INET ? a : list;
}

static int open_socket(const struct addrinfo *a, uint16_t *port_ret)
{
	AUTO_CLOSE int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int on = 1;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) || bind(fd, a->ai_addr, a->ai_addrlen) ||
	    listen(fd, SOMAXCONN))
		return -errno;

	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} bound;
	socklen_t len = sizeof(bound);
	if (getsockname(fd, &bound.any, &len))
		return -errno;
	*port_ret = ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
	return MOVE_FD(fd);
}

static const char *advice(int error)
{
	switch (error) {
	case -EADDRINUSE:
		return "; stop the program that has it, or choose another port";
	case -EACCES:
		return "; ports below 1024 need privileges, choose a higher one";
	case -EADDRNOTAVAIL:
		return "; this machine has no such address";
	case -EMFILE:
		return "; raise the limit of open files (ulimit -n)";
	default:
		return "";
	}
}

int listen_on(const char *address, uint16_t *port_ret, struct server_error *err)
{
	char host[HOST_MAX];
	const char *port = NULL;
	unsigned handed_port = 0;
	int handed_fd = handed_take_socket(address, &handed_port);
	int ret = split(address, host, &port, err);

	if (handed_fd >= 0) { /* bound while we were allowed to */
		*port_ret = (uint16_t)handed_port;
		return handed_fd;
	}
	if (ret)
		return ret;

	struct addrinfo *list = NULL;
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	ret = getaddrinfo(host, port, &hints, &list);
	if (ret)
		return refuse(err, -EINVAL, "cannot listen on '%.64s': %s; write an address of this machine", address,
			      gai_strerror(ret));
	int fd = open_socket(choose(list), port_ret);
	freeaddrinfo(list);
	if (fd < 0)
		return refuse(err, fd, "cannot listen on '%.64s': %s%s", address, strerror(-fd), advice(fd));
	return fd;
}

int listen_check(const char *address, struct server_error *err)
{
	char host[HOST_MAX];
	const char *port;

	return split(address, host, &port, err);
}

bool is_loopback_address(const char *address)
{
	return !strncmp(address, "127.", 4) || !strncmp(address, "[::1]:", 6) || !strncmp(address, "localhost:", 10);
}
