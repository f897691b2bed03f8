/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the other end of a connection is: our own, another user's, over both protocols, and one that has gone. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/http/peer.h"

enum { A_USER = 65533 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int listen_on_loopback(int family, union address *address)
{
	socklen_t len = family == AF_INET ? sizeof(address->v4) : sizeof(address->v6);
	int fd = socket(family, SOCK_STREAM, 0);

	if (family == AF_INET)
		address->v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	else
		address->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	if (fd < 0 || bind(fd, &address->any, len) || listen(fd, 1) || getsockname(fd, &address->any, &len))
		return -1;
	return fd;
}

static int connect_to(const union address *address)
{
	const socklen_t len = address->any.sa_family == AF_INET ? sizeof(address->v4) : sizeof(address->v6);
	int fd = socket(address->any.sa_family, SOCK_STREAM, 0);

	return connect(fd, &address->any, len) ? -1 : fd;
}

static void check_family(int family)
{
	union address address;
	uint32_t uid = 1;
	int server = listen_on_loopback(family, &address), client, ours;

	if (server < 0) /* a machine without IPv6 */
		return;
	client = connect_to(&address);
	ours = accept(server, NULL, NULL);
	assert_true(client >= 0 && ours >= 0);
	assert_int_equal(peer_uid(ours, &uid), 0);
	assert_int_equal(uid, geteuid());
	close(client);
	assert_int_equal(peer_uid(ours, &uid), -ENOENT);
	close(ours);
	close(server);
}

static void test_ourselves(void **state)
{
	(void)state;
	check_family(AF_INET);
	check_family(AF_INET6);
}

static void test_another(void **state)
{
	union address address;
	uint32_t uid = 0;
	int server = listen_on_loopback(AF_INET, &address), ours, pair[2];
	pid_t pid;
	char byte;

	(void)state;
	if (geteuid())
		skip();
	assert_return_code(pipe(pair), errno);
	pid = fork();
	if (!pid) {
		if (setresuid(A_USER, A_USER, A_USER) || connect_to(&address) < 0)
			_exit(1);
		close(pair[1]);
		_exit(read(pair[0], &byte, 1) == 0 ? 0 : 1);
	}
	ours = accept(server, NULL, NULL);
	assert_int_equal(peer_uid(ours, &uid), 0);
	assert_int_equal(uid, A_USER);
	assert_false(peer_is_allowed(&(struct peer_users){ 0 }, uid));
	assert_true(peer_is_allowed(&(struct peer_users){ .uids = (uint32_t[]){ 7, A_USER }, .count = 2 }, uid));
	assert_true(peer_is_allowed(&(struct peer_users){ .all = true }, uid));
	assert_false(peer_reads_addresses(
		&(struct peer_users){ .uids = (uint32_t[]){ 7, A_USER }, .count = 2, .readers = 1 }, uid));
	assert_true(peer_reads_addresses(&(struct peer_users){ .uids = (uint32_t[]){ A_USER, 7 }, .count = 2, .readers = 1 },
					 uid));
	close(pair[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(pair[0]);
	close(ours);
	close(server);
}

static void test_no_tcp(void **state)
{
	uint32_t uid;
	int pair[2];

	(void)state;
	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), errno);
	assert_int_equal(peer_uid(pair[0], &uid), -EAFNOSUPPORT);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_ourselves), cmocka_unit_test(test_another),
					    cmocka_unit_test(test_no_tcp) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
