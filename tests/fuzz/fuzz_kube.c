/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of Kubernetes' API, cut into objects and read as pods; and state files of container runtimes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "base/text/utf8.h"
#include "enrich/kube/pieces.h"
#include "enrich/kube/pod_json.h"
#include "enrich/known/known.h"
#include "enrich/local/state_json.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rules *rules;
static struct known *known;

static void check_text(void *arg, const char *key, const char *value, enum known_form form)
{
	(void)arg, (void)form;
	REQUIRE(key[0] && utf8_is_valid(key, strlen(key)) && utf8_is_valid(value, strlen(value)));
}

static void take_pod(const void *json, size_t len)
{
	char version[KUBE_VERSION_BYTES], id[TEXT_MAX_BYTES + 1] = "", uid[TEXT_MAX_BYTES + 1];
	const char *why = NULL;
	struct pod *p = pod_read_json(json, len, rules, false, version, &why);

	REQUIRE(p || why);
	REQUIRE(strlen(version) < sizeof(version));
	if (!p)
		return;
	REQUIRE(p->texts.len <= TEXTS_MAX_BYTES && p->container_count <= POD_MAX_CONTAINERS);
	REQUIRE(p->attribute_count <= POD_MAX_ATTRIBUTES);
	if (p->container_count)
		snprintf(id, sizeof(id), "%s", pod_text(p, p->containers[0].id));
	snprintf(uid, sizeof(uid), "%s", pod_text(p, p->uid));
	known_put_pod(known, p, 1);
	known_describe(known, &(struct known_query){ id, uid, "a.service", "exe", 1 }, check_text, NULL);
	known_pod_gone(known, uid);
}

static void on_piece(void *arg, const void *json, size_t len, bool is_item)
{
	struct kube_watch_event e;
	struct kube_list_head head;
	const char *why = NULL;
	char message[64];
	int code;

	(void)arg, (void)is_item;
	take_pod(json, len);
	kube_read_list_head(json, len, &head);
	kube_read_status(json, len, &code, message, sizeof(message));
	if (kube_read_event(json, len, &e, &why))
		take_pod(e.object, e.object_len);
}

static void cut(const uint8_t *data, size_t size, enum pieces_of of)
{
	struct pieces p;

	pieces_init(&p, of, on_piece, NULL);
	for (size_t at = 0, step; at < size; at += step) {
		step = 1 + data[at] % 64;
		step = step < size - at ? step : size - at;
		if (pieces_take(&p, (const char *)data + at, step))
			break;
	}
	pieces_fini(&p);
}

static void read_states(const char *text, size_t size)
{
	struct container c = { 0 };
	char *name = strndup(text, size);

	(void)state_read_docker(text, size, &c);
	(void)state_read_oci(text, size, &c);
	(void)state_read_podman(text, size, "id", &c);
	(void)state_read_log_name(name, "id", &c);
	REQUIRE(c.texts.len <= TEXTS_MAX_BYTES);
	buf_fini(&c.texts);
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const all[] = { "all" }, *const labels[] = { "/.*/", "namespace:/a.*/" };
	char *copy = malloc(size ? size : 1);
	struct buf error = BUF_EMPTY;

	if (!rules) {
		const struct rules_config config = { all, 1, labels, labels, 2, 2, true };

		REQUIRE(!rules_new(&config, &rules, &error));
		REQUIRE(!known_new(rules, metrics_new(), &known));
	}
	memcpy(copy, data, size);
	take_pod(copy, size);
	cut(data, size, PIECES_OF_WATCH);
	cut(data, size, PIECES_OF_LIST);
	read_states(copy, size);
	free(copy);
	return 0;
}
