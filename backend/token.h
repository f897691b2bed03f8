/* SPDX-License-Identifier: Apache-2.0 */
/* The bearer tokens that requests must bring, from a file that somebody replaces from time to time. Loop's thread only. */
#ifndef HEARTH_BACKEND_TOKEN_H
#define HEARTH_BACKEND_TOKEN_H

#include <stdbool.h>

struct tokens;

/* Reads @path (borrowed): one token a line, so that an old and a new one may be good at a time. 0; -ENODATA: there is none
 * in it; why it cannot be read; -ENOMEM. */
int tokens_new(const char *path, struct tokens **ret);
void tokens_free(struct tokens *t); /* accepts NULL */

/* Whether @authorization, the header's value or NULL, is "Bearer " and one of the tokens, or "Basic " with one of them as
 * the password, as browsers and pprof send it. The file is read again at most once a second; while it cannot be used the old
 * tokens stay. The time this takes tells nothing about the tokens but their lengths. */
bool tokens_allow(struct tokens *t, const char *authorization);

#endif
