/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of collectors. Every form becomes an http or https URL first; libcurl's parser judges that, and what messages
 * show is made of its parts. Defaults are those of the OTLP exporter specification.
 */
#include "sinks/otlp/endpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/curl.h"
#include "base/text/parse.h"

#define HTTP_PATH   "/v1development/profiles"
#define GRPC_PATH   "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define GRPC_PORT   "4317"
#define UNIX_PREFIX "unix:"

static const struct {
	const char *http, *grpc;
} other_paths[OTLP_OTHERS] = {
	[OTLP_LOGS] = { "/v1/logs", "/opentelemetry.proto.collector.logs.v1.LogsService/Export" },
	[OTLP_METRICS] = { "/v1/metrics", "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" },
	[OTLP_TRACES] = { "/v1/traces", "/opentelemetry.proto.collector.trace.v1.TraceService/Export" },
};

struct scheme {
	const char *name;
	bool is_grpc, tls;
};

static const struct scheme schemes[] = {
	{ "http", false, false },
	{ "https", false, true },
	{ "grpc", true, false },
	{ "grpcs", true, true },
};

/* One part of @parsed; NULL when it is not there. curl_free() it. */
static char *part_of(CURLU *parsed, CURLUPart part)
{
	char *text = NULL;

	return curl_url_get(parsed, part, &text, 0) == CURLUE_OK ? text : NULL;
}

/* The whole of @parsed in our own memory. */
static int whole_url(CURLU *parsed, char **ret)
{
	char *text = part_of(parsed, CURLUPART_URL);

	*ret = text ? strdup(text) : NULL;
	curl_free(text);
	return *ret ? 0 : -ENOMEM;
}

static int describe(struct otlp_endpoint *e, CURLU *parsed)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	char *host, *port;

	curl_url_set(parsed, CURLUPART_USER, NULL, 0);
	curl_url_set(parsed, CURLUPART_PASSWORD, NULL, 0);
	if (e->unix_path) {
		buf_printf(&text, UNIX_PREFIX "%s", e->unix_path);
	} else if (e->protocol == OTLP_GRPC) {
		host = part_of(parsed, CURLUPART_HOST);
		port = part_of(parsed, CURLUPART_PORT);
		buf_printf(&text, "grpc%s://%s%s%s", e->tls ? "s" : "", host ? host : "", port ? ":" : "", port ? port : "");
		curl_free(host);
		curl_free(port);
	} else {
		return whole_url(parsed, &e->display);
	}
	e->display = text.failed ? NULL : strdup(buf_text(&text));
	return e->display ? 0 : -ENOMEM;
}

/* The part of @url behind the host: a path, a query. */
static const char *behind_host(const char *url)
{
	const char *host = strstr(url, "://") + 3;

	return host + strcspn(host, "/?#");
}

/* Fills in what @url leaves out. @own_form: it was written in one of gRPC's own forms. */
static int complete(struct otlp_endpoint *e, CURLU *parsed, const char *url, bool own_form)
{
	const char *rest = behind_host(url);
	bool no_path = strcmp(rest, "") == 0 || strcmp(rest, "/") == 0;
	char *port = part_of(parsed, CURLUPART_PORT);
	CURLUcode code = CURLUE_OK;

	if (own_form && e->protocol == OTLP_GRPC && !port)
		code = curl_url_set(parsed, CURLUPART_PORT, GRPC_PORT, 0);
	curl_free(port);
	if (own_form && e->protocol == OTLP_GRPC && !no_path)
		return -EINVAL;
	if (code == CURLUE_OK && e->protocol == OTLP_GRPC) {
		curl_url_set(parsed, CURLUPART_QUERY, NULL, 0);
		code = curl_url_set(parsed, CURLUPART_PATH, GRPC_PATH, 0);
	} else if (code == CURLUE_OK && no_path) {
		code = curl_url_set(parsed, CURLUPART_PATH, HTTP_PATH, 0);
	}
	curl_url_set(parsed, CURLUPART_FRAGMENT, NULL, 0);
	return code == CURLUE_OK ? 0 : -ENOMEM;
}

