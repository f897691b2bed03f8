/* SPDX-License-Identifier: Apache-2.0 */
/* A ring below a lock: the receivers' thread adds, the query thread reads. One for the process, as its log is. */
#include "backend/http/recent.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { KEPT = 50, MAX_NAME_LEN = 64, MAX_VALUE_LEN = 160 };

static struct {
	pthread_mutex_t lock;
	struct recent_request ring[KEPT];
	uint64_t count; /* ever added; the next one goes to count % KEPT */
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Is @name such as authorization, cookie, x-api-key, x-auth-token? Rather one too many is not shown. */
static bool may_be_secret(const char *name)
{
	static const char *const parts[] = {
		"auth", "cookie", "token", "key", "secret", "password", "session", "credential"
	};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (strcasestr(name, parts[i]))
			return true;
	return false;
}

void recent_header(struct recent_headers *headers, const char *name, size_t name_len, const char *value, size_t value_len)
{
	char line[MAX_NAME_LEN + MAX_VALUE_LEN + 32];
	int len;

	if (!name_len || name[0] == ':')
		return;
	len = snprintf(line, sizeof(line), "%.*s: ", name_len < MAX_NAME_LEN ? (int)name_len : MAX_NAME_LEN, name);
	if (may_be_secret(line))
		len += snprintf(line + len, sizeof(line) - (size_t)len, "(not shown)");
	else
		len += snprintf(line + len, sizeof(line) - (size_t)len, "%.*s%s",
				value_len <= MAX_VALUE_LEN ? (int)value_len : MAX_VALUE_LEN, value ? value : "",
				value_len <= MAX_VALUE_LEN ? "" : "...");
	for (int i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == '\x7f')
			line[i] = '?';
	line[len++] = '\n';
	if ((size_t)len > sizeof(headers->text) - headers->len)
		return;
	memcpy(headers->text + headers->len, line, (size_t)len);
	headers->len += (uint16_t)len;
}

void recent_add(const char *path, unsigned status, uint64_t bytes, const struct recent_headers *headers)
{
	pthread_mutex_lock(&kept.lock);
	struct recent_request *r = &kept.ring[kept.count++ % KEPT];

	r->unix_ns = clock_unix_ns();
	r->status = status;
	r->bytes = bytes;
	r->headers = *headers;
	snprintf(r->path, sizeof(r->path), "%s", path);
	pthread_mutex_unlock(&kept.lock);
}

size_t recent_list(struct recent_request *requests, size_t max)
{
	pthread_mutex_lock(&kept.lock);
	uint64_t n = kept.count < KEPT ? kept.count : KEPT;

	if (n > max)
		n = max;
	for (uint64_t i = 0; i < n; i++)
		requests[i] = kept.ring[(kept.count - n + i) % KEPT];
	pthread_mutex_unlock(&kept.lock);
	return n;
}
