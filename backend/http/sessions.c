/* SPDX-License-Identifier: Apache-2.0 */
/* All sessions are looked at each time, so the time it takes says nothing about which one is near. */
#include "backend/http/sessions.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/http/token.h"
#include "base/clock.h"

static void end(struct session *session)
{
	free(session->token);
	*session = (struct session){ .token = NULL };
}

/* Takes a free place, else the place of the session that would end first. */
static struct session *take_place(struct sessions *s)
{
	struct session *place = &s->items[0];

	for (size_t i = 1; i < SESSIONS_MAX; i++)
		if (s->items[i].end_ns < place->end_ns)
			place = &s->items[i];
	end(place);
	return place;
}

const char *sessions_open(struct sessions *s, const char *token, uint64_t now_ns)
{
	unsigned char chance[(SESSION_ID_SIZE - 1) / 2];
	char *copy = strdup(token);
	struct session *session;

	if (!copy || gnutls_rnd(GNUTLS_RND_KEY, chance, sizeof(chance))) {
		free(copy);
		return NULL;
	}
	session = take_place(s);
	for (size_t i = 0; i < sizeof(chance); i++)
		snprintf(session->id + 2 * i, 3, "%02x", chance[i]);
	session->token = copy;
	session->end_ns = now_ns + SESSIONS_KEPT_S * NSEC_PER_SEC;
	return session->id;
}

static struct session *find(struct sessions *s, const char *id, size_t len)
{
	struct session *found = NULL;

	if (len != SESSION_ID_SIZE - 1)
		return NULL;
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (gnutls_memcmp(s->items[i].id, id, len) == 0)
			found = &s->items[i];
	return found;
}

bool sessions_allow(struct sessions *s, const char *id, size_t len, struct tokens *tokens, uint64_t now_ns)
{
	struct session *session = find(s, id, len);

	if (session && (session->end_ns <= now_ns || !tokens_know(tokens, session->token))) {
		end(session);
		session = NULL;
	}
	return session;
}

void sessions_close(struct sessions *s, const char *id, size_t len)
{
	struct session *session = find(s, id, len);

	if (session)
		end(session);
}

void sessions_fini(struct sessions *s)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		end(&s->items[i]);
}
