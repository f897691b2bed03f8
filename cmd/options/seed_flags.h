/* SPDX-License-Identifier: Apache-2.0 */
/* The lazy backend's flags, so that `hearth serve` drops in for it. */
#ifndef HEARTH_CMD_OPTIONS_SEED_FLAGS_H
#define HEARTH_CMD_OPTIONS_SEED_FLAGS_H

struct buf;

struct seed_flags {
	int argc;
	char **argv; /* owned, as are its strings; NULL: nothing was to be rewritten */
};

/*
 * Writes @argv in hearth's own options when it holds one of the lazy backend's flags, in Go's way: one dash or two, the
 * value behind '=' or as the next word. The lazy backend's defaults come with them: all addresses, printing. 0; -EINVAL with
 * what is wrong in @error; -ENOMEM. seed_flags_fini() either way.
 */
int seed_flags_rewrite(int argc, char **argv, struct seed_flags *ret, struct buf *error);
void seed_flags_fini(struct seed_flags *f);

#endif
