/* SPDX-License-Identifier: Apache-2.0 */
/* Pods as the API server writes them, and the attributes that come of them: by hand after the API's reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "enrich/kube/pod_json.h"
#include "tests/unit/enrich/describing.h"

#define ID_1 "1111111111111111111111111111111111111111111111111111111111111111"
#define ID_2 "2222222222222222222222222222222222222222222222222222222222222222"
#define ID_3 "3333333333333333333333333333333333333333333333333333333333333333"

static const char web_pod[] =
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-5d4f8c7b9-x2x1z\",\"generateName\":\"web-"
	"5d4f8c7b9-\","
	"\"namespace\":\"shop\",\"uid\":\"8a9b1c2d-0000-4000-8000-000000000001\",\"resourceVersion\":\"4711\","
	"\"labels\":{\"app\":\"web\",\"pod-template-hash\":\"5d4f8c7b9\",\"app.kubernetes.io/instance\":\"blue\","
	"\"app.kubernetes.io/name\":\"webshop\",\"app.kubernetes.io/version\":\"7\",\"tier\":\"front\"},"
	"\"annotations\":{\"resource.opentelemetry.io/team\":\"caf\\u00e9\",\"note\":\"a \\\"b\\\"\",\"big\":null},"
	"\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Other\",\"name\":\"no\",\"uid\":\"0\"},"
	"{\"apiVersion\":\"apps/"
	"v1\",\"kind\":\"ReplicaSet\",\"name\":\"web-5d4f8c7b9\",\"uid\":\"rs-1\",\"controller\":true,"
	"\"blockOwnerDeletion\":true}],\"managedFields\":[{\"manager\":\"x\",\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{}}}"
	"}]},"
	"\"spec\":{\"nodeName\":\"node-1\",\"hostname\":\"web\",\"containers\":[{\"name\":\"app\","
	"\"image\":\"registry.local:5000/shop/"
	"web:1.4@sha256:0123\",\"ports\":[{\"containerPort\":80}]},{\"name\":\"log\",\"image\":\"fluent\"}],"
	"\"initContainers\":[{\"name\":\"init\",\"image\":\"busybox:1\"}]},"
	"\"status\":{\"phase\":\"Running\",\"podIP\":\"10.1.2.3\",\"startTime\":\"2026-01-02T03:04:05Z\","
	"\"containerStatuses\":["
	"{\"name\":\"app\",\"image\":\"sha256:aa\",\"imageID\":\"docker-pullable://shop/"
	"web@sha256:0123\",\"containerID\":\"containerd://" ID_1 "\","
	"\"restartCount\":1,\"state\":{\"running\":{\"startedAt\":\"2026-01-02T03:04:06Z\"}},"
	"\"lastState\":{\"terminated\":{\"exitCode\":1,\"containerID\":\"containerd://" ID_2 "\"}}}],"
	"\"initContainerStatuses\":[{\"name\":\"init\",\"state\":{\"terminated\":{\"containerID\":\"containerd://" ID_3
	"\"}}}]}}";

static const char replica_set[] =
	"{\"kind\":\"PartialObjectMetadata\",\"metadata\":{\"name\":\"web-5d4f8c7b9\",\"uid\":\"rs-1\",\"ownerReferences\":["
	"{\"kind\":\"Deployment\",\"name\":\"web\",\"uid\":\"d-1\",\"controller\":true}]}}";

struct house {
	struct rules *rules;
	struct known *known;
	struct metrics *metrics;
};

static void open_house(struct house *h, struct rules_config config)
{
	struct buf error = BUF_EMPTY;

	if (rules_new(&config, &h->rules, &error))
		fail_msg("%s", buf_text(&error));
	h->metrics = metrics_new();
	assert_int_equal(known_new(h->rules, h->metrics, &h->known), 0);
	buf_fini(&error);
}

static void close_house(struct house *h)
{
	known_free(h->known);
	rules_free(h->rules);
	metrics_free(h->metrics);
}

/* In a block of its own, so that reading past its end is seen by the sanitizers. */
static struct pod *read_text(struct house *h, const char *text, bool is_namespace, const char **why)
{
	size_t len = strlen(text);
	AUTO_FREE char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, text, len);
	return pod_read_json(copy, len, h->rules, is_namespace, NULL, why);
}

