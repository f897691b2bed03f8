/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Browsers' rules for pages of other origins (the Fetch standard): off unless origins were named, and for the receiver's
 * paths only. A preflight, OPTIONS with two headers, is answered without a body; every answer to an origin that was named
 * says so. Clients that are no browsers never see any of this. Loop's thread only.
 */
#include <string.h>

#include "backend/http/http.h"

#define ALLOWED_HEADERS "content-type, content-encoding, authorization, otlp-profiles-development-version"
#define MAX_AGE_S	"7200" /* seconds; browsers keep no longer */

bool cors_is_open(const struct request *r)
{
	return r->route && r->route->has_cors;
}

const char *cors_origin(const struct request *r)
{
	const char *origin = request_header(r, MHD_HTTP_HEADER_ORIGIN);
	const char *const *named = r->server->cors_origins;

	if (!origin || !named || !cors_is_open(r))
		return NULL;
	for (; *named; named++)
		if (strcmp(*named, "*") == 0 || strcmp(*named, origin) == 0)
			return *named;
	return NULL;
}

bool cors_is_preflight(const struct request *r, const char *method)
{
	return strcmp(method, MHD_HTTP_METHOD_OPTIONS) == 0 && cors_origin(r) &&
	       request_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_REQUEST_METHOD);
}

bool cors_add_headers(const struct request *r, struct MHD_Response *response)
{
	const char *origin = cors_origin(r);

	if (!origin)
		return true;
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, origin) != MHD_YES ||
	    MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Origin") != MHD_YES)
		return false;
	return r->reply.status != MHD_HTTP_NO_CONTENT ||
	       (MHD_add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_METHODS, route_allow(r->route)) ==
			MHD_YES &&
		MHD_add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS) ==
			MHD_YES &&
		MHD_add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_MAX_AGE, MAX_AGE_S) == MHD_YES);
}
