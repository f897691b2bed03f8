/* SPDX-License-Identifier: Apache-2.0 */
/* The table of pods and containers, for want of memory at every place. An attribute less is no error: nothing may crash
 * or leak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "enrich/kube/pod_json.h"
#include "enrich/local/state_json.h"
#include "tests/unit/enrich/describing.h"
#include "tests/unit/failing_memory.h"

#define ID_1 "1111111111111111111111111111111111111111111111111111111111111111"
#define ID_2 "2222222222222222222222222222222222222222222222222222222222222222"

static const char pod_text_json[] =
	"{\"metadata\":{\"name\":\"web-5d4-x\",\"namespace\":\"shop\",\"uid\":\"uid-1\",\"resourceVersion\":\"4711\","
	"\"labels\":{"
	"\"app\":\"web\",\"pod-template-hash\":\"5d4\",\"tier\":\"front\"},\"annotations\":{\"resource.opentelemetry.io/"
	"team\":\"a\",\"note\":\"b\"},\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"name\":\"web-5d4\",\"uid\":\"rs-1\","
	"\"controller\":true}]},\"spec\":{\"nodeName\":\"node-1\",\"containers\":[{\"name\":\"app\",\"image\":\"shop/"
	"web:1.4\"}]},"
	"\"status\":{\"podIP\":\"10.1.2.3\",\"startTime\":\"2026-01-02T03:04:05Z\",\"containerStatuses\":[{\"name\":\"app\","
	"\"imageID\":\"shop/web@sha256:0123\",\"containerID\":\"containerd://" ID_1 "\"}]}}";

static const char docker_json[] = "{\"ID\":\"" ID_2 "\",\"Config\":{\"Image\":\"registry:5000/shop/web\",\"Labels\":{"
				  "\"com.docker.compose.project\":\"shop\",\"com.docker.compose.service\":\"web\"}},"
				  "\"Name\":\"/shop_web_1\"}";

static int make_rules(struct rules **ret)
{
	static const char *const labels[] = { "tier", "all.$0=/^app/" }, *const annotations[] = { "note",
												  "namespace:owner" };
	const struct rules_config config = {
		.labels = labels, .label_count = 2, .annotations = annotations, .annotation_count = 2
	};
	AUTO(buf_fini) struct buf why = BUF_EMPTY;

	return rules_new(&config, ret, &why);
}

static int make_container(struct known *known)
{
	struct container *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (!state_read_docker(docker_json, sizeof(docker_json) - 1, c)) {
		container_free(c);
		return -ENOMEM;
	}
	known_put_container(known, c);
	return 0;
}

static void forget(void *arg, const char *key, const char *value, enum known_form form)
{
	size_t *bytes = arg;

	(void)form;
	*bytes += strlen(key) + strlen(value);
}

static int pods(struct buf *out)
{
	const struct known_query queries[] = {
		{ .container_id = ID_1, .pod_uid = "", .unit = "", .executable = "web", .samples = 1 },
		{ .container_id = ID_2, .pod_uid = "", .unit = "", .executable = "web", .samples = 1 },
		{ .container_id = "", .pod_uid = "uid-1", .unit = "web.service", .executable = "web", .samples = 1 },
	};
	struct metrics *metrics = metrics_new();
	struct known *known = NULL;
	struct rules *rules = NULL;
	const char *why = NULL;
	size_t bytes = 0;
	int error = metrics ? make_rules(&rules) : -ENOMEM;

	(void)out;
	if (!error)
		error = known_new(rules, metrics, &known);
	for (uint64_t list = 1; !error && list < 3; list++) { /* the second takes the place of the first */
		struct pod *pod = pod_read_json(pod_text_json, sizeof(pod_text_json) - 1, rules, false, NULL, &why);

		if (pod)
			known_put_pod(known, pod, list);
		error = pod ? make_container(known) : -ENOMEM;
	}
	for (size_t i = 0; !error && i < ARRAY_LEN(queries); i++)
		known_describe(known, &queries[i], forget, &bytes);
	if (!error) {
		assert_true(known_memory_bytes(known) > 0);
		known_pod_gone(known, "uid-1");
		known_end_list(known, 3);
	}
	known_free(known);
	rules_free(rules);
	metrics_free(metrics);
	return error;
}

static void test_pods(void **state)
{
	static const struct memory_scenario scenario = { "pods", pods, false };

	(void)state;
	memory_fails_everywhere(&scenario);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_pods) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
