/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One multi handle drives all requests. A request that is made inside the turn of another drives that one on, too; each end
 * is noted in the request that it is of.
 */
#include "enrich/kube/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bearer_token.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/curl.h"
#include "enrich/kube/pod_json.h"

enum {
	CONNECT_MS = 10000,
	POLL_MS = 1000,
	LEAST_BYTES_S = 1, /* a second, of an answer that is no watch ... */
	LEAST_FOR_S = 20,  /* ... over this time */
	MAX_REFUSAL_BYTES = 8 << 10,
	MAX_RETRY_AFTER_S = 300,
};

struct client {
	const struct kube_access *access;
	const _Atomic bool *stop;
	CURLM *multi;
	struct bearer_token *token; /* of a file; or NULL */
	char *own_token;	    /* header of a token that stands in the configuration; or NULL */
};

struct transfer {
	struct client *client;
	const struct kube_request *request;
	struct kube_answer *answer;
	CURL *easy;
	struct curl_slist headers[2];
	struct buf refusal;
	bool is_done;
	CURLcode code;
	char error[CURL_ERROR_SIZE];
};

const char *kube_outcome_name(enum kube_outcome outcome)
{
	static const char *const names[KUBE_OUTCOMES] = {
		[KUBE_OK] = "ok",
		[KUBE_STOPPED] = "stopped",
		[KUBE_AWAY] = "connection",
		[KUBE_UNTRUSTED] = "certificate",
		[KUBE_UNAUTHORIZED] = "401",
		[KUBE_FORBIDDEN] = "403",
		[KUBE_ABSENT] = "404",
		[KUBE_EXPIRED] = "410",
		[KUBE_BUSY] = "busy",
		[KUBE_STRANGE] = "answer",
	};

	return names[outcome];
}

/* --- life --- */

static int check_files(const struct kube_access *a, struct buf *error)
{
	const char *const files[] = { a->ca_file, a->cert_file, a->key_file };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (!files[i] || !access(files[i], R_OK))
			continue;
		buf_printf(error, "cannot read %s: %s", files[i], strerror(errno));
		return -errno;
	}
	return 0;
}

static int token_init(struct client *c, struct buf *error)
{
	const struct kube_access *a = c->access;
	int err;

	if (a->token && asprintf(&c->own_token, "Authorization: Bearer %s", a->token) < 0)
		return -ENOMEM;
	if (a->token || !a->token_file)
		return 0;
	err = bearer_token_new(a->token_file, &c->token);
	if (err)
		buf_printf(error, "cannot read the token in %s: %s", a->token_file,
			   err == -ENODATA ? "there is none" : strerror(-err));
	return err;
}

int client_new(const struct kube_access *a, const _Atomic bool *stop, struct client **ret, struct buf *error)
{
	struct client *c;
	int err = check_files(a, error);

	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->access = a;
	c->stop = stop;
	curl_global_init(CURL_GLOBAL_DEFAULT); /* counted; client_free() gives it back */
	c->multi = curl_multi_init();
	err = c->multi ? token_init(c, error) : -ENOMEM;
	if (err) {
		client_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	if (c->multi)
		curl_multi_cleanup(c->multi);
	bearer_token_free(c->token);
	free(c->own_token);
	free(c);
	curl_global_cleanup();
}

void client_wake(struct client *c)
{
	curl_multi_wakeup(c->multi);
}

void client_wait(struct client *c, uint64_t deadline_ns)
{
	uint64_t now = clock_mono_ns(), ms = now < deadline_ns ? (deadline_ns - now) / NSEC_PER_MSEC + 1 : 0;

	if (ms && !atomic_load(c->stop))
		curl_multi_poll(c->multi, NULL, 0, ms < 600000 ? (int)ms : 600000, NULL);
}

/* --- one request --- */

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;
	size_t len = size * count, room = MAX_REFUSAL_BYTES - t->refusal.len;
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200) {
		buf_append(&t->refusal, data, len < room ? len : room);
		return len;
	}
	t->answer->body_error = t->request->body(t->request->arg, data, len);
	return t->answer->body_error ? 0 : len;
}

static CURLcode set_pem(CURL *easy, CURLoption option, const char *pem)
{
	struct curl_blob blob = { (void *)(uintptr_t)pem, strlen(pem), CURL_BLOB_NOCOPY };

	return curl_easy_setopt(easy, option, &blob);
}

/* Each of certificate, key and authorities is in a file or in the configuration itself. */
static CURLcode set_trust(CURL *easy, const struct kube_access *a)
{
	const struct {
		CURLoption file_option, pem_option;
		const char *file, *pem;
	} parts[] = {
		{ CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB, a->ca_file, a->ca_pem },
		{ CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB, a->cert_file, a->cert_pem },
		{ CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB, a->key_file, a->key_pem },
	};
	CURLcode code = CURLE_OK;

	for (size_t i = 0; i < ARRAY_LEN(parts) && code == CURLE_OK; i++) {
		if (parts[i].pem)
			code = set_pem(easy, parts[i].pem_option, parts[i].pem);
		else if (parts[i].file)
			code = curl_easy_setopt(easy, parts[i].file_option, parts[i].file);
	}
	return code;
}

