/* SPDX-License-Identifier: Apache-2.0 */
/* Advice on what to install for better names. */
#ifndef HEARTH_CMD_SETUP_ADVICE_H
#define HEARTH_CMD_SETUP_ADVICE_H

struct buf;

/* Gives advice for the file @path with GNU build id @build_id ("": none), as a modules_advise_fn. Looks at this machine: the
 * file's package is named where it is the same file here. */
void advice_debug_files(void *arg, const char *path, const char *build_id, struct buf *out);

#endif
