/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth help TOPIC`: help beyond single options and commands. */
#ifndef HEARTH_CMD_HELP_TOPICS_H
#define HEARTH_CMD_HELP_TOPICS_H

struct topic {
	const char *name;
	const char *text; /* lines of 100 characters at most */
};

/* All topics, ending with a name of NULL. */
extern const struct topic topics[];

#endif
