/* SPDX-License-Identifier: Apache-2.0 */
/* Detectors that ask somebody, in front of a server of the test's own: what they ask, what they take of the answers, and
 * what they make of none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "sinks/stage/detectors.h"
#include "tests/unit/http_answers.h"

static struct http_answers server;
static struct facts facts;

/* What the detector @name finds where these @answers are. */
static void detect(const char *name, const struct http_answer *answers)
{
	const struct detector *d = detector_find(name);

	assert_non_null(d);
	assert_true(d->asks);
	memset(&facts, 0, sizeof(facts));
	http_answers_begin(&server, answers);
	d->run(&facts, server.url, 5 * NSEC_PER_SEC);
	http_answers_end(&server);
}

static void expect(size_t count, const char *const (*expected)[2])
{
	assert_int_equal(facts.count, count);
	for (size_t i = 0; i < count; i++) {
		size_t k = 0;

		while (k < count && strcmp(facts.items[k].key, expected[i][0]) != 0)
			k++;
		if (k == count)
			fail_msg("no %s", expected[i][0]);
		assert_string_equal(facts.items[k].value, expected[i][1]);
	}
}

#define EXPECT(...)                                                       \
	do {                                                              \
		static const char *const expected[][2] = { __VA_ARGS__ }; \
                                                                          \
		expect(sizeof(expected) / sizeof(*expected), expected);   \
	} while (0)

static void test_docker(void **state)
{
	static const struct http_answer good[] = { { "GET /info ", 200,
						     "{\"Name\":\"box\",\"NCPU\":2,\"OSType\":\"linux\"}" },
						   { 0 } },
					bad[][2] = {
						{ { "GET /info ", 500, "{\"Name\":\"box\"}" } },
						{ { "GET /info ", 200, "[]" } },
						{ { "GET /info ", 200, "{\"Name\":\"\xff\"}" } },
					};

	(void)state;
	detect("docker", good);
	EXPECT({ "host.name", "box" }, { "os.type", "linux" });
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		detect("docker", bad[i]);
		assert_int_equal(facts.count, 0);
	}
}

/* With the token that it was given before. */
static void test_ec2(void **state)
{
	static const struct http_answer answers[] = {
		{ "PUT /latest/api/token ", 200, "a-token" },
		{ "GET /latest/dynamic/instance-identity/document ", 200,
		  "{\"accountId\":\"1\",\"region\":\"eu-west-1\",\"availabilityZone\":\"eu-west-1b\",\"instanceId\":\"i-7\","
		  "\"imageId\":\"ami-1\",\"instanceType\":\"m5.large\",\"billing\":null}" },
		{ "GET /latest/meta-data/hostname ", 200, "ip-10.internal" },
		{ 0 },
	};

	(void)state;
	detect("ec2", answers);
	EXPECT({ "cloud.account.id", "1" }, { "cloud.region", "eu-west-1" }, { "cloud.availability_zone", "eu-west-1b" },
	       { "host.id", "i-7" }, { "host.image.id", "ami-1" }, { "host.type", "m5.large" }, { "cloud.provider", "aws" },
	       { "cloud.platform", "aws_ec2" }, { "host.name", "ip-10.internal" });
	assert_int_equal(server.count, 3);
	assert_non_null(strstr(server.head, "\r\nX-aws-ec2-metadata-token: a-token\r\n"));
	detect("ec2", answers + 1); /* without a token nothing is asked */
	assert_int_equal(facts.count, 0);
	assert_int_equal(server.count, 1);
	assert_non_null(strstr(server.head, "\r\nX-aws-ec2-metadata-token-ttl-seconds: 60\r\n"));
}

static void test_gcp(void **state)
{
	static const struct http_answer answers[] = {
		{ "GET /computeMetadata/v1/project/project-id ", 200, "my-project" },
		{ "GET /computeMetadata/v1/instance/id ", 200, "42" },
		{ "GET /computeMetadata/v1/instance/zone ", 200, "projects/1/zones/europe-west3-a" },
		{ "GET /computeMetadata/v1/instance/machine-type ", 200, "projects/1/machineTypes/e2-small" },
		{ 0 },
	};

	(void)state;
	detect("gcp", answers);
	EXPECT({ "cloud.account.id", "my-project" }, { "host.id", "42" }, { "cloud.availability_zone", "europe-west3-a" },
	       { "cloud.region", "europe-west3" }, { "host.type", "e2-small" }, { "cloud.provider", "gcp" },
	       { "cloud.platform", "gcp_compute_engine" });
	assert_non_null(strstr(server.head, "\r\nMetadata-Flavor: Google\r\n"));
	assert_int_equal(server.count, 6);
	detect("gcp", answers + 1); /* who does not know the project is another */
	assert_int_equal(facts.count, 0);
	assert_int_equal(server.count, 1);
}

static void test_azure(void **state)
{
	static const struct http_answer answers[] = {
		{ "GET /metadata/instance/compute?api-version=2020-09-01&format=json ", 200,
		  "{\"location\":\"westeurope\",\"subscriptionId\":\"s\",\"vmId\":\"v\",\"name\":\"n\",\"vmSize\":\"B1\","
		  "\"resourceGroupName\":\"g\",\"zone\":\"\"}" },
		{ 0 },
	}, empty[] = { { "GET /metadata/", 200, "{\"tags\":\"\"}" }, { 0 } };

	(void)state;
	detect("azure", answers);
	EXPECT({ "cloud.region", "westeurope" }, { "cloud.account.id", "s" }, { "host.id", "v" }, { "host.name", "n" },
	       { "azure.vm.size", "B1" }, { "azure.resourcegroup.name", "g" }, { "cloud.provider", "azure" },
	       { "cloud.platform", "azure_vm" }, { "azure.vm.name", "n" });
	assert_non_null(strstr(server.head, "\r\nMetadata: true\r\n"));
	detect("azure", empty);
	assert_int_equal(facts.count, 0);
}

/* An answer too long is none. */
static void test_long_answer(void **state)
{
	static char text[2 << 20];
	const struct http_answer answers[] = { { "GET /info ", 200, text }, { 0 } };
	size_t len = (size_t)sprintf(text, "{\"Name\":\"box\",\"x\":\"");

	(void)state;
	memset(text + len, 'x', sizeof(text) - len - 3);
	strcpy(text + sizeof(text) - 3, "\"}");
	detect("docker", answers);
	assert_int_equal(facts.count, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_docker), cmocka_unit_test(test_ec2),	   cmocka_unit_test(test_gcp),
		cmocka_unit_test(test_azure),  cmocka_unit_test(test_long_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