static void put(struct house *h, const char *text)
{
	const char *why = "";
	struct pod *p = read_text(h, text, false, &why);

	if (!p)
		fail_msg("%s: %s", text, why);
	known_put_pod(h->known, p, 1);
}

/* Answers what is asked as an API server with these rights would. */
static void answer_all(struct house *h, bool may_get_owners)
{
	struct known_ask ask;
	const char *why = "";

	for (int i = 0; known_next_ask(h->known, 0, &ask); i++) {
		const char *text = ask.object == KNOWN_CLUSTER	    ? "{\"metadata\":{\"uid\":\"cluster-1\"}}"
				   : ask.object == KNOWN_NODE	    ? "{\"metadata\":{\"uid\":\"node-uid\"}}"
				   : ask.object == KNOWN_REPLICASET ? replica_set
				   : ask.object == KNOWN_JOB
					   ? "{\"metadata\":{\"uid\":\"job-1\",\"ownerReferences\":[{\"kind\":\"CronJob\","
					     "\"name\":\"nightly\",\"uid\":\"cj-1\",\"controller\":true}]}}"
					   : "{\"metadata\":{\"uid\":\"ns\",\"labels\":{\"env\":\"prod\"}}}";
		bool is_refused = !may_get_owners && (ask.object == KNOWN_REPLICASET || ask.object == KNOWN_JOB);

		assert_true(i < 10);
		known_answer(h->known, &ask, is_refused ? NULL : read_text(h, text, ask.object == KNOWN_NAMESPACE, &why));
	}
}

static void expect(const char *got, const char *wanted)
{
	if (strcmp(got, wanted) != 0)
		fail_msg("got:\n%s\nwanted:\n%s", got, wanted);
}

static void test_all_keys(void **state)
{
	static const char *const all[] = { "all" }, *const labels[] = { "/t.*r/", "mine=app", "namespace:env" },
				 *const annotations[] = { "note" };
	struct house h;

	(void)state;
	open_house(&h, (struct rules_config){ all, 1, labels, annotations, 3, 1, false });
	put(&h, web_pod);
	answer_all(&h, true);
	expect(describing(h.known, (struct known_query){ .container_id = ID_1 }),
	       "k8s.namespace.name=shop\n"
	       "k8s.pod.name=web-5d4f8c7b9-x2x1z\n"
	       "k8s.pod.uid=8a9b1c2d-0000-4000-8000-000000000001\n"
	       "k8s.pod.start_time=2026-01-02T03:04:05Z\n"
	       "k8s.pod.hostname=web\n"
	       "k8s.pod.ip=10.1.2.3\n"
	       "k8s.deployment.name=web\n"
	       "k8s.deployment.uid=d-1\n"
	       "k8s.replicaset.name=web-5d4f8c7b9\n"
	       "k8s.replicaset.uid=rs-1\n"
	       "k8s.node.name=node-1\n"
	       "k8s.node.uid=node-uid\n"
	       "k8s.cluster.uid=cluster-1\n"
	       "k8s.container.name=app\n"
	       "container.image.name=registry.local:5000/shop/web\n"
	       "container.image.tag=1.4\n"
	       "container.image.repo_digests=[shop/web@sha256:0123]\n"
	       "mine=web\n"
	       "k8s.pod.labels.tier=front\n"
	       "team=caf\xc3\xa9\n"
	       "k8s.pod.annotations.note=a \"b\"\n"
	       "k8s.namespace.labels.env=prod\n"
	       "service.name=web\n"
	       "service.namespace=shop\n"
	       "service.version=1.4@sha256:0123\n"
	       "service.instance.id=shop.web-5d4f8c7b9-x2x1z.app");
	close_house(&h);
}

