/* SPDX-License-Identifier: Apache-2.0 */
/* Detectors that ask somebody, in front of a server of the test's own: what they ask, what they take of the answers, and
 * what they make of none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "sinks/stage/detectors.h"
#include "tests/unit/http_answers.h"

static struct http_answers server;
static struct facts facts;
static const struct http_answer *kubernetes; /* what its API server has, by path; NULL: there is none */

static int get_object(const void *arg, const char *path, uint64_t timeout_ns, struct buf *out)
{
	const struct http_answer *a = kubernetes;

	assert_ptr_equal(arg, &facts);
	assert_true(timeout_ns == 5 * NSEC_PER_SEC);
	while (a && a->begin && strcmp(a->begin, path) != 0)
		a++;
	if (!a || !a->begin || a->status != 200)
		return -ENOENT;
	buf_puts(out, a->text);
	return 0;
}

/* What the detector @name finds where these @answers are. */
static void detect(const char *name, const struct http_answer *answers)
{
	const struct detector *d = detector_find(name);
	struct detector_way way = { server.url, 5 * NSEC_PER_SEC, { get_object, &facts } };

	assert_non_null(d);
	assert_true(d->asks);
	memset(&facts, 0, sizeof(facts));
	http_answers_begin(&server, answers);
	setenv("ECS_CONTAINER_METADATA_URI_V4", server.url, 1);
	d->run(&facts, &way);
	unsetenv("ECS_CONTAINER_METADATA_URI_V4");
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

static const struct http_answer no_answers[] = { { 0 } };

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

/* The API server's version tells whose it is; the node may be asked itself, or may not. */
static void test_eks(void **state)
{
	static const struct http_answer theirs[] = { { "/version", 200,
						       "{\"major\":\"1\",\"gitVersion\":\"v1.33.1-eks-1fbb135\"}" },
						     { 0 } },
					another[] = { { "/version", 200, "{\"gitVersion\":\"v1.33.1\"}" }, { 0 } },
					none[] = { { "/version", 200, "[\"v1.33.1-eks-1\"]" }, { 0 } };
	static const struct http_answer node[] = {
		{ "PUT /latest/api/token ", 200, "t" },
		{ "GET /latest/dynamic/instance-identity/document ", 200,
		  "{\"instanceId\":\"i-7\",\"region\":\"eu-west-1\"}" },
		{ 0 },
	};

	(void)state;
	kubernetes = theirs;
	detect("eks", node);
	EXPECT({ "cloud.provider", "aws" }, { "cloud.platform", "aws_eks" }, { "host.id", "i-7" },
	       { "cloud.region", "eu-west-1" });
	detect("eks", no_answers);
	EXPECT({ "cloud.provider", "aws" }, { "cloud.platform", "aws_eks" });
	kubernetes = another;
	detect("eks", node);
	assert_int_equal(facts.count, 0);
	assert_int_equal(server.count, 0);
	kubernetes = none;
	detect("eks", node);
	assert_int_equal(facts.count, 0);
	kubernetes = NULL;
	detect("eks", node);
	assert_int_equal(facts.count, 0);
}

/* The cluster comes as a name or as a whole ARN, the task's id behind the cluster's name or alone. */
static void test_ecs(void **state)
{
	static const struct http_answer task[] = {
		{ "GET /task ", 200,
		  "{\"Cluster\":\"shop\",\"TaskARN\":\"arn:aws:ecs:eu-west-1:42:task/shop/0a1b\",\"Family\":\"cart\","
		  "\"Revision\":\"5\",\"AvailabilityZone\":\"eu-west-1b\",\"LaunchType\":\"FARGATE\",\"Containers\":[{}]}" },
		{ 0 },
	}, old[] = {
		{ "GET /task ", 200,
		  "{\"Cluster\":\"arn:aws:ecs:us-east-1:7:cluster/c\",\"TaskARN\":\"arn:aws:ecs:us-east-1:7:task/9\","
		  "\"LaunchType\":\"EXTERNAL\"}" },
		{ 0 },
	}, strange[] = { { "GET /task ", 200, "{\"TaskARN\":\"arn:aws/\",\"Family\":\"cart\"}" }, { 0 } };

	(void)state;
	detect("ecs", task);
	EXPECT({ "cloud.provider", "aws" }, { "cloud.platform", "aws_ecs" }, { "aws.ecs.task.family", "cart" },
	       { "aws.ecs.task.revision", "5" }, { "cloud.availability_zone", "eu-west-1b" },
	       { "cloud.region", "eu-west-1" }, { "cloud.account.id", "42" },
	       { "aws.ecs.task.arn", "arn:aws:ecs:eu-west-1:42:task/shop/0a1b" }, { "aws.ecs.task.id", "0a1b" },
	       { "aws.ecs.cluster.arn", "arn:aws:ecs:eu-west-1:42:cluster/shop" }, { "aws.ecs.launchtype", "fargate" });
	detect("ecs", old);
	EXPECT({ "cloud.provider", "aws" }, { "cloud.platform", "aws_ecs" }, { "cloud.region", "us-east-1" },
	       { "cloud.account.id", "7" }, { "aws.ecs.task.arn", "arn:aws:ecs:us-east-1:7:task/9" },
	       { "aws.ecs.task.id", "9" }, { "aws.ecs.cluster.arn", "arn:aws:ecs:us-east-1:7:cluster/c" });
	detect("ecs", strange);
	EXPECT({ "cloud.provider", "aws" }, { "cloud.platform", "aws_ecs" }, { "aws.ecs.task.family", "cart" });
	detect("ecs", no_answers);
	assert_int_equal(facts.count, 0);
}

#define KUBEADM_CONFIG "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"

/* kubeadm itself writes the name into a text of YAML. */
static void test_kubeadm(void **state)
{
	static const struct http_answer written
		[] = { { KUBEADM_CONFIG, 200,
			 "{\"kind\":\"ConfigMap\",\"data\":{\"ClusterConfiguration\":\"apiServer: {}\\nclusterName: blue\\n"
			 "dns: {}\\n\"},\"metadata\":{\"uid\":\"no\"}}" },
		       { "/api/v1/namespaces/kube-system", 200,
			 "{\"metadata\":{\"name\":\"kube-system\",\"labels\":{\"uid\":\"no\"},\"uid\":\"8f-1\"}}" },
		       { 0 } },
	 beside[] = { { KUBEADM_CONFIG, 200, "{\"data\":{\"clusterName\":\"green\",\"ClusterConfiguration\":\"[\"}}" },
		      { 0 } },
	 strange[] = { { KUBEADM_CONFIG, 200, "{\"data\":{\"ClusterConfiguration\":\"clusterName: [a]\"}}" },
		       { "/api/v1/namespaces/kube-system", 200, "{\"metadata\":" },
		       { 0 } };

	(void)state;
	kubernetes = written;
	detect("kubeadm", no_answers);
	EXPECT({ "k8s.cluster.name", "blue" }, { "k8s.cluster.uid", "8f-1" });
	kubernetes = beside;
	detect("kubeadm", no_answers);
	EXPECT({ "k8s.cluster.name", "green" });
	kubernetes = strange;
	detect("kubeadm", no_answers);
	assert_int_equal(facts.count, 0);
	kubernetes = NULL;
	detect("kubeadm", no_answers);
	assert_int_equal(facts.count, 0);
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
		cmocka_unit_test(test_azure),  cmocka_unit_test(test_long_answer), cmocka_unit_test(test_eks),
		cmocka_unit_test(test_ecs),    cmocka_unit_test(test_kubeadm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
