/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of files, for the query API's exports. */
#ifndef HEARTH_CMD_FILES_EXPORTS_H
#define HEARTH_CMD_FILES_EXPORTS_H

#include "backend/api/api.h"

extern const struct api_export exports;

#endif