/* The usual keys; the container that ran before; one that the status does not have yet, by the pod's uid. */
static void test_usual_keys(void **state)
{
	static const char of_pod[] = "k8s.namespace.name=shop\n"
				     "k8s.pod.name=web-5d4f8c7b9-x2x1z\n"
				     "k8s.pod.uid=8a9b1c2d-0000-4000-8000-000000000001\n"
				     "k8s.pod.start_time=2026-01-02T03:04:05Z\n"
				     "k8s.deployment.name=web\n"
				     "k8s.node.name=node-1\n"
				     "k8s.cluster.uid=cluster-1\n";
	struct house h;
	char text[2048];

	(void)state;
	open_house(&h, (struct rules_config){ 0 });
	put(&h, web_pod);
	answer_all(&h, true);
	snprintf(text, sizeof(text),
		 "%sk8s.container.name=app\ncontainer.image.name=registry.local:5000/shop/web\ncontainer.image.tag=1.4\n"
		 "team=caf\xc3\xa9\nservice.name=web\nservice.namespace=shop\nservice.version=1.4@sha256:0123\n"
		 "service.instance.id=shop.web-5d4f8c7b9-x2x1z.app",
		 of_pod);
	expect(describing(h.known, (struct known_query){ .container_id = ID_2, .executable = "httpd" }), text);
	snprintf(text, sizeof(text),
		 "%sk8s.container.name=init\ncontainer.image.name=busybox\ncontainer.image.tag=1\n"
		 "team=caf\xc3\xa9\nservice.name=web\nservice.namespace=shop\nservice.version=1\n"
		 "service.instance.id=shop.web-5d4f8c7b9-x2x1z.init",
		 of_pod);
	expect(describing(h.known, (struct known_query){ .container_id = ID_3 }), text);
	snprintf(text, sizeof(text), "%steam=caf\xc3\xa9\nservice.name=web\nservice.namespace=shop", of_pod);
	expect(describing(h.known, (struct known_query){ .container_id = "unknown",
							 .pod_uid = "8a9b1c2d-0000-4000-8000-000000000001" }),
	       text);
	expect(describing(h.known, (struct known_query){ .container_id = "unknown" }), "");
	assert_int_equal(describing_count(h.metrics, "hearth_kube_pods", ""), 1);
	close_house(&h);
}

/* Without the right to read owners a Deployment is told by the hash in its ReplicaSet's name, and only by that. */
static void test_no_right_to_owners(void **state)
{
	struct house h;

	(void)state;
	open_house(&h, (struct rules_config){ 0 });
	put(&h, web_pod);
	put(&h, "{\"metadata\":{\"uid\":\"u2\",\"name\":\"bare-abc\",\"namespace\":\"n\",\"ownerReferences\":[{\"kind\":"
		"\"ReplicaSet\",\"name\":\"bare-rs\",\"uid\":\"rs-2\",\"controller\":true}]}}");
	put(&h, "{\"metadata\":{\"uid\":\"u3\",\"name\":\"j-1-x\",\"namespace\":\"n\",\"ownerReferences\":[{\"kind\":"
		"\"Job\",\"name\":\"j-1\",\"uid\":\"job-9\",\"controller\":true}]}}");
	answer_all(&h, false);
	assert_non_null(
		strstr(describing(h.known, (struct known_query){ .container_id = ID_1 }), "\nk8s.deployment.name=web\n"));
	expect(describing(h.known, (struct known_query){ .pod_uid = "u2" }),
	       "k8s.namespace.name=n\nk8s.pod.name=bare-abc\nk8s.pod.uid=u2\nk8s.cluster.uid=cluster-1\nservice.name=bare-"
	       "rs\n"
	       "service.namespace=n");
	expect(describing(h.known, (struct known_query){ .pod_uid = "u3" }),
	       "k8s.namespace.name=n\nk8s.pod.name=j-1-x\nk8s.pod.uid=u3\nk8s.job.name=j-1\nk8s.cluster.uid=cluster-1\n"
	       "service.name=j-1\nservice.namespace=n");
	close_house(&h);
}

