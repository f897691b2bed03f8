/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment's part of the configuration. HEARTH_ variables hold what the flag would (a repeated option: one value a
 * line). OpenTelemetry's have forms of their own, which are turned into the text of the flag first.
 * OTEL_EXPORTER_OTLP_PROFILES_X goes before OTEL_EXPORTER_OTLP_X.
 */
#include "cmd/options/environment.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/process/attributes.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/options/options.h"

/* Lines of @text into the list of @spec. */
static int set_lines(const struct option_spec *spec, const char *text, const char *origin, struct config *config,
		     struct buf *error)
{
	AUTO_FREE char *copy = strdup(text);
	char *rest = copy, *line;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	while (!err && (line = strsep(&rest, "\n"))) {
		if (*line)
			err = option_set(spec, line, origin, config, error);
	}
	return err ? err : 1;
}

static int set_from(const struct option_spec *spec, const char *text, const char *origin, struct config *config,
		    struct buf *error)
{
	int err;

	if (spec->kind == OPTION_LIST)
		return set_lines(spec, text, origin, config, error);
	err = option_set(spec, text, origin, config, error);
	return err ? err : 1;
}

/* --- OpenTelemetry's forms into ours; -EINVAL when @text is not what the variable takes --- */

/* The start of the host in an http URL; NULL for other forms, which have no path. */
static const char *http_host(const char *text)
{
	size_t len = strcspn(text, ":");

	return (len == 4 || len == 5) && !strncasecmp(text, "https", len) && !strncmp(text + len, "://", 3) ? text + len + 3
													    : NULL;
}

/* The base URL of all signals: the signal's path is appended. (gRPC has a path of its own and drops this one.) */
static int convert_endpoint(const char *text, struct buf *out)
{
	size_t len = strlen(text);

	if (!http_host(text)) {
		buf_puts(out, text);
		return 0;
	}
	while (len && text[len - 1] == '/')
		len--;
	buf_append(out, text, len);
	buf_puts(out, "/v1development/profiles");
	return 0;
}

/* This signal's own URL is taken as it is: without a path it means the root, which our flag would complete. */
static int convert_own_endpoint(const char *text, struct buf *out)
{
	const char *host = http_host(text), *path = host ? strchr(host, '/') : NULL;

	buf_puts(out, text);
	if (host && !path)
		buf_puts(out, "/.");
	else if (host && !path[1])
		buf_putc(out, '.');
	return 0;
}

static int convert_timeout(const char *text, struct buf *out)
{
	bool is_negative = *text == '-';

	if (!text[is_negative] || text[is_negative + strspn(text + is_negative, "0123456789")])
		return -EINVAL;
	if (is_negative) /* the specification: warn, and take the default, which stands in the table */
		log_warn("OpenTelemetry's variable for the time-out is '%s', less than nothing: it does not count", text);
	else
		buf_printf(out, "%sms", text);
	return 0;
}

/* A boolean there is true in one spelling, and false in all others. */
static int convert_bool(const char *text, struct buf *out)
{
	buf_puts(out, strcasecmp(text, "true") ? "no" : "yes");
	return 0;
}

static int append_unquoted(const char *text, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '%' && i + 2 < len && isxdigit((unsigned char)text[i + 1]) &&
		    isxdigit((unsigned char)text[i + 2])) {
			char hex[3] = { text[i + 1], text[i + 2], '\0' };

			c = (char)strtoul(hex, NULL, 16);
			i += 2;
		}
		if (iscntrl((unsigned char)c))
			return -EINVAL;
		buf_putc(out, c);
	}
	return 0;
}

/* "name=value,name=value", percent-encoded, into "name: value" lines. */
static int convert_headers(const char *text, struct buf *out)
{
	for (const char *p = text; *p; p += *p == ',') {
		size_t len, name_len;

		p += strspn(p, " \t");
		len = strcspn(p, ",");
		name_len = strcspn(p, "=");
		if (len && (name_len == 0 || name_len >= len))
			return -EINVAL;
		if (len) {
			if (append_unquoted(p, name_len, out))
				return -EINVAL;
			buf_puts(out, ": ");
			if (append_unquoted(p + name_len + 1, len - name_len - 1, out))
				return -EINVAL;
			buf_putc(out, '\n');
		}
		p += len;
	}
	return 0;
}

/* A malformed text is left out whole, with a warning, as the specification says. */
static int convert_attributes(const char *text, struct buf *out)
{
	struct attributes parsed = ATTRIBUTES_EMPTY;
	int error = attributes_parse(&parsed, str_z(text));

	attributes_fini(&parsed);
	if (error == -EINVAL)
		log_warn("OTEL_RESOURCE_ATTRIBUTES is '%s', not KEY=VALUE,...: it does not count", text);
	else
		buf_puts(out, text);
	return 0;
}