/* The header with the token of now. */
static const char *token_header(struct client *c)
{
	if (c->own_token || !c->token)
		return c->own_token;
	bearer_token_read(c->token); /* the old one stays where it cannot be read */
	return bearer_token_header(c->token);
}

static void set_headers(struct transfer *t)
{
	const char *accept =
		t->request->metadata_only
			? "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
			: "Accept: application/json";
	const char *token = token_header(t->client);

	t->headers[0] = (struct curl_slist){ (char *)(uintptr_t)accept, token ? &t->headers[1] : NULL };
	t->headers[1] = (struct curl_slist){ (char *)(uintptr_t)token, NULL };
	curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
}

static CURLcode transfer_init(struct transfer *t)
{
	AUTO(buf_fini) struct buf url = BUF_EMPTY;
	CURL *e = t->easy;
	CURLcode code;

	buf_printf(&url, "%s%s", t->client->access->url, t->request->path);
	code = url.failed ? CURLE_OUT_OF_MEMORY : curl_easy_setopt(e, CURLOPT_URL, buf_text(&url));
	if (code == CURLE_OK)
		code = curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "https,http");
	if (code == CURLE_OK)
		code = set_trust(e, t->client->access);
	curl_easy_setopt(e, CURLOPT_PROXY, "");
	curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, t->request->is_watch ? NULL : "gzip");
	curl_easy_setopt(e, CURLOPT_USERAGENT, "hearth/" HEARTH_VERSION);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)t->request->timeout_ms);
	if (!t->request->is_watch) {
		curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, (long)LEAST_BYTES_S);
		curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)LEAST_FOR_S);
	}
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->error);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(e, CURLOPT_PRIVATE, t);
	set_headers(t);
	return code;
}

static void note_ends(struct client *c)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(c->multi, &left))) {
		struct transfer *t = NULL;

		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
		if (message->msg != CURLMSG_DONE || !t)
			continue;
		t->is_done = true;
		t->code = message->data.result;
	}
}

static void perform(struct transfer *t)
{
	struct client *c = t->client;
	int running;

	if (curl_multi_add_handle(c->multi, t->easy) != CURLM_OK)
		return;
	while (!atomic_load(c->stop)) {
		if (curl_multi_perform(c->multi, &running) != CURLM_OK)
			break;
		note_ends(c);
		if (t->request->turn)
			t->request->turn(t->request->arg);
		if (t->is_done)
			break;
		curl_multi_poll(c->multi, NULL, 0, POLL_MS, NULL);
	}
	curl_multi_remove_handle(c->multi, t->easy);
}

static enum kube_outcome outcome_of(long status)
{
	switch (status) {
	case 401:
		return KUBE_UNAUTHORIZED;
	case 403:
		return KUBE_FORBIDDEN;
	case 404:
		return KUBE_ABSENT;
	case 410:
		return KUBE_EXPIRED;
	default:
		return status == 429 || (status >= 500 && status < 600) ? KUBE_BUSY : KUBE_STRANGE;
	}
}

static void read_refusal(struct transfer *t, long status)
{
	char said[200] = "";
	curl_off_t seconds = 0;
	int code;

	t->answer->outcome = outcome_of(status);
	curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &seconds);
	if (seconds > 0)
		t->answer->retry_after_ns = (uint64_t)(seconds < MAX_RETRY_AFTER_S ? seconds : MAX_RETRY_AFTER_S) *
					    NSEC_PER_SEC;
	kube_read_status(buf_text(&t->refusal), t->refusal.len, &code, said, sizeof(said));
	snprintf(t->answer->message, sizeof(t->answer->message), "status %ld%s%s", status, said[0] ? ": " : "", said);
}

static void read_answer(struct transfer *t)
{
	struct kube_answer *a = t->answer;
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (!t->is_done) {
		a->outcome = atomic_load(t->client->stop) ? KUBE_STOPPED : KUBE_AWAY;
		return;
	}
	if (a->body_error) {
		a->outcome = KUBE_STRANGE;
		snprintf(a->message, sizeof(a->message), "an answer that is none: %s", strerror(-a->body_error));
		return;
	}
	if (status && status != 200) {
		read_refusal(t, status);
		return;
	}
	if (t->code == CURLE_OK)
		return;
	a->outcome = t->code == CURLE_PEER_FAILED_VERIFICATION ? KUBE_UNTRUSTED : KUBE_AWAY;
	snprintf(a->message, sizeof(a->message), "%s", t->error[0] ? t->error : curl_easy_strerror(t->code));
}

void client_get(struct client *c, const struct kube_request *request, struct kube_answer *ret)
{
	struct transfer t = { .client = c, .request = request, .answer = ret };

	*ret = (struct kube_answer){ .outcome = KUBE_AWAY };
	snprintf(ret->message, sizeof(ret->message), "%s", strerror(ENOMEM));
	t.easy = curl_easy_init();
	if (!t.easy)
		return;
	if (transfer_init(&t) == CURLE_OK) {
		ret->outcome = KUBE_OK;
		ret->message[0] = '\0';
		perform(&t);
		read_answer(&t);
	}
	curl_easy_cleanup(t.easy);
	buf_fini(&t.refusal);
}
