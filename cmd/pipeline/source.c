/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pipeline/source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/curl.h"
#include "base/io.h"
#include "base/text/tree.h"
#include "cmd/options/hide.h"
#include "cmd/pipeline/expand.h"
#include "cmd/pipeline/pipelines.h"

enum { SOURCE_MAX_BYTES = 1 << 20, FETCH_SECONDS = 10 };

/* The rest of @source behind @scheme and a colon; NULL: it has another one. */
static const char *behind(const char *source, const char *scheme)
{
	size_t len = strlen(scheme);

	return !strncmp(source, scheme, len) && source[len] == ':' ? source + len + 1 : NULL;
}

static bool is_url(const char *source)
{
	return !strncmp(source, "http://", 7) || !strncmp(source, "https://", 8);
}

char *source_shown(const char *source)
{
	char *shown = strdup(source);

	if (shown && is_url(source))
		hide_password(shown);
	return shown;
}

/* --- from a server --- */

static size_t take_bytes(char *data, size_t size, size_t count, void *arg)
{
	struct buf *out = arg;

	if (out->len + size * count > SOURCE_MAX_BYTES)
		return 0;
	buf_append(out, data, size * count);
	return out->failed ? 0 : size * count;
}

static int fetch(const char *url, struct buf *out, struct buf *error)
{
	AUTO_FREE char *shown = source_shown(url);
	CURL *curl = curl_easy_init();
	long status = 0;
	CURLcode code;

	if (!curl || !shown) {
		if (curl)
			curl_easy_cleanup(curl);
		return -ENOMEM;
	}
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)FETCH_SECONDS);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
	code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(curl);
	if (code)
		buf_printf(error, "cannot read %s: %s", shown,
			   code == CURLE_WRITE_ERROR ? "it is larger than 1 MiB" : curl_easy_strerror(code));
	else if (status != 200)
		buf_printf(error, "cannot read %s: the server answers with status %ld", shown, status);
	return code || status != 200 ? -EINVAL : 0;
}

/* --- from here --- */

static int read_path(const char *path, struct buf *out, struct buf *error)
{
	int err = io_read_file(path, SOURCE_MAX_BYTES, out);

	if (err == -EFBIG)
		buf_printf(error, "%s is no configuration: it is larger than 1 MiB", path);
	else if (err && err != -ENOMEM)
		buf_printf(error, "cannot read %s: %s", path, strerror(-err));
	return err && err != -ENOMEM ? -EINVAL : err;
}

static int read_variable(const char *name, struct buf *out, struct buf *error)
{
	const char *value = getenv(name);

	if (value) {
		buf_puts(out, value);
		return out->failed ? -ENOMEM : 0;
	}
	buf_printf(error, "env:%s: there is no such variable", name);
	return -EINVAL;
}

int source_read_text(const char *source, struct buf *out, struct buf *error)
{
	const char *rest;

	if (is_url(source))
		return fetch(source, out, error);
	rest = behind(source, "env");
	if (rest)
		return read_variable(rest, out, error);
	rest = behind(source, "yaml");
	if (rest) {
		buf_puts(out, rest);
		return out->failed ? -ENOMEM : 0;
	}
	rest = behind(source, "file");
	return read_path(rest ? rest : source, out, error);
}

/* --- all of them --- */

/* `exporters::debug::verbosity: detailed` is what these keys mean one below the other. */
static int split_keys(struct tree *t)
{
	struct tree all = { .kind = TREE_MAP, .source = t->source, .line = t->line };
	int err = 0;

	if (t->kind != TREE_MAP)
		return 0;
	for (size_t i = 0; i < t->count && !err; i++) {
		struct tree value = t->items[i];
		AUTO_FREE char *key = value.key;

		value.key = NULL;
		t->items[i] = TREE_EMPTY;
		err = tree_set(&all, key, "::", &value);
	}
	tree_replace(t, &all);
	return err;
}

static int read_one(const char *source, struct tree *all, struct buf *error)
{
	const char *name = is_url(source) ? "the server's document" : source;
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct tree t = TREE_EMPTY;
	int err = source_read_text(source, &text, error);

	if (!err)
		err = tree_parse(behind(source, "yaml") ? "yaml" : name, buf_text(&text), text.len, &t, error);
	if (!err && behind(source, "yaml"))
		err = split_keys(&t);
	if (err == -EINVAL && !error->len)
		buf_printf(error, "%s: a key is empty", source);
	if (!err)
		return tree_merge(all, &t);
	tree_fini(&t);
	return err;
}

static int set_one(const char *set, struct tree *all, struct buf *error)
{
	const char *is = strchr(set, '=');
	AUTO_FREE char *path = is ? strndup(set, (size_t)(is - set)) : NULL;
	struct tree value = TREE_EMPTY;
	int err;

	if (!is) {
		buf_printf(error, "--set: '%s' is not KEY=VALUE, such as exporters.debug.verbosity=detailed", set);
		return -EINVAL;
	}
	err = path ? tree_parse("--set", is + 1, strlen(is + 1), &value, error) : -ENOMEM;
	if (err)
		return err;
	err = tree_set(all, path, strstr(path, "::") ? "::" : ".", &value);
	if (err == -EINVAL)
		buf_printf(error, "--set: a key is empty in '%s'", set);
	return err;
}

int source_read_all(const char *const *sources, const char *const *sets, struct tree *ret, struct buf *error)
{
	struct tree all = TREE_EMPTY;
	int err = 0;

	for (size_t i = 0; sources && sources[i] && !err; i++)
		err = read_one(sources[i], &all, error);
	for (size_t i = 0; sets && sets[i] && !err; i++)
		err = set_one(sets[i], &all, error);
	if (!err && pipelines_are_in(&all))
		err = expand_tree(&all, error);
	if (err)
		tree_fini(&all);
	else
		*ret = all;
	return err;
}
