/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of collectors: every form, what it becomes, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "sinks/otlp/endpoint.h"

#define RPC  "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define PATH "/v1development/profiles"

struct endpoint_case {
	const char *text;
	const char *url; /* NULL: refused with @error */
	const char *display;
	enum otlp_protocol asked, is;
	bool insecure;
	const char *unix_path;
	int error;
};

static const struct endpoint_case cases[] = {
	{ "http://h:4318", "http://h:4318" PATH, "http://h:4318" PATH, .asked = OTLP_BY_URL, .is = OTLP_HTTP_PROTOBUF },
	{ "http://h:4318/", "http://h:4318" PATH, "http://h:4318" PATH, .asked = OTLP_BY_URL, .is = OTLP_HTTP_PROTOBUF },
	{ "http://h:4318/.", "http://h:4318/", "http://h:4318/", .asked = OTLP_BY_URL, .is = OTLP_HTTP_PROTOBUF },
	{ "HTTP://h/a/b?c=d", "http://h/a/b?c=d", "http://h/a/b?c=d", .asked = OTLP_BY_URL, .is = OTLP_HTTP_PROTOBUF },
	{ "https://u:p@h/x", "https://u:p@h/x", "https://h/x", .asked = OTLP_HTTP_PROTOBUF, .is = OTLP_HTTP_PROTOBUF },
	{ "http://[::1]:4318", "http://[::1]:4318" PATH, "http://[::1]:4318" PATH, .asked = OTLP_BY_URL,
	  .is = OTLP_HTTP_PROTOBUF },
	/* gRPC under an http URL: its path is of no account */
	{ "http://h:4317", "http://h:4317" RPC, "grpc://h:4317", .asked = OTLP_GRPC, .is = OTLP_GRPC },
	{ "http://h:4317" PATH "?q#f", "http://h:4317" RPC, "grpc://h:4317", .asked = OTLP_GRPC, .is = OTLP_GRPC },
	{ "https://u:p@h", "https://u:p@h" RPC, "grpcs://h", .asked = OTLP_GRPC, .is = OTLP_GRPC },
	/* a scheme of its own, whatever is asked for */
	{ "grpc://h:4317", "http://h:4317" RPC, "grpc://h:4317", .asked = OTLP_BY_URL, .is = OTLP_GRPC },
	{ "grpc://h", "http://h:4317" RPC, "grpc://h:4317", .asked = OTLP_HTTP_PROTOBUF, .is = OTLP_GRPC },
	{ "grpcs://h/", "https://h:4317" RPC, "grpcs://h:4317", .asked = OTLP_BY_URL, .is = OTLP_GRPC },
	{ "grpcs://[::1]:9", "https://[::1]:9" RPC, "grpcs://[::1]:9", .asked = OTLP_BY_URL, .is = OTLP_GRPC },
	{ "grpcs://h", "https://h:4317" RPC, "grpcs://h:4317", .asked = OTLP_BY_URL, .is = OTLP_GRPC, .insecure = true },
	/* no scheme */
	{ "h:4317", "https://h:4317" RPC, "grpcs://h:4317", .asked = OTLP_BY_URL, .is = OTLP_GRPC },
	{ "h", "https://h:4317" RPC, "grpcs://h:4317", .asked = OTLP_BY_URL, .is = OTLP_GRPC },
	{ "127.0.0.1:4317", "http://127.0.0.1:4317" RPC, "grpc://127.0.0.1:4317", .asked = OTLP_BY_URL, .is = OTLP_GRPC,
	  .insecure = true },
	{ "[::1]:4317", "https://[::1]:4317" RPC, "grpcs://[::1]:4317", .asked = OTLP_GRPC, .is = OTLP_GRPC },
	{ "h:4318", "https://h:4318" PATH, "https://h:4318" PATH, .asked = OTLP_HTTP_PROTOBUF, .is = OTLP_HTTP_PROTOBUF },
	{ "h:4318", "http://h:4318" PATH, "http://h:4318" PATH, .asked = OTLP_HTTP_PROTOBUF, .is = OTLP_HTTP_PROTOBUF,
	  .insecure = true },
	/* sockets in the file system */
	{ "unix:/run/c.sock", "http://localhost" RPC, "unix:/run/c.sock", .asked = OTLP_BY_URL, .is = OTLP_GRPC,
	  .unix_path = "/run/c.sock" },
	{ "unix:///run/c.sock", "http://localhost" RPC, "unix:/run/c.sock", .asked = OTLP_GRPC, .is = OTLP_GRPC,
	  .unix_path = "/run/c.sock" },
	{ "unix:c.sock", "http://localhost" PATH, "unix:c.sock", .asked = OTLP_HTTP_PROTOBUF, .is = OTLP_HTTP_PROTOBUF,
	  .unix_path = "c.sock" },
	/* refused */
	{ "", .error = -EINVAL },
	{ "http://", .error = -EINVAL },
	{ "http://h:99999", .error = -EINVAL },
	{ "h:port", .error = -EINVAL },
	{ "a b:1", .error = -EINVAL },
	{ "grpc://h/path", .error = -EINVAL },
	{ "h:4317/path", .error = -EINVAL },
	{ "unix:", .error = -EINVAL },
	{ "unix:/run/c\n.sock", .error = -EINVAL },
	{ "unix:/run/c.sock\x7f", .error = -EINVAL },
	{ "http://h/a\nb", .error = -EINVAL },
	{ "h\x1f:1", .error = -EINVAL },
	{ "unix:/long/long/long/long/long/long/long/long/long/long/long/long/long/long/long/long/long/long/long/long/long/"
	  "long/l",
	  .error = -EINVAL },
	{ "ftp://h/", .error = -EPROTONOSUPPORT },
	{ "://h", .error = -EPROTONOSUPPORT },
};

