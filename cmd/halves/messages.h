/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the channel that wait to be sent, or for their acknowledgement, in lists that own them. One thread. */
#ifndef HEARTH_CMD_HALVES_MESSAGES_H
#define HEARTH_CMD_HALVES_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cmd/halves/wire.h"

struct message_entry {
	struct message_entry *next;
	struct wire_head head;
	uint64_t samples; /* in it, where it has profiles */
	size_t sent;	  /* bytes of @body */
	struct buf body;
};

struct message_list {
	struct message_entry *first, **last;
	size_t bytes; /* of all bodies */
};

/* NULL without memory. message_entry_free() accepts NULL. */
struct message_entry *message_entry_new(enum wire_kind kind, uint64_t number);
void message_entry_free(struct message_entry *e);

void message_list_init(struct message_list *l);
void message_list_put(struct message_list *l, struct message_entry *e);

/* Takes out the entry that *@link, a link of @l, leads to; it is the caller's then. */
struct message_entry *message_list_take(struct message_list *l, struct message_entry **link);

/* Puts all of @from behind what is in @l, as if nothing of it had been sent. */
void message_list_take_back(struct message_list *l, struct message_list *from);

/* Frees all entries. */
void message_list_clear(struct message_list *l);

#endif
