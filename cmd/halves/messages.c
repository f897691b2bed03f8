/* SPDX-License-Identifier: Apache-2.0 */
/* Linked lists with a pointer to their last link. */
#include "cmd/halves/messages.h"

#include <stdlib.h>

void message_list_init(struct message_list *l)
{
	*l = (struct message_list){ .last = &l->first };
}

void message_list_put(struct message_list *l, struct message_entry *e)
{
	e->next = NULL;
	*l->last = e;
	l->last = &e->next;
	l->bytes += e->body.len;
}

struct message_entry *message_list_take(struct message_list *l, struct message_entry **link)
{
	struct message_entry *e = *link;

	*link = e->next;
	if (!e->next)
		l->last = link;
	l->bytes -= e->body.len;
	return e;
}

void message_entry_free(struct message_entry *e)
{
	if (e)
		buf_fini(&e->body);
	free(e);
}

void message_list_clear(struct message_list *l)
{
	while (l->first)
		message_entry_free(message_list_take(l, &l->first));
}

struct message_entry *message_entry_new(enum wire_kind kind, uint64_t number)
{
	struct message_entry *e = calloc(1, sizeof(*e));

	if (e)
		e->head = (struct wire_head){ .kind = kind, .number = number };
	return e;
}

void message_list_take_back(struct message_list *l, struct message_list *from)
{
	while (from->first) {
		from->first->sent = 0;
		message_list_put(l, message_list_take(from, &from->first));
	}
}
