/* SPDX-License-Identifier: Apache-2.0 */
/* The backend's process: gives up what it may do, opens store, page and senders, and serves the channel until the agent
 * ends. */
#ifndef HEARTH_CMD_HALVES_BACKEND_HALF_H
#define HEARTH_CMD_HALVES_BACKEND_HALF_H

#include <stdbool.h>

#include "cmd/halves/hand_over.h"
#include "cmd/halves/share.h"

/* Exit statuses of the process. */
enum {
	BACKEND_DONE,
	BACKEND_FAILED,	 /* it may go better another time */
	BACKEND_REFUSED, /* the first one could not open what the user asked for, and has said so */
};

struct backend_task {
	struct share *share;
	const struct handed_over *handed;
	int sock;
	bool keeps;	 /* the default store, when no other is named; without it the rest goes on */
	bool is_lenient; /* without the page the rest goes on */
	bool is_first;	 /* none was started before */
};

__attribute__((noreturn)) void backend_half(const struct backend_task *task);

#endif
