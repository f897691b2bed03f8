/* SPDX-License-Identifier: Apache-2.0 */
/* Containers by the files of runtimes, in a root made here: as docker 20.10, containerd 1.6, CRI-O 1.28 and Podman 4.3 write
 * them, less what is not read. */
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
#include "base/clock.h"
#include "enrich/local/local.h"
#include "enrich/local/state_json.h"
#include "tests/unit/enrich/describing.h"

#define ID_1 "1111111111111111111111111111111111111111111111111111111111111111"
#define ID_2 "2222222222222222222222222222222222222222222222222222222222222222"
#define ID_3 "3333333333333333333333333333333333333333333333333333333333333333"
#define ID_4 "4444444444444444444444444444444444444444444444444444444444444444"
#define ID_5 "5555555555555555555555555555555555555555555555555555555555555555"

static char root[] = "/tmp/hearth-local-XXXXXX";

static void put_file(const char *path, const char *text)
{
	AUTO_FREE char *full = NULL, *command = NULL;
	AUTO_FCLOSE FILE *f = NULL;

	assert_true(asprintf(&full, "%s%s", root, path) > 0 && asprintf(&command, "mkdir -p \"$(dirname %s)\"", full) > 0);
	assert_int_equal(system(command), 0);
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(root));
	put_file("/var/lib/docker/containers/" ID_1 "/config.v2.json",
		 "{\"StreamConfig\":{},\"State\":{\"Running\":true,\"Pid\":7},\"ID\":\"" ID_1
		 "\",\"Config\":{\"Hostname\":\"x\",\"Env\":[\"A=b\"],\"Image\":\"registry:5000/shop/web\",\"Labels\":{"
		 "\"com.docker.compose.project\":\"shop\",\"com.docker.compose.service\":\"web\",\"other\":\"1\"}},"
		 "\"Image\":\"sha256:0123\",\"Name\":\"/shop_web_1\",\"Driver\":\"overlay2\"}");
	put_file("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID_2 "/config.json",
		 "{\"ociVersion\":\"1.0.2\",\"process\":{\"args\":[\"sh\"]},\"annotations\":{"
		 "\"io.kubernetes.cri.container-name\":\"app\",\"io.kubernetes.cri.image-name\":\"docker.io/library/"
		 "nginx:1.25\","
		 "\"io.kubernetes.cri.sandbox-name\":\"web-0\",\"io.kubernetes.cri.sandbox-namespace\":\"shop\","
		 "\"io.kubernetes.cri.sandbox-uid\":\"uid-2\"}}");
	put_file("/run/containers/storage/overlay-containers/" ID_3 "/userdata/config.json",
		 "{\"annotations\":{\"io.kubernetes.container.name\":\"db\",\"io.kubernetes.pod.name\":\"db-0\","
		 "\"io.kubernetes.pod.namespace\":\"data\",\"io.kubernetes.pod.uid\":\"uid-3\","
		 "\"io.kubernetes.cri-o.ImageName\":\"quay.io/db@sha256:99\"}}");
	put_file("/var/lib/containers/storage/overlay-containers/containers.json",
		 "[{\"id\":\"" ID_5 "\",\"names\":[\"other\"]},{\"id\":\"" ID_4
		 "\",\"names\":[\"lone\",\"second\"],\"image\":\"77\","
		 "\"metadata\":\"{\\\"image-name\\\":\\\"docker.io/library/"
		 "busybox:latest\\\",\\\"name\\\":\\\"lone\\\"}\"}]");
	put_file("/var/log/containers/cache-6f7_prod_redis-" ID_5 ".log", "");
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

struct house {
	struct rules *rules;
	struct known *known;
	struct metrics *metrics;
	struct local *local;
};

static void open_house(struct house *h)
{
	struct buf error = BUF_EMPTY;

	assert_int_equal(rules_new(&(struct rules_config){ 0 }, &h->rules, &error), 0);
	h->metrics = metrics_new();
	assert_int_equal(known_new(h->rules, h->metrics, &h->known), 0);
	assert_int_equal(local_new(root, h->known, h->metrics, &h->local), 0);
}

static void close_house(struct house *h)
{
	local_free(h->local);
	known_free(h->known);
	rules_free(h->rules);
	metrics_free(h->metrics);
}