/* Finds the addresses of the other signals from the path in @parsed. */
static int find_others(struct otlp_endpoint *e, CURLU *parsed)
{
	char *path = part_of(parsed, CURLUPART_PATH);
	size_t len = path ? strlen(path) : 0, own = strlen(HTTP_PATH);
	bool is_known = e->protocol == OTLP_GRPC || (len >= own && !strcmp(path + len - own, HTTP_PATH));
	int error = 0;

	for (size_t i = 0; i < OTLP_OTHERS && is_known && !error; i++) {
		AUTO(buf_fini) struct buf other = BUF_EMPTY;

		if (e->protocol == OTLP_GRPC)
			buf_puts(&other, other_paths[i].grpc);
		else
			buf_printf(&other, "%.*s%s", (int)(len - own), path, other_paths[i].http);
		error = other.failed || curl_url_set(parsed, CURLUPART_PATH, buf_text(&other), 0) != CURLUE_OK
				? -ENOMEM
				: whole_url(parsed, &e->others[i]);
	}
	if (path && curl_url_set(parsed, CURLUPART_PATH, path, 0) != CURLUE_OK)
		error = -ENOMEM;
	curl_free(path);
	return error;
}

static int parse_url(struct otlp_endpoint *e, const char *url, bool own_form)
{
	CURLU *parsed = curl_url();
	CURLUcode code = parsed ? curl_url_set(parsed, CURLUPART_URL, url, 0) : CURLUE_OUT_OF_MEMORY;
	int error = code == CURLUE_OK ? 0 : code == CURLUE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;

	if (!error)
		error = complete(e, parsed, url, own_form);
	if (!error)
		error = whole_url(parsed, &e->url);
	if (!error)
		error = find_others(e, parsed);
	if (!error)
		error = describe(e, parsed);
	curl_url_cleanup(parsed);
	return error;
}

static int init_unix(struct otlp_endpoint *e, const char *path, enum otlp_protocol protocol)
{
	struct sockaddr_un address;

	if (strncmp(path, "//", 2) == 0) /* unix:///PATH is as good */
		path += 2;
	if (!*path || strlen(path) >= sizeof(address.sun_path) || parse_has_control(path))
		return -EINVAL;
	e->protocol = protocol == OTLP_BY_URL ? OTLP_GRPC : protocol;
	e->unix_path = strdup(path);
	return e->unix_path ? parse_url(e, "http://localhost", false) : -ENOMEM;
}

static int init_url(struct otlp_endpoint *e, const char *text, enum otlp_protocol protocol, bool insecure)
{
	const char *colon = strstr(text, "://");
	struct scheme scheme = { .is_grpc = protocol == OTLP_BY_URL, .tls = !insecure };
	AUTO(buf_fini) struct buf url = BUF_EMPTY;
	size_t i, len = colon ? (size_t)(colon - text) : 0;

	for (i = 0; colon && i < ARRAY_LEN(schemes); i++)
		if (strlen(schemes[i].name) == len && strncasecmp(schemes[i].name, text, len) == 0)
			break;
	if (colon && i == ARRAY_LEN(schemes))
		return -EPROTONOSUPPORT;
	if (colon)
		scheme = schemes[i];
	e->tls = scheme.tls;
	e->protocol = scheme.is_grpc ? OTLP_GRPC : protocol == OTLP_BY_URL ? OTLP_HTTP_PROTOBUF : protocol;
	buf_printf(&url, "%s://%s", e->tls ? "https" : "http", colon ? colon + 3 : text);
	return url.failed ? -ENOMEM : parse_url(e, buf_text(&url), !colon || scheme.is_grpc);
}

int otlp_endpoint_init(struct otlp_endpoint *e, const char *text, enum otlp_protocol protocol, bool insecure)
{
	int error;

	*e = (struct otlp_endpoint){ 0 };
	if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
		error = init_unix(e, text + strlen(UNIX_PREFIX), protocol);
	else
		error = *text ? init_url(e, text, protocol, insecure) : -EINVAL;
	if (error)
		otlp_endpoint_fini(e);
	return error;
}

void otlp_endpoint_fini(struct otlp_endpoint *e)
{
	free(e->url);
	for (size_t i = 0; i < OTLP_OTHERS; i++)
		free(e->others[i]);
	free(e->display);
	free(e->unix_path);
	*e = (struct otlp_endpoint){ 0 };
}
