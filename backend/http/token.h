/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens that requests must bring, from a file that somebody replaces from time to time. Loop's thread only. */
#ifndef HEARTH_BACKEND_HTTP_TOKEN_H
#define HEARTH_BACKEND_HTTP_TOKEN_H

#include <stdbool.h>

struct sockaddr;
struct tokens;

/* Reads @path (borrowed): one token a line, so that an old and a new one may be good at a time. 0; -ENODATA: there is none
 * in it; why it cannot be read; -ENOMEM. */
int tokens_new(const char *path, struct tokens **ret);
void tokens_free(struct tokens *t); /* accepts NULL */

enum token_verdict {
	TOKEN_NONE,
	TOKEN_GOOD,
	TOKEN_WRONG,
	TOKEN_TOO_MANY, /* not looked at: too many wrong ones came from there (backend/http/guesses.h) */
};
#define TOKEN_TOO_MANY_TEXT "too many wrong tokens came from this address: try again later"
enum { TOKEN_RETRY_S = 6 };

/*
 * Judges @authorization, the header's value or NULL: "Bearer " and a token, or "Basic " with a token as the password, as
 * browsers, pprof and Grafana send it. @peer: who shows it, or NULL. *@token_ret (unless NULL) gets the good token, valid
 * until the next call. The file is read again at most once a second; while it cannot be used the old tokens stay. The time
 * this takes tells nothing about the tokens but their lengths.
 */
enum token_verdict tokens_judge(struct tokens *t, const char *authorization, const struct sockaddr *peer,
				const char **token_ret);

/* Whether @token, which was good once, still is. */
bool tokens_know(struct tokens *t, const char *token);

#endif
