/* SPDX-License-Identifier: Apache-2.0 */
/* The options that select and group samples, and those of what is shown, as report and diff share them. */
#ifndef HEARTH_CMD_SETUP_VIEW_OF_H
#define HEARTH_CMD_SETUP_VIEW_OF_H

#include "proto/report/report.h"

struct config;

/* The view that @config asks for; NULL after a message, with *@status_ret the exit status. The caller's. */
struct view *view_of(const struct config *config, int *status_ret);

/* Did every pattern of @view come to a decision on every name it was asked about? If not, says so: what was found is not
 * all. */
bool view_is_decided(const struct view *view, const struct config *config);

/* Does @config leave anything out, or group? The option is named in the result; NULL: no. */
const char *view_option_given(const struct config *config);

/* Columns and colour as standard output and --color have them, the rest as @config says. */
struct report_style view_style_of(const struct config *config);

#endif
