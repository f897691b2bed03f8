/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Browsers that showed a token once and have a cookie since. A session ends at its time, with its token, when its browser
 * logs out, when too many others come, and with the process. Loop's thread only.
 */
#ifndef HEARTH_BACKEND_HTTP_SESSIONS_H
#define HEARTH_BACKEND_HTTP_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tokens;

enum {
	SESSIONS_MAX = 64, /* the oldest gives way */
	SESSIONS_KEPT_S = 7 * 24 * 3600,
	SESSION_ID_SIZE = 2 * 32 + 1, /* hexadecimal digits and the NUL */
};

struct session {
	char id[SESSION_ID_SIZE]; /* "": there is none here */
	char *token;		  /* owned: what it was opened with */
	uint64_t end_ns;	  /* CLOCK_MONOTONIC */
};

struct sessions { /* all zeros to begin with */
	struct session items[SESSIONS_MAX];
};

/* Opens a session for the browser that showed @token. Returns its id, valid until the next call; NULL: out of memory or of
 * random bytes. */
const char *sessions_open(struct sessions *s, const char *token, uint64_t now_ns);

/* Whether @id[@len] is a session whose token is still good. */
bool sessions_allow(struct sessions *s, const char *id, size_t len, struct tokens *tokens, uint64_t now_ns);

void sessions_close(struct sessions *s, const char *id, size_t len);
void sessions_fini(struct sessions *s);

#endif
