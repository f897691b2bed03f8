/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC over TLS with certificates made here: whom the exporter trusts, and what it shows of itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/sinks/exporter.h"

static char dir[] = "/tmp/hearth-tls-XXXXXX";
static bool is_ready;

/* An authority, a server's certificate for 127.0.0.1 and a client's, both signed by it; as strict as Python 3.13 wants them.
 */
static const char make_certificates[] =
	"exec 2>/dev/null >&2; set -e\n"
	"/usr/bin/python3 -c 'import h2'\n"
	"openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca "
	"-addext keyUsage=keyCertSign\n"
	"for name in server client; do\n"
	"  openssl req -newkey rsa:2048 -nodes -keyout $name.key -out $name.csr -subj /CN=$name\n"
	"  printf 'subjectAltName=IP:127.0.0.1\\nauthorityKeyIdentifier=keyid\\n' >ext\n"
	"  openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $name.pem -days 2 -extfile ext\n"
	"done\n";

static int setup(void **state)
{
	char command[2048];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command), "cd %s && (%s)", dir, make_certificates);
	is_ready = system(command) == 0;
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

struct tls_case {
	bool asks_for_client, trusts, shows;
	bool is_accepted;
};

static const struct tls_case cases[] = {
	{ .trusts = true, .is_accepted = true },
	{ .trusts = false, .is_accepted = false },
	{ .trusts = true, .asks_for_client = true, .is_accepted = false },
	{ .trusts = true, .asks_for_client = true, .shows = true, .is_accepted = true },
};

static void check_case(const struct tls_case *t)
{
	char ca[64], cert[64], key[64], server_cert[64], server_key[64], address[32];
	const char *arguments[MAX_ARGUMENTS] = { "/usr/bin/python3", TEST_DATA "/unit/sinks/grpc_collector.py", "--tls",
						 server_cert, server_key };
	size_t count = 5;
	struct otlp_sink_config config = { .url = address };
	struct buf messages = BUF_EMPTY;
	struct collector c;
	struct exporter e;

	snprintf(ca, sizeof(ca), "%s/ca.pem", dir);
	snprintf(cert, sizeof(cert), "%s/client.pem", dir);
	snprintf(key, sizeof(key), "%s/client.key", dir);
	snprintf(server_cert, sizeof(server_cert), "%s/server.pem", dir);
	snprintf(server_key, sizeof(server_key), "%s/server.key", dir);
	if (t->asks_for_client) {
		arguments[count++] = "--client-ca";
		arguments[count++] = ca;
	}
	arguments[count++] = "0";
	arguments[count++] = "OK";
	c = collector_run(arguments);
	snprintf(address, sizeof(address), "127.0.0.1:%d", c.port); /* without a scheme it is TLS */
	config.ca_file = t->trusts ? ca : NULL;
	config.cert_file = t->shows ? cert : NULL;
	config.key_file = t->shows ? key : NULL;
	exporter_open(&e, config);
	export_events(&e, EVENTS);
	export_events(&e, 1);
	assert_int_equal(flush_for(&e, t->is_accepted ? LONG_NS : NSEC_PER_SEC), t->is_accepted ? 0 : -ETIMEDOUT);
	assert_int_equal(exported(&e), t->is_accepted ? EVENTS + 1 : 0);
	finish(&e, &c, NULL, &messages);
	if (!t->is_accepted)
		assert_has(&messages, "cannot reach grpcs://127.0.0.1:");
	buf_fini(&messages);
}

static void test_cases(void **state)
{
	(void)state;
	if (!is_ready) {
		print_message("no openssl or no python3-h2\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_case(&cases[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases) };

	setenv("no_proxy", "127.0.0.1", 1);
	return cmocka_run_group_tests(tests, setup, teardown);
}
