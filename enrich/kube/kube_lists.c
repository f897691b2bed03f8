/* SPDX-License-Identifier: Apache-2.0 */
/* Answers are cut into objects while they come in; what is read of them goes into the table at once. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "enrich/kube/kube_internal.h"

enum {
	LIST_PAGE = 500,       /* pods an answer, where the server keeps to it */
	LIST_MS = 120000,      /* an answer */
	WATCH_LEAST_S = 300,   /* the server ends it after this time and up to as much again */
	WATCH_SPARE_S = 30,    /* and we when it does not */
	WATCH_SHORT_MS = 1000, /* one that ends sooner counts as failed */
};

/* --- what came --- */

static void on_list_piece(void *arg, const void *json, size_t len, bool is_item)
{
	struct kube *k = arg;
	const char *why = "is no list";
	struct pod *p;

	if (!is_item) {
		if (!kube_read_list_head(json, len, &k->head))
			kube_count_garbage(k, why);
		return;
	}
	p = pod_read_json(json, len, k->rules, false, NULL, &why);
	if (!p) {
		kube_count_garbage(k, why);
		return;
	}
	k->count++;
	known_put_pod(k->known, p, k->list_number);
}

static void on_error_event(struct kube *k, const struct kube_watch_event *e)
{
	char message[200];
	int code = 0;

	k->is_watch_over = true;
	kube_read_status(e->object, e->object_len, &code, message, sizeof(message));
	if (code == 410) {
		metric_add(k->errors[KUBE_EXPIRED], 1);
		k->version[0] = '\0';
		k->is_expired = true;
	} else {
		metric_add(k->errors[KUBE_STRANGE], 1);
		log_debug("a watch of Kubernetes' API ended: %d %s", code, message);
	}
}

static void on_event(void *arg, const void *json, size_t len, bool is_item)
{
	struct kube *k = arg;
	char version[KUBE_VERSION_BYTES];
	struct kube_watch_event e;
	const char *why = "";
	struct pod *p;

	(void)is_item;
	metric_add(k->events, 1);
	kube_note_back(k);
	if (!kube_read_event(json, len, &e, &why)) {
		kube_count_garbage(k, why);
		return;
	}
	if (e.type == KUBE_ERROR) {
		on_error_event(k, &e);
		return;
	}
	p = pod_read_json(e.object, e.object_len, k->rules, false, version, &why);
	if (!p) {
		kube_count_garbage(k, why);
		return;
	}
	if (version[0])
		memcpy(k->version, version, sizeof(version));
	if (e.type == KUBE_PUT || e.type == KUBE_DELETED) {
		AUTO_FREE char *uid = strdup(pod_text(p, p->uid));

		known_put_pod(k->known, p, k->list_number); /* a deleted one as it was at last */
		if (e.type == KUBE_DELETED && uid)
			known_pod_gone(k->known, uid);
		return;
	}
	pod_free(p);
}

static int take_pieces(void *arg, const char *data, size_t len)
{
	struct kube *k = arg;
	size_t before = k->pieces.too_long;
	int err = pieces_take(&k->pieces, data, len);

	metric_add(k->too_large, k->pieces.too_long - before + (err == -EFBIG));
	return err ? err : k->is_watch_over ? -ECANCELED : 0;
}

static void on_turn(void *arg)
{
	kube_ask_all(arg);
}

/* --- lists and watches --- */

static void append_pods(const struct kube *k, struct buf *path)
{
	const char *namespace = k->access.namespace;

	if (k->access.is_kubelet) {
		buf_puts(path, "/pods");
		return;
	}
	buf_puts(path, "/api/v1");
	if (namespace) {
		buf_puts(path, "/namespaces/");
		buf_percent(path, namespace, strlen(namespace), URL_PLAIN);
	}
	buf_puts(path, "/pods?fieldSelector=spec.nodeName%3D");
	buf_percent(path, k->node, strlen(k->node), URL_PLAIN);
}

