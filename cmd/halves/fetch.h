/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches debug files from servers for the agent, which holds no socket of a network. The backend's main thread. */
#ifndef HEARTH_CMD_HALVES_FETCH_H
#define HEARTH_CMD_HALVES_FETCH_H

#include <stdint.h>

struct fetch;
struct loop;

/* NULL: no server is named, or it cannot be asked, which is said. */
struct fetch *fetch_new(struct loop *loop);

/* Sends NOTE_SERVED with @number to @sock, once it is known what servers have for @build_id. Accepts NULL. */
void fetch_ask(struct fetch *f, int sock, uint64_t number, const char *build_id);

void fetch_free(struct fetch *f);

#endif