struct otel_variable {
	const char *suffix; /* behind OTEL_EXPORTER_OTLP_ and OTEL_EXPORTER_OTLP_PROFILES_, or the whole where it is no
			       exporter's */
	const char *option; /* name of ours */
	unsigned commands;  /* where it counts */
	int (*convert_general)(const char *text, struct buf *out); /* NULL: the text as it is */
	int (*convert_profiles)(const char *text, struct buf *out);
	const char *form;
	bool is_whole; /* @suffix is the whole name */
};

/* The endpoint is where applications send: a receiver that read it could be told to send to itself. */
static const struct otel_variable otel_variables[] = {
	{ "ENDPOINT", "collector", ON_RUN, convert_endpoint, convert_own_endpoint, "a URL", false },
	{ "HEADERS", "collector-header", ON_RUN | ON_SERVE, convert_headers, convert_headers, "NAME=VALUE,...", false },
	{ "TIMEOUT", "collector-timeout", ON_RUN | ON_SERVE, convert_timeout, convert_timeout, "a number of milliseconds",
	  false },
	{ "COMPRESSION", "collector-compression", ON_RUN | ON_SERVE, NULL, NULL, "gzip, zstd or none", false },
	{ "PROTOCOL", "collector-protocol", ON_RUN | ON_SERVE, NULL, NULL, "a protocol", false },
	{ "INSECURE", "collector-insecure", ON_RUN | ON_SERVE, convert_bool, convert_bool, "true or false", false },
	{ "CERTIFICATE", "collector-ca", ON_RUN | ON_SERVE, NULL, NULL, "a file", false },
	{ "CLIENT_CERTIFICATE", "collector-cert", ON_RUN | ON_SERVE, NULL, NULL, "a file", false },
	{ "CLIENT_KEY", "collector-key", ON_RUN | ON_SERVE, NULL, NULL, "a file", false },
	{ "OTEL_SERVICE_NAME", "service-name", ON_AGENT, NULL, NULL, "a name", true },
	{ "OTEL_RESOURCE_ATTRIBUTES", "resource-attributes", ON_AGENT, NULL, convert_attributes, "KEY=VALUE,...", true },
	{ "HOST_PROC", "proc", ON_AGENT | ON_CHECK, NULL, NULL, "a folder",
	  true }, /* node_exporter's, and the Collector's */
};

static const struct otel_variable *find_otel(const struct cmd *cmd, const struct option_spec *spec)
{
	for (size_t i = 0; i < ARRAY_LEN(otel_variables); i++) {
		if (otel_variables[i].commands & cmd->bit && !strcmp(otel_variables[i].option, spec->name))
			return &otel_variables[i];
	}
	return NULL;
}

int environment_otel_names(const struct cmd *cmd, const struct option_spec *spec, char names[2][64])
{
	const struct otel_variable *v = find_otel(cmd, spec);

	if (!v)
		return 0;
	if (v->is_whole)
		return snprintf(names[0], 64, "%s", v->suffix) > 0;
	snprintf(names[0], 64, "OTEL_EXPORTER_OTLP_PROFILES_%s", v->suffix);
	snprintf(names[1], 64, "OTEL_EXPORTER_OTLP_%s", v->suffix);
	return 2;
}

static int set_converted(const struct otel_variable *v, int (*convert)(const char *text, struct buf *out),
			 const struct option_spec *spec, const char *text, const char *origin, struct config *config,
			 struct buf *error)
{
	AUTO(buf_fini) struct buf ours = BUF_EMPTY;

	if (!convert)
		return set_from(spec, text, origin, config, error);
	if (convert(text, &ours)) {
		buf_printf(error, "%s: '%s' is not %s", origin, text, v->form);
		return -EINVAL;
	}
	if (!ours.failed && !ours.len)
		return 0; /* as if it were not set */
	if (ours.failed)
		return -ENOMEM;
	if (!strcmp(buf_text(&ours), text)) /* a STRING is borrowed, and the environment stays */
		return set_from(spec, text, origin, config, error);
	return set_from(spec, buf_text(&ours), origin, config, error);
}

static int set_from_otel(const struct cmd *cmd, const struct option_spec *spec, struct config *config, struct buf *error)
{
	const struct otel_variable *v = find_otel(cmd, spec);
	char names[2][64];
	int count = environment_otel_names(cmd, spec, names);

	for (int i = 0; i < count; i++) {
		const char *text = getenv(names[i]);

		if (text && *text)
			return set_converted(v, i ? v->convert_general : v->convert_profiles, spec, text, names[i], config,
					     error);
	}
	return 0;
}

int environment_set(const struct cmd *cmd, const struct option_spec *spec, struct config *config, struct buf *error)
{
	char name[OPTION_ENV_BYTES];
	const char *text = option_env_name(spec, name) ? getenv(name) : NULL;

	if (text && *text)
		return set_from(spec, text, name, config, error);
	return set_from_otel(cmd, spec, config, error);
}
