/* SPDX-License-Identifier: Apache-2.0 */
/* Bearer tokens. The file is read whole each time: it is small, and time stamps would miss a second change within their
 * grain. */
#include "backend/token.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

enum { MAX_FILE_BYTES = 64 << 10, LOG_SECONDS = 60 };

struct tokens {
	const char *path;
	char *text; /* tokens, each with a NUL behind it, and an empty one at the end */
	uint64_t looked_ns;
	struct log_limit limit;
};

/* Puts the words of @text one behind the other; false when there is none. */
static bool pack_words(char *text)
{
	char *to = text, *save = NULL;

	for (char *word = strtok_r(text, " \t\r\n", &save); word; word = strtok_r(NULL, " \t\r\n", &save)) {
		size_t size = strlen(word) + 1;
		memmove(to, word, size);
		to += size;
	}
	*to = '\0';
	return to != text;
}

static int read_tokens(const char *path, char **ret)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	AUTO_FREE char *text = calloc(1, MAX_FILE_BYTES + 2);
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (!text)
		return -ENOMEM;
	n = read(fd, text, MAX_FILE_BYTES);
	if (n < 0)
		return -errno;
	if (n == MAX_FILE_BYTES || strlen(text) != (size_t)n || !pack_words(text))
		return -ENODATA;
	*ret = MOVE(text);
	return 0;
}

int tokens_new(const char *path, struct tokens **ret)
{
	struct tokens *t = calloc(1, sizeof(*t));
	int error = t ? read_tokens(path, &t->text) : -ENOMEM;

	if (error) {
		free(t);
		return error;
	}
	t->path = path;
	t->looked_ns = clock_mono_ns();
	*ret = t;
	return 0;
}

void tokens_free(struct tokens *t)
{
	if (t)
		free(t->text);
	free(t);
}

static void refresh(struct tokens *t)
{
	uint64_t now_ns = clock_mono_ns();
	char *text = NULL;
	int error;

	if (now_ns - t->looked_ns < NSEC_PER_SEC)
		return;
	t->looked_ns = now_ns;
	error = read_tokens(t->path, &text);
	if (error) {
		log_limited(&t->limit, LOG_SECONDS * NSEC_PER_SEC, LOG_WARN,
			    "no tokens can be read from %s, the old ones stay: %s", t->path,
			    error == -ENODATA ? "there is none in it" : strerror(-error));
		return;
	}
	free(t->text);
	t->text = text;
}

/* Takes the same time for every token of a length. */
static bool is_token(const struct tokens *t, const char *shown, size_t len)
{
	bool is_one = false;

	for (const char *token = t->text; *token; token += strlen(token) + 1)
		is_one |= strlen(token) == len && gnutls_memcmp(token, shown, len) == 0;
	return is_one;
}

/* Basic: base64 of "user:password" (RFC 7617), the user whoever, the password a token. */
static bool is_password(const struct tokens *t, const char *encoded)
{
	const gnutls_datum_t in = { (unsigned char *)(uintptr_t)encoded, (unsigned)strlen(encoded) };
	gnutls_datum_t out = { NULL, 0 };
	const char *colon;
	bool is_one = false;

	if (gnutls_base64_decode2(&in, &out) != GNUTLS_E_SUCCESS)
		return false;
	colon = memchr(out.data, ':', out.size);
	if (colon)
		is_one = is_token(t, colon + 1, out.size - (size_t)(colon + 1 - (const char *)out.data));
	gnutls_free(out.data);
	return is_one;
}

bool tokens_allow(struct tokens *t, const char *authorization)
{
	const char *shown;
	size_t scheme;

	refresh(t);
	if (!authorization)
		return false;
	scheme = strcspn(authorization, " ");
	shown = authorization + scheme;
	shown += strspn(shown, " ");
	if (scheme == strlen("Bearer") && strncasecmp(authorization, "Bearer", scheme) == 0)
		return is_token(t, shown, strlen(shown));
	return scheme == strlen("Basic") && strncasecmp(authorization, "Basic", scheme) == 0 && is_password(t, shown);
}
