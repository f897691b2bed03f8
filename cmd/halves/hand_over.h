/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens, as root, what the backend will need and may not open itself: folders it writes to, and files with keys and tokens.
 * The settings then name them by descriptor (base/handed.h). Of a secret the backend gets a copy in memory, which is renewed
 * when the file changes.
 */
#ifndef HEARTH_CMD_HALVES_HAND_OVER_H
#define HEARTH_CMD_HALVES_HAND_OVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "cmd/halves/owner.h"
#include "cmd/halves/share.h"

enum { MAX_FOLDERS = 8, MAX_SECRETS = 24 };

struct secret {
	const char *path; /* as the user gave it */
	int copy;	  /* a file in memory */
	struct stat seen; /* what was copied */
};

struct handed_over {
	struct owner owner;
	int folders[MAX_FOLDERS];
	size_t folder_count;
	struct secret secrets[MAX_SECRETS];
	size_t secret_count;
	char store_error[512]; /* why there is no store; "" */
	int store_errno;
};

/* Decides on the owner, takes folders, copies secrets, and writes the names by which the backend finds them into its part of
 * @share. @keeps: the default store is one of them. What cannot be opened keeps its name, and fails in the backend. */
void hand_over(struct share *share, bool keeps, struct handed_over *ret);

/* Copies secrets whose files have changed. */
void hand_over_again(struct handed_over *h);

/* Binds ports that need privileges, of the backend's addresses in @config, and opens what else needs them, in the backend's
 * own process before it gives them up. */
void hand_over_ports(const struct config *config);

#endif
