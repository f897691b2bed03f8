/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver with a store, fed with a recording over HTTP again and again, and asked for its flame graph. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/store/store_read.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/curl.h"
#include "base/io.h"
#include "cmd/bench/bench.h"
#include "cmd/setup/store_of.h"

enum { START_TRIES = 100 };

#define FEED_NS	 (3ull * NSEC_PER_SEC)
#define START_NS (NSEC_PER_SEC / 20)

struct client {
	CURL *easy;
	struct curl_slist *headers;
	char url[128];
	struct buf body;
};

static void client_fini(struct client *c)
{
	curl_easy_cleanup(c->easy);
	curl_slist_free_all(c->headers);
	buf_fini(&c->body);
}

/* Finds the address the server listens on, as it says in @messages. */
static int find_address(const char *messages, char *url, size_t size)
{
	for (int i = 0; i < START_TRIES; i++) {
		AUTO(buf_fini) struct buf text = BUF_EMPTY;
		const char *at;

		bench_sleep(START_NS);
		if (io_read_file(messages, SIZE_MAX, &text))
			continue;
		at = strstr(buf_text(&text), "listening on http://");
		if (!at)
			continue;
		at += strlen("listening on ");
		snprintf(url, size, "%.*s", (int)strcspn(at, " \n"), at);
		return 0;
	}
	return -ETIMEDOUT;
}

static size_t throw_away(char *data, size_t size, size_t count, void *arg)
{
	(void)data, (void)arg;
	return size * count;
}

/* One request: 0 when the answer was 200. */
static int ask(struct client *c, const char *path, bool is_post)
{
	char url[256];
	long status = 0;

	snprintf(url, sizeof(url), "%s%s", c->url, path);
	curl_easy_setopt(c->easy, CURLOPT_URL, url);
	if (is_post) {
		curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, (const char *)c->body.data);
		curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.len);
	} else {
		curl_easy_setopt(c->easy, CURLOPT_HTTPGET, 1L);
	}
	if (curl_easy_perform(c->easy))
		return -EIO;
	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	return status == 200 ? 0 : -EPROTO;
}

static int client_init(struct client *c, const char *capture)
{
	int err = io_read_file(capture, SIZE_MAX, &c->body);

	curl_global_init(CURL_GLOBAL_DEFAULT);
	c->easy = curl_easy_init();
	c->headers = curl_slist_append(NULL, "Content-Type: application/x-protobuf");
	if (err || !c->easy || !c->headers)
		return err ? err : -ENOMEM;
	curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers);
	curl_easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c->easy, CURLOPT_PROXY, "");
	curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, throw_away);
	return 0;
}

static int measure(struct client *c, const struct bench_run *server, struct bench_ingested *ret)
{
	static const char graph[] = "/api/v1/tree?from=first&to=last&max_nodes=5000";
	const uint64_t began = clock_mono_ns();
	uint64_t before, cpu;
	int err = ask(c, "/v1development/profiles", true); /* what is made once is made */

	before = bench_cpu_ns(server);
	while (!err && clock_mono_ns() - began < FEED_NS) {
		err = ask(c, "/v1development/profiles", true);
		ret->requests++;
	}
	cpu = bench_cpu_ns(server);
	ret->cpu_ns = cpu - before;
	for (int i = 0; !err && i < BENCH_QUESTIONS; i++) {
		const uint64_t asked = clock_mono_ns();

		err = ask(c, graph, false);
		ret->graph_ms[i] = (double)(clock_mono_ns() - asked) / 1e6;
	}
	return err;
}

/* How many samples are in the store, and how large its file is. */
static int look_into(const char *folder, struct bench_ingested *ret)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct store *store = NULL;
	struct store_status status;
	char file[PATH_MAX];
	struct stat st;
	int err = store_of_folder(folder, NULL, &store, &error);

	if (err)
		return err;
	err = store->read->status(store, &status);
	store->close(store);
	snprintf(file, sizeof(file), "%s/profiles.db", folder);
	if (err || stat(file, &st))
		return err ? err : -errno;
	ret->samples = status.events / (ret->requests + 1) * ret->requests; /* the first one's time is not counted */
	ret->bytes_a_sample = status.events ? (double)st.st_size / (double)status.events : 0;
	return 0;
}

int bench_ingest_run(const char *store, const char *messages, const char *capture, struct bench_ingested *ret)
{
	AUTO(client_fini) struct client c = { .body = BUF_EMPTY };
	const char *const serve[] = {
		"hearth", "serve", "--grpc-address", "off", "--http-address", "127.0.0.1:0", "--store", store, "--keep-free",
		"0",	  NULL
	};
	struct bench_run server;
	int err = client_init(&c, capture), end;

	*ret = (struct bench_ingested){ 0 };
	if (!err)
		err = bench_start(&server, serve, NULL, NULL, messages);
	if (err)
		return err;
	err = find_address(messages, c.url, sizeof(c.url));
	err = err ? err : measure(&c, &server, ret);
	end = bench_end(&server);
	err = err ? err : end;
	return err ? err : look_into(store, ret);
}
