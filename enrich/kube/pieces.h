/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts objects out of an answer of the API server while it comes in, so that never more than one of them is in memory: the
 * objects of a watch, one behind the other, or the metadata and the items of a list, whose order does not matter. Only
 * brackets and strings are looked at; whoever reads the object finds what else is wrong with it.
 */
#ifndef HEARTH_ENRICH_KUBE_PIECES_H
#define HEARTH_ENRICH_KUBE_PIECES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum {
	PIECE_MAX_BYTES = 4 << 20,	/* of an object; etcd takes 1.5 MiB. What is longer is passed over and counted */
	PIECE_ENDLESS_BYTES = 64 << 20, /* of what is passed over; then the answer is none */
};

enum pieces_of { PIECES_OF_WATCH, PIECES_OF_LIST };

struct pieces {
	enum pieces_of of;
	/* Gets each object; @is_item: of a watch, or an item of a list, not its metadata. */
	void (*fn)(void *arg, const void *json, size_t len, bool is_item);
	void *arg;
	/* the rest is private */
	struct buf piece;
	size_t passed;	/* bytes of an object that is too long */
	unsigned depth; /* brackets open outside of a piece */
	unsigned inner; /* and in it; 0: outside */
	char outer[2];	/* the brackets that are open outside */
	bool in_string, is_escaped, is_too_long;
	size_t too_long; /* how many objects were */
};

void pieces_init(struct pieces *p, enum pieces_of of, void (*fn)(void *arg, const void *json, size_t len, bool is_item),
		 void *arg);
void pieces_fini(struct pieces *p);

/* Takes the next bytes. 0; -EBADMSG: that is no such answer; -EFBIG: an object does not end; -ENOMEM. */
int pieces_take(struct pieces *p, const char *data, size_t len);

/* Whether the answer could end here: all that was opened is closed. */
bool pieces_are_whole(const struct pieces *p);

#endif
