/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads option values from the environment: HEARTH_ variables for every option, OpenTelemetry's standard ones for the
 * collector's. A variable that is empty counts as unset.
 */
#ifndef HEARTH_CMD_OPTIONS_ENVIRONMENT_H
#define HEARTH_CMD_OPTIONS_ENVIRONMENT_H

struct buf;
struct cmd;
struct config;
struct option_spec;

/* Returns 1 when a variable set @spec, 0 when there is none, -EINVAL with a message in @error, -ENOMEM. */
int environment_set(const struct cmd *cmd, const struct option_spec *spec, struct config *config, struct buf *error);

/* OpenTelemetry's variables for @spec under @cmd, the preferred first, at most two; returns how many. */
int environment_otel_names(const struct cmd *cmd, const struct option_spec *spec, char names[2][64]);

#endif
