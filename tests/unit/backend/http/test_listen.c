/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to listen on: what each becomes, and what is said of those that are refused. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/http/http.h"
#include "backend/http/server.h"
#include "base/handed.h"
#include "tests/unit/descriptors.h"

/* Longer than a part of a name may be, so that no server is asked. */
#define NO_NAME "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_refused(void **state)
{
	static char long_host[300];
	static const struct {
		const char *address, *says;
	} rows[] = {
		{ "", "'' is no address to listen on: write HOST:PORT, such as 127.0.0.1:4318" },
		{ "127.0.0.1", "'127.0.0.1' is no address to listen on: write HOST:PORT" },
		{ "127.0.0.1:", "'127.0.0.1:' is no address" },
		{ "127.0.0.1:http", "'127.0.0.1:http' is no address" },
		{ "127.0.0.1:65536", "'127.0.0.1:65536' is no address" },
		{ ":4318",
		  "':4318' names no host: write 127.0.0.1:4318 to be reached from this machine, 0.0.0.0:4318 from any" },
		{ "::1:80", "'::1:80' could be read in two ways: write an IPv6 address in brackets" },
		{ "[::1:80", "'[::1:80' could be read in two ways" },
		{ "[]:80", "'[]:80' is no address to listen on: the host is missing or too long" },
		{ long_host, "the host is missing or too long" },
		{ "127.0.0.1\n:80", "an address to listen on has a control character" },
		{ "\x7f:80", "an address to listen on has a control character" },
		{ NO_NAME ":80", "cannot listen on '" NO_NAME "': " },
		{ "192.0.2.1:0",
		  "cannot listen on '192.0.2.1:0': Cannot assign requested address; this machine has no such address" },
	};

	(void)state;
	memset(long_host, 'h', 256);
	strcpy(long_host + 256, ":80");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct server_error error = { "" };
		uint16_t port = 7;
		int err = listen_on(rows[i].address, &port, &error);

		if (!strstr(error.message, rows[i].says))
			fail_msg("row %zu says: %s", i, error.message);
		assert_int_equal(err, strstr(rows[i].says, "Cannot assign") ? -EADDRNOTAVAIL : -EINVAL);
		assert_int_equal(port, 7);
		error.message[0] = '\0';
		if (strstr(rows[i].says, "cannot listen")) { /* it has the form of an address */
			assert_int_equal(listen_check(rows[i].address, &error), 0);
			continue;
		}
		assert_int_equal(listen_check(rows[i].address, &error), -EINVAL);
		assert_non_null(strstr(error.message, rows[i].says));
	}
	/* just not too long: it is asked for */
	strcpy(long_host + 255, ":80");
	assert_int_equal(listen_on(long_host, &(uint16_t){ 0 }, &(struct server_error){ "" }), -EINVAL);
}

static void test_taken(void **state)
{
	static const char *const addresses[] = { "127.0.0.1:0", "[127.0.0.1]:0", "localhost:0", "LocalHost:0", "[::1]:0" };

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
		struct server_error error = { "" };
		struct sockaddr_storage bound;
		socklen_t len = sizeof(bound);
		uint16_t port = 0;
		char again[32];
		int fd = listen_on(addresses[i], &port, &error), on = 0;

		if (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT) /* a machine without IPv6 */
			continue;
		assert_return_code(fd, -fd);
		assert_int_equal(getsockname(fd, (struct sockaddr *)&bound, &len), 0);
		assert_int_equal(bound.ss_family, i == 4 ? AF_INET6 : AF_INET);
		if (i < 4)
			assert_int_equal(((struct sockaddr_in *)&bound)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
		assert_int_equal(port, ntohs(((struct sockaddr_in *)&bound)->sin_port));
		assert_int_not_equal(port, 0);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC && fcntl(fd, F_GETFL) & O_NONBLOCK);
		len = sizeof(on);
		assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len), 0);
		assert_int_equal(on, 1);
		snprintf(again, sizeof(again), "%s%u", i == 4 ? "[::1]:" : "127.0.0.1:", port);
		assert_int_equal(listen_on(again, &port, &error), -EADDRINUSE);
		assert_non_null(strstr(error.message, "stop the program that has it, or choose another port"));
		close(fd);
	}
}

/* A socket that was bound before is taken once, by its address. */
static void test_handed(void **state)
{
	static const char address[] = "127.0.0.1:81";
	struct server_error error = { "" };
	uint16_t port = 0;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_return_code(fd, errno);
	assert_int_equal(handed_add_socket(fd, address, 81), 0);
	assert_int_equal(listen_on(address, &port, &error), fd);
	assert_int_equal(port, 81);
	close(fd);
}

static void test_loopback(void **state)
{
	static const struct {
		const char *address;
		bool is;
	} rows[] = {
		{ "127.0.0.1:4318", true },  { "127.9.9.9:1", true },	{ "[::1]:4318", true },
		{ "localhost:4318", true },  { "0.0.0.0:4318", false }, { "[::]:4318", false },
		{ "128.0.0.1:4318", false }, { "[::2]:4318", false },	{ "localhosts:80", false },
		{ "1127.0.0.1:1", false },   { "127", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(is_loopback_address(rows[i].address), rows[i].is);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_handed),
		cmocka_unit_test(test_loopback),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