/* Who owns the owner is asked once for all its pods. */
static void test_owners_are_asked_once(void **state)
{
	static const char pod[] =
		"{\"metadata\":{\"uid\":\"%s\",\"name\":\"n\",\"namespace\":\"n\",\"ownerReferences\":[{\"kind\":"
		"\"Job\",\"name\":\"nightly-29\",\"uid\":\"job-1\",\"controller\":true}]}}";
	struct known_ask ask;
	char text[512];
	struct house h;

	(void)state;
	open_house(&h, (struct rules_config){ 0 });
	snprintf(text, sizeof(text), pod, "u1");
	put(&h, text);
	answer_all(&h, true);
	snprintf(text, sizeof(text), pod, "u2");
	put(&h, text);
	assert_false(known_next_ask(h.known, 0, &ask));
	assert_non_null(strstr(describing(h.known, (struct known_query){ .pod_uid = "u2" }),
			       "k8s.cronjob.name=nightly\nk8s.job.name=nightly-29\n"));
	close_house(&h);
}

static void test_services(void **state)
{
	struct house h;
	const char *text;

	(void)state;
	open_house(&h, (struct rules_config){ .service_labels = true });
	put(&h, web_pod);
	text = describing(h.known, (struct known_query){ .container_id = ID_1 });
	assert_non_null(strstr(text, "\nservice.name=blue\nservice.version=7\n"));
	put(&h, "{\"metadata\":{\"uid\":\"u2\",\"name\":\"p\",\"namespace\":\"n\",\"annotations\":{"
		"\"resource.opentelemetry.io/service.name\":\"said\",\"kubernetes.io/"
		"config.hash\":\"0123456789abcdef0123456789abcdef\"}}}");
	expect(describing(h.known, (struct known_query){ .pod_uid = "0123456789abcdef0123456789abcdef" }),
	       "k8s.namespace.name=n\nk8s.pod.name=p\nk8s.pod.uid=u2!\nservice.name=said\nservice.namespace=n");
	expect(describing(h.known, (struct known_query){ .unit = "cron.service", .executable = "cron" }),
	       "service.name=cron");
	expect(describing(h.known, (struct known_query){ .unit = "session-3.scope", .executable = "bash" }),
	       "service.name=bash");
	expect(describing(h.known, (struct known_query){ .unit = "user@0.service", .executable = "" }), "");
	close_house(&h);
}

/* A pod that has gone is known on; one that a new list lacks has gone, too; names that come late are counted. */
static void test_coming_and_going(void **state)
{
	struct house h;

	(void)state;
	open_house(&h, (struct rules_config){ 0 });
	describing(h.known, (struct known_query){ .container_id = ID_1, .samples = 5 });
	describing(h.known, (struct known_query){ .container_id = ID_1, .samples = 2 });
	assert_int_equal(describing_count(h.metrics, "hearth_enrich_samples_total", "found=\"nothing\""), 7);
	put(&h, web_pod);
	assert_int_equal(describing_count(h.metrics, "hearth_enrich_late_samples_total", ""), 7);
	known_pod_gone(h.known, "8a9b1c2d-0000-4000-8000-000000000001");
	known_pod_gone(h.known, "8a9b1c2d-0000-4000-8000-000000000001");
	assert_int_equal(known_pod_count(h.known), 0);
	assert_non_null(strstr(describing(h.known, (struct known_query){ .container_id = ID_1 }), "k8s.pod.name=web"));
	put(&h, web_pod);
	assert_int_equal(known_pod_count(h.known), 1);
	known_end_list(h.known, 2); /* the pod came by the first */
	assert_int_equal(known_pod_count(h.known), 0);
	assert_int_equal(describing_count(h.metrics, "hearth_enrich_late_samples_total", ""), 7);
	close_house(&h);
}

