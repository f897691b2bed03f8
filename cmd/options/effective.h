/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration that counts, whatever of flags, environment, file and defaults it is from. */
#ifndef HEARTH_CMD_OPTIONS_EFFECTIVE_H
#define HEARTH_CMD_OPTIONS_EFFECTIVE_H

struct buf;
struct config;

/* Appends "NAME: VALUE" for each option of @config's command that has a value, a line each, in the words of the
 * configuration file. Passwords in addresses and the values of headers are left out. */
void effective_write(const struct config *config, struct buf *out);

/* Logs these lines, for --verbose alone. */
void effective_log(const struct config *config);

#endif