static void get_page(struct kube *k, const char *next, struct kube_answer *a)
{
	AUTO(buf_fini) struct buf path = BUF_EMPTY;

	append_pods(k, &path);
	if (!k->access.is_kubelet)
		buf_printf(&path, "&limit=%d", LIST_PAGE);
	if (*next) {
		buf_puts(&path, "&continue=");
		buf_percent(&path, next, strlen(next), URL_PLAIN);
	} else if (!k->is_expired && !k->access.is_kubelet) {
		buf_puts(&path, "&resourceVersion=0"); /* out of the server's cache */
	}
	pieces_init(&k->pieces, PIECES_OF_LIST, on_list_piece, k);
	memset(&k->head, 0, sizeof(k->head));
	k->is_watch_over = false;
	client_get(k->client,
		   &(struct kube_request){ .path = buf_text(&path), .timeout_ms = LIST_MS, .body = take_pieces, .arg = k },
		   a);
	if (a->outcome == KUBE_OK && (!pieces_are_whole(&k->pieces) || (!k->head.version[0] && !k->access.is_kubelet))) {
		a->outcome = KUBE_STRANGE;
		snprintf(a->message, sizeof(a->message), "its list of pods is none, or breaks off");
	}
	pieces_fini(&k->pieces);
	kube_count_request(k, REQUEST_LIST, a);
}

/* Lists all pods of the node. */
void kube_list(struct kube *k, struct kube_answer *a)
{
	char next[KUBE_CONTINUE_BYTES] = "";

	k->list_number++;
	k->count = 0;
	do {
		get_page(k, next, a);
		memcpy(next, k->head.next, sizeof(next));
	} while (a->outcome == KUBE_OK && next[0]);
	if (a->outcome == KUBE_EXPIRED)
		k->is_expired = true;
	if (a->outcome != KUBE_OK)
		return;
	known_end_list(k->known, k->list_number);
	memcpy(k->version, k->head.version, sizeof(k->version));
	k->is_expired = false;
}

void kube_watch(struct kube *k, struct kube_answer *a)
{
	AUTO(buf_fini) struct buf path = BUF_EMPTY;
	uint64_t seconds = WATCH_LEAST_S + kube_random_below(WATCH_LEAST_S), begin_ns = clock_mono_ns();

	append_pods(k, &path);
	buf_puts(&path, "&watch=1&allowWatchBookmarks=true&resourceVersion=");
	buf_percent(&path, k->version, strlen(k->version), URL_PLAIN);
	buf_printf(&path, "&timeoutSeconds=%" PRIu64, seconds);
	pieces_init(&k->pieces, PIECES_OF_WATCH, on_event, k);
	k->is_watch_over = false;
	client_get(k->client,
		   &(struct kube_request){ .path = buf_text(&path),
					   .timeout_ms = (seconds + WATCH_SPARE_S) * 1000,
					   .is_watch = true,
					   .body = take_pieces,
					   .turn = on_turn,
					   .arg = k },
		   a);
	pieces_fini(&k->pieces);
	kube_count_request(k, REQUEST_WATCH, a);
	metric_add(k->restarts, 1);
	if (a->outcome == KUBE_EXPIRED || a->outcome == KUBE_STRANGE) { /* only a list helps */
		k->is_expired = a->outcome == KUBE_EXPIRED || k->is_expired;
		if (a->body_error != -ECANCELED)
			k->version[0] = '\0';
		else
			snprintf(a->message, sizeof(a->message), "the server ended the watch by an error");
	}
	if (a->body_error == -ECANCELED && !k->version[0])
		a->outcome = KUBE_EXPIRED; /* an event said it */
	else if (a->outcome == KUBE_AWAY && clock_mono_ns() - begin_ns > WATCH_SHORT_MS * NSEC_PER_MSEC)
		a->outcome = KUBE_OK; /* it was cut; the next begins where it ended */
	else if (a->outcome == KUBE_OK && clock_mono_ns() - begin_ns < WATCH_SHORT_MS * NSEC_PER_MSEC)
		a->outcome = KUBE_BUSY;
}
