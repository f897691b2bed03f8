/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ClickHouse's HTTP interface on libcurl: one easy handle inside one multi handle, kept alive between requests, so that a
 * request under way can be given up. A statement goes in the body; the rows of an INSERT take its place and the statement
 * goes into the URL. Values are bound by the server ("param_name"), never pasted into SQL. Redirects are not followed.
 *
 * wait_end_of_query has the server hold an answer until it is whole: a status of 200 means all of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/store/clickhouse/click.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/curl.h"
#include "base/text/parse.h"

enum {
	DEFAULT_TIMEOUT_MS = 60000,
	CONNECT_TIMEOUT_MS = 5000,
	POLL_MS = 100,
	MAX_ERROR_CHARS = 400,
	MAX_PASSWORD_BYTES = 4096,
};

#define MAX_ANSWER_BYTES (1ull << 30)
#define SCHEME		 "clickhouse+"

struct click_connection {
	const struct click_address *address;
	const _Atomic bool *abandon;
	struct metric *const *failures;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *plain, *packed; /* headers */
	char *password;			   /* in them; owned; or NULL */
	struct buf url, answer;
	bool is_too_long;
	char reason[CURL_ERROR_SIZE];
	char error[MAX_ERROR_CHARS + 1];
	enum click_failure failure;
};

/* --- addresses --- */

void click_address_fini(struct click_address *a)
{
	char *const texts[] = { a->url, a->user, a->password, a->database, a->display };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
	*a = (struct click_address){ 0 };
}

/* A part of @u as the caller's own; NULL where there is none. */
static int part_of(CURLU *u, CURLUPart part, unsigned flags, char **ret)
{
	char *text = NULL;
	CURLUcode code = curl_url_get(u, part, &text, flags);

	if (code == CURLUE_NO_USER || code == CURLUE_NO_PASSWORD)
		return 0;
	if (code != CURLUE_OK) /* not text when it is decoded */
		return code == CURLUE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
	*ret = strdup(text);
	curl_free(text);
	return *ret ? 0 : -ENOMEM;
}

static int database_of(CURLU *u, char **ret)
{
	AUTO_FREE char *path = NULL;
	int err = part_of(u, CURLUPART_PATH, CURLU_URLDECODE, &path);

	if (err)
		return err;
	if (!path || !path[0] || !path[1])
		*ret = strdup("hearth");
	else
		*ret = strchr(path + 1, '/') || strchr(path + 1, '`') || strchr(path + 1, '\\') ? NULL : strdup(path + 1);
	return *ret ? 0 : -EINVAL;
}