static void check_text(const char *text, const char *what, const char *is, const char *should)
{
	if (!is != !should || (is && strcmp(is, should)))
		fail_msg("'%s': %s is '%s', not '%s'", text, what, is ? is : "(null)", should ? should : "(null)");
}

/* The other signals' addresses follow the profiles' where those tell enough. */
static void test_other_signals(void **state)
{
	static const struct {
		const char *text, *logs, *traces;
	} others[] = {
		{ "http://h:4318", "http://h:4318/v1/logs", "http://h:4318/v1/traces" },
		{ "https://u:p@h/otlp" PATH, "https://u:p@h/otlp/v1/logs", "https://u:p@h/otlp/v1/traces" },
		{ "http://h" PATH "?tenant=1", "http://h/v1/logs?tenant=1", "http://h/v1/traces?tenant=1" },
		{ "http://h/elsewhere", NULL, NULL },
		{ "http://h/.", NULL, NULL },
		{ "grpc://h", "http://h:4317/opentelemetry.proto.collector.logs.v1.LogsService/Export",
		  "http://h:4317/opentelemetry.proto.collector.trace.v1.TraceService/Export" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		struct otlp_endpoint e;

		assert_int_equal(otlp_endpoint_init(&e, others[i].text, OTLP_BY_URL, false), 0);
		check_text(others[i].text, "logs", e.others[OTLP_LOGS], others[i].logs);
		check_text(others[i].text, "traces", e.others[OTLP_TRACES], others[i].traces);
		otlp_endpoint_fini(&e);
	}
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct endpoint_case *c = &cases[i];
		struct otlp_endpoint e;
		int error = otlp_endpoint_init(&e, c->text, c->asked, c->insecure);

		if (error != c->error)
			fail_msg("'%s': %d, not %d", c->text, error, c->error);
		check_text(c->text, "URL", e.url, c->url);
		check_text(c->text, "shown", e.display, c->display);
		check_text(c->text, "socket", e.unix_path, c->unix_path);
		if (!error) {
			assert_int_equal(e.protocol, c->is);
			assert_int_equal(e.tls, strncmp(c->url, "https", 5) == 0);
		}
		otlp_endpoint_fini(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases), cmocka_unit_test(test_other_signals) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
