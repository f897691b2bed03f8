/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the host are read through its first process, whose root is the host's where hearth sees the host's processes: in
 * a container that does not see them /etc describes the image.
 */
#include "agent/report/host_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/proc/proc_root.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { MAX_FILE_BYTES = 16 << 10 };

/* Reads @path of the host, or our own if that is not allowed. False: there is no such file, or it is empty. */
static bool read_host_file(const char *path, struct buf *out)
{
	char first[PROC_PATH_BYTES];
	const char *const roots[] = { proc_path(first, 1, "root"), "" };

	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		AUTO_FREE char *full = NULL;

		if (asprintf(&full, "%s%s", roots[i], path) < 0)
			return false;
		buf_reset(out);
		(void)io_read_file(full, MAX_FILE_BYTES, out);
		if (out->len)
			return true;
	}
	return false;
}

/* --- os-release(5): NAME=VALUE lines; values may stand in quotes, with backslashes before $ " \ ` --- */

static void unquote(struct str value, struct buf *out)
{
	char quote = value.len >= 2 && (value.data[0] == '"' || value.data[0] == '\'') ? value.data[0] : '\0';

	if (quote && value.data[value.len - 1] == quote)
		value = (struct str){ value.data + 1, value.len - 2 };
	for (uint32_t i = 0; i < value.len; i++) {
		if (value.data[i] == '\\' && quote != '\'' && i + 1 < value.len)
			i++;
		buf_putc(out, value.data[i]);
	}
}

/* Writes the value of @name in @text into @out. */
static bool find_line(struct str text, const char *name, struct buf *out)
{
	const char *end = text.data + text.len, *newline;
	size_t name_len = strlen(name);

	for (const char *line = text.data; line < end; line = newline + 1) {
		newline = memchr(line, '\n', (size_t)(end - line));
		newline = newline ? newline : end;
		if ((size_t)(newline - line) <= name_len || line[name_len] != '=' || memcmp(line, name, name_len))
			continue;
		unquote((struct str){ line + name_len + 1, (uint32_t)(newline - line - (ptrdiff_t)name_len - 1) }, out);
		return out->len && !out->failed;
	}
	return false;
}

int host_facts_of_release(struct str text, struct attributes *a)
{
	static const struct {
		const char *name, *key;
	} keys[] = {
		{ "NAME", "os.name" },
		{ "VERSION_ID", "os.version" },
		{ "BUILD_ID", "os.build_id" },
		{ "PRETTY_NAME", "os.description" },
	};
	int error = 0;

	for (size_t i = 0; i < ARRAY_LEN(keys) && !error; i++) {
		AUTO(buf_fini) struct buf value = BUF_EMPTY;

		if (find_line(text, keys[i].name, &value))
			error = attributes_add(a, str_z(keys[i].key), (struct str){ buf_text(&value), (uint32_t)value.len });
	}
	return error;
}

/* --- the host --- */

static int add_first_line(struct attributes *a, const char *key, struct buf *text)
{
	size_t len = strcspn(buf_text(text), "\r\n");

	return len ? attributes_add(a, str_z(key), (struct str){ buf_text(text), (uint32_t)len }) : 0;
}

/* Does this process have a host name of its own? */
static bool is_in_own_uts(void)
{
	char path[PROC_PATH_BYTES], own[64] = "", host[64] = "";

	return readlink("/proc/self/ns/uts", own, sizeof(own) - 1) > 0 &&
	       readlink(proc_path(path, 1, "ns/uts"), host, sizeof(host) - 1) > 0 && strcmp(own, host) != 0;
}

/* The convention's names of CPUs. */
static const char *arch_of(const char *machine)
{
	if (!strcmp(machine, "x86_64"))
		return "amd64";
	return !strcmp(machine, "aarch64") ? "arm64" : machine;
}

int host_facts_add(struct attributes *a)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct utsname uts;
	int error = 0;

	if (read_host_file("/etc/machine-id", &text) || read_host_file("/var/lib/dbus/machine-id", &text))
		error = add_first_line(a, "host.id", &text);
	if (!error && is_in_own_uts() && read_host_file("/etc/hostname", &text))
		error = add_first_line(a, "host.name", &text);
	if (!error && !uname(&uts))
		error = attributes_add(a, STR("host.name"), str_z(uts.nodename));
	if (!error && !uname(&uts))
		error = attributes_add(a, STR("host.arch"), str_z(arch_of(uts.machine)));
	if (!error)
		error = attributes_add(a, STR("os.type"), STR("linux"));
	if (!error && (read_host_file("/etc/os-release", &text) || read_host_file("/usr/lib/os-release", &text)))
		error = host_facts_of_release((struct str){ buf_text(&text), (uint32_t)text.len }, a);
	return error;
}
