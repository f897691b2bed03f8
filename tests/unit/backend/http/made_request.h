/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that never came over a connection: its headers are what the test says. libmicrohttpd's look-up of headers, and
 * its adding of headers to an answer, are the test's; so a test that includes this starts no server. Include it after
 * cmocka.
 */
#ifndef HEARTH_TESTS_MADE_REQUEST_H
#define HEARTH_TESTS_MADE_REQUEST_H

#include <string.h>
#include <strings.h>

#include "backend/http/http.h"
#include "base/cleanup.h"

enum { MADE_HEADERS = 8 };

static struct made_header {
	const char *name, *value;
} made_headers[MADE_HEADERS]; /* of the request */

static struct buf made_answer; /* the headers of the answer, "NAME: VALUE\n" each */
static unsigned made_room;     /* so many more can be added to it */

const char *MHD_lookup_connection_value(struct MHD_Connection *connection, enum MHD_ValueKind kind, const char *key)
{
	(void)connection;
	for (size_t i = 0; i < MADE_HEADERS && kind == MHD_HEADER_KIND; i++)
		if (made_headers[i].name && strcasecmp(made_headers[i].name, key) == 0)
			return made_headers[i].value;
	return NULL;
}

enum MHD_Result MHD_add_response_header(struct MHD_Response *response, const char *header, const char *content)
{
	(void)response;
	if (!made_room)
		return MHD_NO;
	made_room--;
	buf_printf(&made_answer, "%s: %s\n", header, content);
	return MHD_YES;
}

/* Gives the request one header; a value of NULL: none. */
static inline void made_header(const char *name, const char *value)
{
	memset(made_headers, 0, sizeof(made_headers));
	made_headers[0] = (struct made_header){ value ? name : NULL, value };
}

static struct server made_server;
static struct connection made_connection = { .server = &made_server };

static inline struct request made_request(void)
{
	return (struct request){ .server = &made_server, .connection = &made_connection };
}

#endif
