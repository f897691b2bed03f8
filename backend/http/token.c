/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens. The file is read whole each time: it is small, and time stamps would miss a second change within their grain. */
#include "backend/http/token.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "backend/http/guesses.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"

enum { MAX_FILE_BYTES = 64 << 10, LOG_SECONDS = 60 };

struct tokens {
	const char *path;
	char *text; /* tokens, each with a NUL behind it, and an empty one at the end */
	uint64_t looked_ns;
	struct log_limit limit;
	struct guesses guesses;
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
	AUTO_FREE char *text = calloc(1, MAX_FILE_BYTES + 2);
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = io_read_text(AT_FDCWD, path, text, MAX_FILE_BYTES + 1);
	if (n < 0)
		return (int)n;
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

/* Finds a token, in the same time for every token of a length. NULL: it is none. */
static const char *find(const struct tokens *t, const char *shown, size_t len)
{
	const char *found = NULL;

	for (const char *token = t->text; *token; token += strlen(token) + 1)
		if (strlen(token) == len && gnutls_memcmp(token, shown, len) == 0)
			found = token;
	return found;
}

bool tokens_know(struct tokens *t, const char *token)
{
	refresh(t);
	return find(t, token, strlen(token));
}

static enum token_verdict judge(struct tokens *t, const char *shown, size_t len, const struct sockaddr *peer,
				const char **token_ret)
{
	uint64_t now_ns = clock_mono_ns();
	const char *token;

	refresh(t);
	if (guesses_wait_ns(&t->guesses, peer, now_ns))
		return TOKEN_TOO_MANY;
	token = find(t, shown, len);
	if (!token) {
		guesses_wrong(&t->guesses, peer, shown, len, now_ns);
		return TOKEN_WRONG;
	}
	if (token_ret)
		*token_ret = token;
	return TOKEN_GOOD;
}

/* Judges Basic: base64 of "user:password" (RFC 7617); any user, and a token as the password. */
static enum token_verdict judge_password(struct tokens *t, const char *encoded, const struct sockaddr *peer,
					 const char **token_ret)
{
	const gnutls_datum_t in = { (unsigned char *)(uintptr_t)encoded, (unsigned)strlen(encoded) };
	gnutls_datum_t out = { NULL, 0 };
	enum token_verdict ret = TOKEN_WRONG;
	const char *colon;

	if (gnutls_base64_decode2(&in, &out) != GNUTLS_E_SUCCESS)
		return TOKEN_WRONG;
	colon = memchr(out.data, ':', out.size);
	if (colon)
		ret = judge(t, colon + 1, out.size - (size_t)(colon + 1 - (const char *)out.data), peer, token_ret);
	gnutls_free(out.data);
	return ret;
}

enum token_verdict tokens_judge(struct tokens *t, const char *authorization, const struct sockaddr *peer,
				const char **token_ret)
{
	const char *shown;
	size_t scheme;

	if (!authorization)
		return TOKEN_NONE;
	scheme = strcspn(authorization, " ");
	shown = authorization + scheme;
	shown += strspn(shown, " ");
	if (scheme == strlen("Bearer") && strncasecmp(authorization, "Bearer", scheme) == 0)
		return judge(t, shown, strlen(shown), peer, token_ret);
	if (scheme == strlen("Basic") && strncasecmp(authorization, "Basic", scheme) == 0)
		return judge_password(t, shown, peer, token_ret);
	return TOKEN_WRONG;
}
