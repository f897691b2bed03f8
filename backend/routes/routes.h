/* SPDX-License-Identifier: Apache-2.0 */
/* The paths that hearth serves, for code that starts a server. */
#ifndef HEARTH_BACKEND_ROUTES_ROUTES_H
#define HEARTH_BACKEND_ROUTES_ROUTES_H

struct routes;

extern const struct routes http_routes;

#endif
