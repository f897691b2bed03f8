/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth help TOPIC`: what is not one option or one command. */
#ifndef HEARTH_CMD_TOPICS_H
#define HEARTH_CMD_TOPICS_H

struct topic {
	const char *name;
	const char *text; /* lines of 100 characters at most */
};

/* All topics, ending with a name of NULL. */
extern const struct topic topics[];

#endif
