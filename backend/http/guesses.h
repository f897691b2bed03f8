/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slows down clients that guess tokens: an address may show so many different wrong ones in a time. After that none is taken
 * for a while, not even a right one, or guessing would go on unseen. The same wrong one again and again, as a sender with an
 * old token shows it, counts once: it must not shut out others behind its address. Loop's thread only.
 */
#ifndef HEARTH_BACKEND_HTTP_GUESSES_H
#define HEARTH_BACKEND_HTTP_GUESSES_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	GUESSES_PEERS = 256, /* the one not heard of for longest gives way */
	GUESSES_AT_ONCE = 10,
	GUESSES_EACH_S = 6, /* one more may be made after so long */
	GUESSES_KEPT = 4,   /* wrong tokens of a peer that are known again */
};

struct guesses_peer {
	struct in6_addr address; /* of IPv6 the network, 64 bits: its hosts are free to choose the rest */
	uint64_t free_ns;	 /* CLOCK_MONOTONIC: when all of its guesses are forgotten; 0: nobody */
	uint64_t wrong[GUESSES_KEPT];
	unsigned next;
};

struct guesses { /* all zeros to begin with */
	struct guesses_peer peers[GUESSES_PEERS];
};

/* How long @peer (NULL: unknown, all of those together) must wait before it may show a token; 0: it may. */
uint64_t guesses_wait_ns(const struct guesses *g, const struct sockaddr *peer, uint64_t now_ns);

/* @peer showed a wrong token. */
void guesses_wrong(struct guesses *g, const struct sockaddr *peer, const char *shown, size_t len, uint64_t now_ns);

#endif
