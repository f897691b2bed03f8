/* SPDX-License-Identifier: Apache-2.0 */
/* One libcurl handle for all files, so that they share a connection; each file is read as it is sent. */
#include "cmd/symbols_push.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/curl.h"
#include "base/log.h"
#include "base/text/json_read.h"
#include "base/text/parse.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/resolve.h"
#include "base/bearer_token.h"

#define API_PATH "/api/v1/symbols"

enum {
	MAX_ANSWER_BYTES = 64 << 10,
	MAX_TEXT_CHARS = 200, /* of an answer that is not the API's */
	CONNECT_SECONDS = 10,
};

struct push {
	CURL *easy;
	struct curl_slist *headers;
	struct bearer_token *token; /* or NULL */
	struct buf url, answer;
	char error[CURL_ERROR_SIZE];
};

/* The answer of the API. */
struct said {
	char build_id[136], error[MAX_TEXT_CHARS];
	uint64_t functions, named;
};

static void push_fini(struct push *p)
{
	curl_easy_cleanup(p->easy);
	curl_slist_free_all(p->headers);
	bearer_token_free(p->token);
	buf_fini(&p->url);
	buf_fini(&p->answer);
	curl_global_cleanup();
}

static size_t keep_answer(char *data, size_t size, size_t count, void *arg)
{
	struct buf *answer = arg;
	size_t len = size * count, room = MAX_ANSWER_BYTES - answer->len;

	buf_append(answer, data, len < room ? len : room);
	return len;
}

static size_t read_file(char *data, size_t size, size_t count, void *arg)
{
	ssize_t n = read(*(int *)arg, data, size * count);

	return n < 0 ? CURL_READFUNC_ABORT : (size_t)n;
}

/* A request that was answered before its end begins anew with the token, or on another connection. */
static int rewind_file(void *arg, curl_off_t offset, int origin)
{
	return lseek(*(int *)arg, (off_t)offset, origin) < 0 ? CURL_SEEKFUNC_FAIL : CURL_SEEKFUNC_OK;
}

/* --- the request --- */

/* The address of a hearth, as it is in a browser, without the part that names a view. */
static void make_url(const char *text, struct buf *out)
{
	size_t len = strcspn(text, "?#");

	while (len && text[len - 1] == '/')
		len--;
	buf_append(out, text, len);
	if (len < strlen(API_PATH) || memcmp(text + len - strlen(API_PATH), API_PATH, strlen(API_PATH)) != 0)
		buf_puts(out, API_PATH);
}

static int add_header(struct push *p, const char *line)
{
	struct curl_slist *longer = curl_slist_append(p->headers, line);

	if (!longer)
		return -ENOMEM;
	p->headers = longer;
	return 0;
}

static int add_token(struct push *p, const char *path)
{
	int err = bearer_token_new(path, &p->token);

	if (!err && bearer_token_read(p->token) < 0)
		err = -ENODATA;
	if (err)
		log_error("--collector-token-file: cannot use %s: %s", path,
			  err == -ENODATA ? "it does not hold a token: one word on one line" : strerror(-err));
	return err ? err : add_header(p, bearer_token_header(p->token));
}

