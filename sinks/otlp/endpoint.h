/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed collector address: where requests go, and how they are framed. */
#ifndef HEARTH_SINKS_OTLP_ENDPOINT_H
#define HEARTH_SINKS_OTLP_ENDPOINT_H

#include <stdbool.h>

#include "sinks/sinks.h"

struct otlp_endpoint {
	enum otlp_protocol protocol; /* never OTLP_BY_URL */
	bool tls;
	char *url;		   /* for libcurl: http or https, with the path and with credentials, if any */
	char *others[OTLP_OTHERS]; /* the same for the other signals; NULL: it cannot be told where they go */
	char *display;		   /* for messages: without credentials */
	char *unix_path;	   /* of the socket to connect to instead of the URL's host; or NULL */
};

/*
 * @text: http(s)://HOST[:PORT][/PATH], grpc(s)://HOST[:PORT], HOST[:PORT] or unix:PATH. A scheme of grpc decides; else
 * @protocol does; else http is OTLP/HTTP with protobuf and the others are gRPC. HOST:PORT is TLS unless @insecure. Without a
 * port, gRPC's own forms mean 4317. An absent path, or /, is OTLP's /v1development/profiles; a path of /. is the root
 * itself. gRPC has a path of its own, so that an http URL's is of no account there.
 *
 * If the path ends as a profile's does, the other signals go to their own path in its place; with another path they go
 * nowhere.
 *
 * 0; -EINVAL: no address, or a path where there can be none; -EPROTONOSUPPORT: another scheme; -ENOMEM.
 */
int otlp_endpoint_init(struct otlp_endpoint *e, const char *text, enum otlp_protocol protocol, bool insecure);
void otlp_endpoint_fini(struct otlp_endpoint *e);

#endif