static const char *say(struct house *h, const char *id)
{
	if (!known_has_container(h->known, id) && local_want(h->local, id))
		local_wait(h->local, clock_mono_ns() + 20 * NSEC_PER_SEC);
	return describing(h->known, (struct known_query){ .container_id = id });
}

static void test_sources(void **state)
{
	static const struct {
		const char *id, *text;
	} cases[] = {
		{ ID_1,
		  "container.name=shop_web_1\ncontainer.image.name=registry:5000/shop/web\ncontainer.image.tag=latest\n"
		  "service.name=web\nservice.namespace=shop\nservice.version=latest" },
		{ ID_2, "k8s.namespace.name=shop\nk8s.pod.name=web-0\nk8s.pod.uid=uid-2\nk8s.container.name=app\n"
			"container.image.name=docker.io/library/nginx\ncontainer.image.tag=1.25\nservice.name=web-0\n"
			"service.namespace=shop\nservice.version=1.25\nservice.instance.id=shop.web-0.app" },
		{ ID_3,
		  "k8s.namespace.name=data\nk8s.pod.name=db-0\nk8s.pod.uid=uid-3\nk8s.container.name=db\n"
		  "container.image.name=quay.io/db\nservice.name=db-0\nservice.namespace=data\nservice.version=sha256:99\n"
		  "service.instance.id=data.db-0.db" },
		{ ID_4, "container.name=lone\ncontainer.image.name=docker.io/library/busybox\ncontainer.image.tag=latest\n"
			"service.name=lone\nservice.version=latest" },
		{ ID_5, "k8s.namespace.name=prod\nk8s.pod.name=cache-6f7\nk8s.container.name=redis\nservice.name=cache-6f7\n"
			"service.namespace=prod\nservice.instance.id=prod.cache-6f7.redis" },
	};
	struct house h;

	(void)state;
	open_house(&h);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (strcmp(say(&h, cases[i].id), cases[i].text) != 0)
			fail_msg("%s: got\n%s\nwanted\n%s", cases[i].id, say(&h, cases[i].id), cases[i].text);
	assert_int_equal(describing_count(h.metrics, "hearth_local_lookups_total", "result=\"found\""), 5);
	close_house(&h);
}

/* Once in vain, it is not looked up again at once; and a name that leads elsewhere is not looked up at all. */
static void test_in_vain(void **state)
{
	static const char *const names[] = { "", ".", "..", ("../containers/" ID_1), "a/b", "a b", "%s%s%s%n" };
	struct house h;

	(void)state;
	open_house(&h);
	assert_true(local_want(h.local, "nobody"));
	local_wait(h.local, clock_mono_ns() + 20 * NSEC_PER_SEC);
	assert_false(local_want(h.local, "nobody"));
	assert_int_equal(describing_count(h.metrics, "hearth_local_lookups_total", "result=\"unknown\""), 1);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_false(local_want(h.local, names[i]));
	close_house(&h);
}

static void test_garbage(void **state)
{
	static const char *const texts[] = {
		"", "[]", "{\"Name\":7}", "{\"Config\":[]}", "{\"annotations\":7}", "{\"Name\":\"/x\""
	};
	static const char *const names[] = { "",
					     ".log",
					     "a_b_c.log",
					     "a_b-" ID_5 ".log",
					     "a_b_c-" ID_4 ".log",
					     "_-" ID_5 ".log",
					     "a_b_-" ID_5 ".log",
					     "a_b_c" ID_5 ".log" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct container c = { 0 };

		if (state_read_docker(texts[i], strlen(texts[i]), &c) && state_read_oci(texts[i], strlen(texts[i]), &c))
			fail_msg("'%s' was taken", texts[i]);
		assert_false(state_read_podman(texts[i], strlen(texts[i]), ID_4, &c));
		buf_fini(&c.texts);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct container c = { 0 };

		if (state_read_log_name(names[i], ID_5, &c))
			fail_msg("'%s' was taken", names[i]);
	}
}

static void test_description(void **state)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	(void)state;
	local_describe(root, &text);
	assert_string_equal(buf_text(&text), "docker, containerd, CRI-O, Podman, the kubelet's log links");
	buf_reset(&text);
	local_describe("/nowhere", &text);
	assert_string_equal(buf_text(&text), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_in_vain),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_description),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
