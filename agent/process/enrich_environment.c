/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service that the environment of a process names, all of OTEL_RESOURCE_ATTRIBUTES, and the variables that the user
 * chose. An environment is NAME=VALUE, with a NUL behind each.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/process/enrich.h"
#include "base/cleanup.h"

/* Returns the value of @name in the entry @text of @len bytes. */
static bool is_variable(const char *text, size_t len, const char *name, struct str *value_ret)
{
	size_t name_len = strlen(name);

	if (len <= name_len || text[name_len] != '=' || memcmp(text, name, name_len))
		return false;
	*value_ret = (struct str){ text + name_len + 1, (uint32_t)(len - name_len - 1) };
	return true;
}

/* The first entry counts, as for getenv(3). */
static struct str find_variable(const char *text, size_t len, const char *name)
{
	struct str value = STR("");

	for (size_t at = 0, entry; at < len; at += entry + 1) {
		entry = strnlen(text + at, len - at);
		if (is_variable(text + at, entry, name, &value))
			break;
	}
	return value;
}

static int add(const struct enrich_options *options, const char *text, size_t len, struct attributes *a)
{
	struct str service = find_variable(text, len, "OTEL_SERVICE_NAME");
	struct str value = find_variable(text, len, "OTEL_RESOURCE_ATTRIBUTES");
	int error = service.len ? attributes_add(a, STR("service.name"), service) : 0;

	if (!error)
		error = attributes_parse(a, value);
	if (error == -EINVAL) /* the program's own library reports that error */
		error = 0;
	for (size_t i = 0; i < options->variable_count && !error; i++) {
		AUTO_FREE char *key = NULL;

		value = find_variable(text, len, options->variables[i]);
		if (!value.len)
			continue;
		if (asprintf(&key, "process.environment_variable.%s", options->variables[i]) < 0)
			return -ENOMEM;
		error = attributes_add(a, str_z(key), value);
	}
	return error;
}

const struct enrich enrich_environment = { .source = ENRICH_ENVIRON, .add = add };