static int read_password(const char *file, char **ret)
{
	AUTO_FREE char *text = calloc(1, MAX_PASSWORD_BYTES + 1);
	FILE *f = text ? fopen(file, "re") : NULL;

	if (!f)
		return text ? -errno : -ENOMEM;
	if (!fgets(text, MAX_PASSWORD_BYTES, f))
		text[0] = 0;
	fclose(f);
	text[strcspn(text, "\r\n")] = 0;
	free(*ret);
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

static int read_address(struct click_address *a, CURLU *u, const char *text, const char *password_file)
{
	int err;

	if (curl_url_set(u, CURLUPART_URL, text, 0) != CURLUE_OK)
		return -EINVAL;
	err = part_of(u, CURLUPART_USER, CURLU_URLDECODE, &a->user);
	err = err ? err : part_of(u, CURLUPART_PASSWORD, CURLU_URLDECODE, &a->password);
	err = err ? err : database_of(u, &a->database);
	if (!err && password_file)
		err = read_password(password_file, &a->password);
	if (!err && (parse_has_control(a->user) || parse_has_control(a->password) || parse_has_control(a->database)))
		err = -EINVAL;
	if (err)
		return err;
	curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
	curl_url_set(u, CURLUPART_QUERY, NULL, 0);
	curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
	err = part_of(u, CURLUPART_URL, 0, &a->display);
	curl_url_set(u, CURLUPART_USER, NULL, 0);
	curl_url_set(u, CURLUPART_PATH, "/", 0);
	return err ? err : part_of(u, CURLUPART_URL, 0, &a->url);
}

int click_address_init(struct click_address *a, const char *place, const char *password_file)
{
	const char *text = strncmp(place, SCHEME, strlen(SCHEME)) ? place : place + strlen(SCHEME);
	CURLU *u;
	int err;

	*a = (struct click_address){ 0 };
	if (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0)
		return -EINVAL;
	u = curl_url();
	if (!u)
		return -ENOMEM;
	err = read_address(a, u, text, password_file);
	curl_url_cleanup(u);
	if (err)
		click_address_fini(a);
	return err;
}

/* --- requests --- */

static size_t keep_answer(char *data, size_t size, size_t count, void *arg)
{
	struct click_connection *c = arg;

	if (c->answer.len + size * count > MAX_ANSWER_BYTES) {
		c->is_too_long = true;
		return 0;
	}
	buf_append(&c->answer, data, size * count);
	return c->answer.failed ? 0 : size * count;
}

static bool is_abandoned(const struct click_connection *c)
{
	return c->abandon && atomic_load(c->abandon);
}

static CURLcode perform(struct click_connection *c)
{
	CURLcode code = CURLE_FAILED_INIT;
	CURLMsg *message;
	int running = 1, left;

	if (curl_multi_add_handle(c->multi, c->easy) != CURLM_OK)
		return CURLE_OUT_OF_MEMORY;
	while (running && !is_abandoned(c)) {
		if (curl_multi_perform(c->multi, &running) != CURLM_OK)
			break;
		if (running)
			curl_multi_poll(c->multi, NULL, 0, POLL_MS, NULL);
	}
	while ((message = curl_multi_info_read(c->multi, &left)))
		if (message->msg == CURLMSG_DONE)
			code = message->data.result;
	curl_multi_remove_handle(c->multi, c->easy);
	return running && is_abandoned(c) ? CURLE_ABORTED_BY_CALLBACK : code;
}

static int read_answer(struct click_connection *c, CURLcode code)
{
	struct curl_header *header;
	const char *exception = NULL;
	long status = 0, certificate = 0;

	if (code == CURLE_ABORTED_BY_CALLBACK) {
		snprintf(c->error, sizeof(c->error), "given up");
		return -ECANCELED;
	}
	if (c->is_too_long || c->answer.failed) {
		snprintf(c->error, sizeof(c->error), "the answer is too long");
		return -ENOMEM;
	}
	if (code != CURLE_OK) {
		curl_easy_getinfo(c->easy, CURLINFO_SSL_VERIFYRESULT, &certificate);
		return click_read_curl(code, c->reason[0] ? c->reason : curl_easy_strerror(code), certificate, &c->failure,
				       c->error, sizeof(c->error));
	}
	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	if (curl_easy_header(c->easy, "x-clickhouse-exception-code", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
		exception = header->value;
	return click_read_error(status, exception, &c->answer, &c->failure, c->error, sizeof(c->error));
}

static void make_url(struct click_connection *c, const struct click_request *r)
{
	struct buf *url = &c->url;

	buf_reset(url);
	buf_printf(url, "%s?wait_end_of_query=1&default_format=RowBinary&enable_http_compression=1", c->address->url);
	if (!r->no_database)
		click_param(url, "database", c->address->database);
	if (r->rows)
		click_param(url, "query", r->sql);
	if (r->params)
		buf_puts(url, r->params);
}

static int add_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

/* Adds user and password as headers: so neither URLs, which proxies write down, nor logs have them. */
static int add_login(const struct click_connection *c, struct curl_slist **list)
{
	const char *user = c->address->user;
	const struct {
		const char *name, *value;
	} headers[] = { { "User", user ? user : c->password ? "default" : NULL }, { "Key", c->password } };
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(headers) && !err; i++) {
		AUTO(buf_fini) struct buf line = BUF_EMPTY;

		if (!headers[i].value)
			continue;
		buf_printf(&line, "X-ClickHouse-%s:%s%s", headers[i].name, *headers[i].value ? " " : "", headers[i].value);
		err = line.failed ? -ENOMEM : add_header(list, buf_text(&line));
	}
	return err;
}

static int make_headers(struct click_connection *c)
{
	int err;

	curl_slist_free_all(MOVE(c->plain));
	curl_slist_free_all(MOVE(c->packed));
	err = add_header(&c->plain, "Content-Type: text/plain; charset=UTF-8");
	err = err ? err : add_header(&c->plain, "Expect:");
	err = err ? err : add_header(&c->packed, "Content-Type: application/octet-stream");
	err = err ? err : add_header(&c->packed, "Content-Encoding: zstd");
	err = err ? err : add_header(&c->packed, "Expect:");
	err = err ? err : add_login(c, &c->plain);
	return err ? err : add_login(c, &c->packed);
}

/* The file may have another password by now than when it was read last. */
static bool has_new_password(struct click_connection *c)
{
	const char *file = c->address->password_file;
	AUTO_FREE char *now = NULL;

	if (!file || read_password(file, &now) || parse_has_control(now) || (c->password && !strcmp(now, c->password)))
		return false;
	free(c->password);
	c->password = MOVE(now);
	return !make_headers(c);
}

static int send_request(struct click_connection *c, const struct click_request *r)
{
	const uint64_t ms = r->timeout_ns / NSEC_PER_MSEC;
	int err;

	make_url(c, r);
	buf_reset(&c->answer);
	c->is_too_long = false;
	c->reason[0] = c->error[0] = 0;
	c->failure = CLICK_REFUSED;
	curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, r->rows ? c->packed : c->plain);
	curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, r->rows ? (const char *)r->rows->data : r->sql);
	curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(r->rows ? r->rows->len : strlen(r->sql)));
	curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, r->timeout_ns ? (long)(ms ? ms : 1) : (long)DEFAULT_TIMEOUT_MS);
	if (c->url.failed || curl_easy_setopt(c->easy, CURLOPT_URL, buf_text(&c->url)) != CURLE_OK)
		return -ENOMEM;
	err = read_answer(c, perform(c));
	if (err && err != -ECANCELED)
		metric_add(c->failures[c->failure], 1);
	return err;
}