static int push_init(struct push *p, const struct config *config, const char *url)
{
	int err = 0;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	p->easy = curl_easy_init();
	make_url(url, &p->url);
	if (!p->easy || p->url.failed || add_header(p, "Content-Type: application/octet-stream"))
		err = -ENOMEM;
	for (size_t i = 0; i < config->collector_headers.count && !err; i++)
		err = add_header(p, config->collector_headers.items[i]);
	if (err) {
		log_error("cannot send symbols: %s", strerror(-err));
		return err;
	}
	if (config->collector_token_file && add_token(p, config->collector_token_file))
		return -EINVAL;
	curl_easy_setopt(p->easy, CURLOPT_URL, buf_text(&p->url));
	curl_easy_setopt(p->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(p->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(p->easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	curl_easy_setopt(p->easy, CURLOPT_HTTPHEADER, p->headers);
	curl_easy_setopt(p->easy, CURLOPT_POST, 1L);
	curl_easy_setopt(p->easy, CURLOPT_READFUNCTION, read_file);
	curl_easy_setopt(p->easy, CURLOPT_SEEKFUNCTION, rewind_file);
	curl_easy_setopt(p->easy, CURLOPT_WRITEFUNCTION, keep_answer);
	curl_easy_setopt(p->easy, CURLOPT_WRITEDATA, &p->answer);
	curl_easy_setopt(p->easy, CURLOPT_ERRORBUFFER, p->error);
	if (config->collector_ca)
		curl_easy_setopt(p->easy, CURLOPT_CAINFO, config->collector_ca);
	if (config->collector_cert) {
		curl_easy_setopt(p->easy, CURLOPT_SSLCERT, config->collector_cert);
		curl_easy_setopt(p->easy, CURLOPT_SSLKEY,
				 config->collector_key ? config->collector_key : config->collector_cert);
	}
	return 0;
}

/* --- the answer --- */

static bool is_key(const struct json_text *key, const char *name)
{
	return key->len == strlen(name) && memcmp(key->data, name, key->len) == 0;
}

static bool read_text(struct json_reader *r, char *ret, size_t size)
{
	struct json_text text;

	if (!json_read_string(r, &text))
		return false;
	snprintf(ret, size, "%.*s", (int)text.len, text.data);
	return true;
}

static bool read_number(struct json_reader *r, uint64_t *ret)
{
	struct json_text text;
	char digits[24];

	if (!json_read_number(r, &text))
		return false;
	snprintf(digits, sizeof(digits), "%.*s", (int)text.len, text.data);
	return parse_u64(digits, ret) == 0;
}

/* False: it is not the API that answered. */
static bool read_answer(struct buf *answer, struct said *ret)
{
	struct json_reader r;
	struct json_text key;
	bool first = true, is_sound = true;

	json_reader_init(&r, answer->data, answer->len);
	is_sound = json_peek(&r) == '{' && json_open(&r, '{');
	while (is_sound && json_next(&r, '}', &first)) {
		if (!json_read_key(&r, &key))
			is_sound = false;
		else if (is_key(&key, "build_id"))
			is_sound = read_text(&r, ret->build_id, sizeof(ret->build_id));
		else if (is_key(&key, "error"))
			is_sound = read_text(&r, ret->error, sizeof(ret->error));
		else if (is_key(&key, "functions"))
			is_sound = read_number(&r, &ret->functions);
		else if (is_key(&key, "named"))
			is_sound = read_number(&r, &ret->named);
		else
			is_sound = json_skip(&r);
	}
	is_sound = is_sound && !r.error;
	json_reader_fini(&r);
	return is_sound;
}

static int take_answer(struct push *p, const char *path)
{
	struct said said = { .build_id = "" };
	bool is_read = read_answer(&p->answer, &said);
	const char *text = buf_text(&p->answer);
	long status = 0;

	curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200 && is_read && *said.build_id) {
		log_info("%s: %" PRIu64 " functions for build id %s, %" PRIu64 " addresses there have names of it now", path,
			 said.functions, said.build_id, said.named);
		return 0;
	}
	text = *said.error ? said.error : *text ? text : "no reason is given";
	if (status == 401)
		log_error("%s is not taken by %s: it wants its token, see --collector-token-file", path, buf_text(&p->url));
	else if (status == 200)
		log_error("%s does not answer as a hearth does: is there one?", buf_text(&p->url));
	else
		log_error("%s is not taken by %s: %.*s (status %ld)", path, buf_text(&p->url), (int)strcspn(text, "\r\n"),
			  text, status);
	return -EPROTO;
}

static int push_one(struct push *p, const char *path)
{
	int fd = resolve_open_elf(path), err = fd < 0 ? fd : 0;
	struct stat st;
	CURLcode code;

	if (!err && fstat(fd, &st))
		err = -errno;
	if (err) {
		log_error("cannot read %s: %s", path, err == -ENOEXEC ? "it is no 64-bit ELF file" : strerror(-err));
		if (fd >= 0)
			close(fd);
		return err;
	}
	buf_reset(&p->answer);
	p->error[0] = '\0';
	curl_easy_setopt(p->easy, CURLOPT_READDATA, &fd);
	curl_easy_setopt(p->easy, CURLOPT_SEEKDATA, &fd);
	curl_easy_setopt(p->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)st.st_size);
	code = curl_easy_perform(p->easy);
	close(fd);
	if (code == CURLE_OK)
		return take_answer(p, path);
	log_error("cannot send %s to %s: %s", path, buf_text(&p->url), p->error[0] ? p->error : curl_easy_strerror(code));
	return -EIO;
}

int symbols_push(const struct config *config, const char *url, char *const *paths, size_t count)
{
	AUTO(push_fini) struct push push = { .url = BUF_EMPTY, .answer = BUF_EMPTY };
	int status = STATUS_DONE;

	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
		log_error("'%s' is no address of a hearth: files come first, then http(s)://HOST:PORT", url);
		return STATUS_USAGE;
	}
	if (push_init(&push, config, url))
		return STATUS_FAILED;
	for (size_t i = 0; i < count; i++)
		if (push_one(&push, paths[i]))
			status = STATUS_FAILED;
	return status;
}
