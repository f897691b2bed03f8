/* SPDX-License-Identifier: Apache-2.0 */
/* A leaky bucket for each address, kept as the time when it will be empty. */
#include "backend/http/guesses.h"

#include <stdbool.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"

#define EACH_NS (GUESSES_EACH_S * NSEC_PER_SEC)

static struct in6_addr address_of(const struct sockaddr *peer)
{
	struct in6_addr ret = IN6ADDR_ANY_INIT;

	if (peer && peer->sa_family == AF_INET) {
		ret.s6_addr[10] = ret.s6_addr[11] = 0xff;
		memcpy(&ret.s6_addr[12], &((const struct sockaddr_in *)(const void *)peer)->sin_addr, 4);
	} else if (peer && peer->sa_family == AF_INET6) {
		ret = ((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
		if (!IN6_IS_ADDR_V4MAPPED(&ret))
			memset(&ret.s6_addr[8], 0, 8);
	}
	return ret;
}

/* The entry of @address; NULL: it has shown no wrong token lately. */
static const struct guesses_peer *find(const struct guesses *g, const struct in6_addr *address, uint64_t now_ns)
{
	for (size_t i = 0; i < GUESSES_PEERS; i++)
		if (g->peers[i].free_ns > now_ns && memcmp(&g->peers[i].address, address, sizeof(*address)) == 0)
			return &g->peers[i];
	return NULL;
}

uint64_t guesses_wait_ns(const struct guesses *g, const struct sockaddr *peer, uint64_t now_ns)
{
	struct in6_addr address = address_of(peer);
	const struct guesses_peer *p = find(g, &address, now_ns);
	uint64_t level_ns = p ? p->free_ns - now_ns : 0;

	return level_ns > (GUESSES_AT_ONCE - 1) * EACH_NS ? level_ns - (GUESSES_AT_ONCE - 1) * EACH_NS : 0;
}

static struct guesses_peer *take_place(struct guesses *g, const struct in6_addr *address, uint64_t now_ns)
{
	struct guesses_peer *place = &g->peers[0];

	for (size_t i = 1; i < GUESSES_PEERS; i++)
		if (g->peers[i].free_ns < place->free_ns)
			place = &g->peers[i];
	*place = (struct guesses_peer){ .address = *address, .free_ns = now_ns };
	return place;
}

void guesses_wrong(struct guesses *g, const struct sockaddr *peer, const char *shown, size_t len, uint64_t now_ns)
{
	struct in6_addr address = address_of(peer);
	struct guesses_peer *p = (struct guesses_peer *)(uintptr_t)find(g, &address, now_ns);
	uint64_t hash = XXH3_64bits(shown, len);

	if (!p)
		p = take_place(g, &address, now_ns);
	for (size_t i = 0; i < GUESSES_KEPT; i++)
		if (p->wrong[i] == hash)
			return;
	p->wrong[p->next++ % GUESSES_KEPT] = hash;
	p->free_ns += EACH_NS;
}