int click_request(struct click_connection *c, const struct click_request *r, struct buf *answer)
{
	int err = send_request(c, r);

	if (err == -EACCES && has_new_password(c))
		err = send_request(c, r);
	if (err || !answer)
		return err;
	buf_fini(answer);
	*answer = c->answer;
	c->answer = BUF_EMPTY;
	return 0;
}

const char *click_error(const struct click_connection *c)
{
	return c->error;
}

enum click_failure click_failure(const struct click_connection *c)
{
	return c->failure;
}

static bool is_param(const char *name)
{
	return !strncmp(name, "param_", strlen("param_"));
}

void click_param(struct buf *params, const char *name, const char *value)
{
	buf_printf(params, "&%s=", name);
	for (const char *c = value; *c; c++) {
		if (is_param(name) && strchr("\\\t\n\r", *c)) /* bound values are read as fields of TSV */
			buf_printf(params, "%%5C%s", *c == '\t' ? "t" : *c == '\n' ? "n" : *c == '\r' ? "r" : "%5C");
		else
			buf_percent(params, c, 1, URL_PLAIN);
	}
}

/* --- life --- */

static int prepare(struct click_connection *c)
{
	const struct click_address *a = c->address;
	CURL *e = c->easy;
	int err;

	c->password = a->password ? strdup(a->password) : NULL;
	err = a->password && !c->password ? -ENOMEM : make_headers(c);
	if (err)
		return err;
	if (a->ca_file && curl_easy_setopt(e, CURLOPT_CAINFO, a->ca_file) != CURLE_OK)
		return -ENOMEM;
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip");
	curl_easy_setopt(e, CURLOPT_USERAGENT, "hearth/" HEARTH_VERSION);
	curl_easy_setopt(e, CURLOPT_POST, 1L);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->reason);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, keep_answer);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
	return 0;
}

int click_connect(const struct click_address *a, const _Atomic bool *abandon, struct metric *const failures[CLICK_FAILURES],
		  struct click_connection **ret)
{
	struct click_connection *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	curl_global_init(CURL_GLOBAL_DEFAULT); /* counted; click_disconnect() gives it back */
	c->address = a;
	c->abandon = abandon;
	c->failures = failures;
	c->multi = curl_multi_init();
	c->easy = curl_easy_init();
	err = c->multi && c->easy ? prepare(c) : -ENOMEM;
	if (err)
		click_disconnect(c);
	else
		*ret = c;
	return err;
}

void click_disconnect(struct click_connection *c)
{
	if (!c)
		return;
	curl_easy_cleanup(c->easy);
	if (c->multi)
		curl_multi_cleanup(c->multi);
	curl_slist_free_all(c->plain);
	curl_slist_free_all(c->packed);
	buf_fini(&c->url);
	buf_fini(&c->answer);
	free(c->password);
	free(c);
	curl_global_cleanup();
}
