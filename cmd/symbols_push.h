/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth symbols push`: sends files with symbols to a hearth that got bare addresses of them. */
#ifndef HEARTH_CMD_SYMBOLS_PUSH_H
#define HEARTH_CMD_SYMBOLS_PUSH_H

#include <stddef.h>

struct config;

/* Sends the @count files at @paths, one after another, to the hearth at @url (http(s)://HOST:PORT). Exit status; logs what
 * went wrong. */
int symbols_push(const struct config *config, const char *url, char *const *paths, size_t count);

#endif
