/* SPDX-License-Identifier: Apache-2.0 */
/* A token in a file that somebody else replaces from time to time. One thread at a time. */
#ifndef HEARTH_BASE_BEARER_TOKEN_H
#define HEARTH_BASE_BEARER_TOKEN_H

struct bearer_token;

/* Reads @path (borrowed). 0; -ENODATA: no token in it (one word, on one line); why it cannot be read; -ENOMEM. */
int bearer_token_new(const char *path, struct bearer_token **ret);
void bearer_token_free(struct bearer_token *t);

/*
 * Looks at the file again. 1: the token is another than at the last call, or this is the first; 0: it is the same. When the
 * file cannot be read, or holds no token at the moment (it may be half written), the old one stays: -errno.
 */
int bearer_token_read(struct bearer_token *t);

/* "Authorization: Bearer TOKEN", until the next bearer_token_read(). */
const char *bearer_token_header(const struct bearer_token *t);

#endif