/* What a pod takes, texts and maps included: a bound that the documentation names. */
static void test_memory(void **state)
{
	struct house h;
	size_t before;
	char text[sizeof(web_pod)], *uid;

	(void)state;
	open_house(&h, (struct rules_config){ 0 });
	before = known_memory_bytes(h.known);
	memcpy(text, web_pod, sizeof(text));
	uid = strstr(text, "8a9b1c2d-0000");
	for (int i = 0; i < 250; i++) {
		uid[0] = (char)('0' + i / 100);
		uid[1] = (char)('0' + i / 10 % 10);
		uid[2] = (char)('0' + i % 10);
		put(&h, text);
	}
	assert_int_equal(known_pod_count(h.known), 250);
	print_message("%zu bytes a pod\n", (known_memory_bytes(h.known) - before) / 250);
	assert_true((known_memory_bytes(h.known) - before) / 250 < 2048);
	close_house(&h);
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"7",
		"\"pod\"",
		"{\"metadata\":7}",
		"{\"metadata\":{\"uid\":{}}}",
		"{}{}",
		"{\"metadata\":{\"labels\":[]}}",
		"{\"status\":{\"containerStatuses\":{}}}",
		"{\"metadata\":{\"uid\":\"a\nb\"}}",
		"{\"spec\":{\"containers\":[1]}}",
	};
	struct house h;

	(void)state;
	open_house(&h, (struct rules_config){ 0 });
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *why = NULL;

		if (read_text(&h, texts[i], false, &why))
			fail_msg("'%s' was taken", texts[i]);
		assert_non_null(why);
	}
	put(&h, "null"); /* nothing, and without a uid it is not kept */
	put(&h, "{\"metadata\":{\"uid\":\"\",\"name\":null,\"labels\":null},\"status\":null}");
	assert_int_equal(known_pod_count(h.known), 0);
	close_house(&h);
}

static void test_rules(void **state)
{
	static const char *const bad_key[] = { "k8s.pod.nam" }, *const minus[] = { "-k8s.pod.name" },
				 *const always[] = { "container.id", "k8s.pod.name" };
	static const char *const bad_labels[] = { "", "=a", "/", "//", "/(/", "namespace:" };
	struct buf error = BUF_EMPTY;
	struct rules *r = NULL;

	(void)state;
	assert_int_equal(rules_new(&(struct rules_config){ .keys = bad_key, .key_count = 1 }, &r, &error), -EINVAL);
	assert_string_equal(buf_text(&error), "there is no attribute 'k8s.pod.nam'; did you mean k8s.pod.name?");
	for (size_t i = 0; i < ARRAY_LEN(bad_labels); i++)
		if (rules_new(&(struct rules_config){ .labels = &bad_labels[i], .label_count = 1 }, &r, &error) != -EINVAL)
			fail_msg("'%s' was taken", bad_labels[i]);
	assert_int_equal(rules_new(&(struct rules_config){ .keys = always, .key_count = 2 }, &r, &error), 0);
	assert_true(rules_tell(r, ENRICH_POD_NAME));
	assert_false(rules_tell(r, ENRICH_NAMESPACE_NAME));
	rules_free(r);
	assert_int_equal(rules_new(&(struct rules_config){ .keys = minus, .key_count = 1 }, &r, &error), 0);
	assert_false(rules_tell(r, ENRICH_POD_NAME));
	assert_true(rules_tell(r, ENRICH_POD_UID));
	assert_false(rules_tell(r, ENRICH_POD_IP));
	rules_free(r);
	buf_fini(&error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_keys),
		cmocka_unit_test(test_usual_keys),
		cmocka_unit_test(test_no_right_to_owners),
		cmocka_unit_test(test_owners_are_asked_once),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_coming_and_going),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
