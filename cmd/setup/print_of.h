/* SPDX-License-Identifier: Apache-2.0 */
/* The --print-... options as the print sink takes them. */
#ifndef HEARTH_CMD_SETUP_PRINT_OF_H
#define HEARTH_CMD_SETUP_PRINT_OF_H

#include "sinks/sinks.h"

struct config;

/* The print options from @config. Strings and lists stay @config's. */
struct print_options print_options_of(const struct config *config);

#endif
