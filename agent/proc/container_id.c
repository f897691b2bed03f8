/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that runtimes give the control groups of their containers:
 *
 *   ID                                docker, containerd, CRI-O, kubelet with the cgroupfs driver; ECS, also ID-NUMBER
 *   PREFIX-ID.scope                   the systemd driver: docker, cri-containerd, crio, nerdctl, libpod
 *   SLICE:PREFIX:ID                   the same where systemd was asked for by a runtime that does not speak to it
 *   libpod-ID, libpod-payload-ID      podman with cgroupfs, podman in a unit of its own
 *   runc-NAME.scope, crun-NAME.scope  the low-level runtimes on their own
 *   machine-NAME.scope, systemd-nspawn@NAME.service   NAME escaped as systemd.unit(5) has it
 *   lxc.payload.NAME, lxc.payload/NAME, lxc/NAME; garden/NAME, mesos/NAME
 *
 * The runtime's own processes stand beside the container's (conmon, nspawn's supervisor, lxc.monitor) and are not in it. A
 * slice holds containers and is none itself. If containers are inside each other, the innermost counts.
 */
#include "agent/proc/container_id.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"

enum { ID_DIGITS = 64, ECS_DIGITS = 32 };

struct word {
	const char *text;
	size_t len;
};

static bool word_is(struct word w, const char *text)
{
	return w.len == strlen(text) && !memcmp(w.text, text, w.len);
}

static bool drop_prefix(struct word *w, const char *prefix)
{
	size_t len = strlen(prefix);

	if (w->len <= len || memcmp(w->text, prefix, len))
		return false;
	*w = (struct word){ w->text + len, w->len - len };
	return true;
}

static bool drop_suffix(struct word *w, const char *suffix)
{
	size_t len = strlen(suffix);

	if (w->len <= len || memcmp(w->text + w->len - len, suffix, len))
		return false;
	w->len -= len;
	return true;
}

static size_t digits(struct word w)
{
	size_t n = 0;

	while (n < w.len && (isdigit((unsigned char)w.text[n]) || (w.text[n] >= 'a' && w.text[n] <= 'f')))
		n++;
	return n;
}

static bool is_runtime_id(struct word w)
{
	size_t n = digits(w);

	if (n == ID_DIGITS)
		return w.len == n;
	if (n != ECS_DIGITS || w.len <= n + 1 || w.text[n] != '-')
		return false;
	for (n++; n < w.len; n++)
		if (!isdigit((unsigned char)w.text[n]))
			return false;
	return true;
}

/* Returns the text behind the last @separator. */
static struct word behind(struct word w, char separator)
{
	const char *at = memrchr(w.text, separator, w.len);

	return at ? (struct word){ at + 1, (size_t)(w.text + w.len - at - 1) } : w;
}

/* systemd.unit(5): \xNN is a byte. Returns its length, 0 when it does not fit or is no name. */
static size_t unescape(struct word w, char out[static CONTAINER_ID_BYTES])
{
	size_t n = 0;

	for (size_t i = 0; i < w.len; i++) {
		unsigned byte = 0;
		size_t k = 2;

		if (n + 1 >= CONTAINER_ID_BYTES || !w.text[i])
			return 0;
		if (i + 3 < w.len && w.text[i] == '\\' && w.text[i + 1] == 'x')
			for (; k < 4 && isxdigit((unsigned char)w.text[i + k]); k++)
				byte = byte * 16 + (unsigned)(isdigit((unsigned char)w.text[i + k])
								      ? w.text[i + k] - '0'
								      : tolower((unsigned char)w.text[i + k]) - 'a' + 10);
		out[n++] = k == 4 && byte ? (char)byte : w.text[i];
		i += k == 4 && byte ? 3 : 0;
	}
	out[n] = '\0';
	return n;
}

/* The name that people gave the container of @folder in @parent, still escaped. */
static bool find_name(struct word parent, struct word folder, struct word *ret)
{
	static const char *const prefixes[] = { "machine-", "runc-", "crun-" };
	static const char *const parents[] = { "lxc", "lxc.payload", "garden", "mesos" };

	*ret = folder;
	for (size_t i = 0; i < ARRAY_LEN(parents); i++)
		if (word_is(parent, parents[i]))
			return true;
	if (drop_prefix(ret, "lxc.payload."))
		return true;
	if (drop_prefix(ret, "systemd-nspawn@"))
		return drop_suffix(ret, ".service");
	if (!drop_suffix(ret, ".scope"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (drop_prefix(ret, prefixes[i]))
			return !drop_prefix(ret, "qemu\\x2d"); /* a virtual machine is no container */
	return false;
}

/* @below: the next folder of the path, empty when it ends here. */
static bool id_of_folder(struct word parent, struct word folder, struct word below, char id_ret[static CONTAINER_ID_BYTES])
{
	struct word id = folder;

	if (memmem(folder.text, folder.len, "conmon-", 7))
		return false;
	drop_suffix(&id, ".scope");
	id = behind(id, ':');
	if (!is_runtime_id(id))
		id = behind(id, '-');
	if (is_runtime_id(id)) {
		memcpy(id_ret, id.text, id.len);
		id_ret[id.len] = '\0';
		return true;
	}
	return !word_is(below, "supervisor") && find_name(parent, folder, &id) && unescape(id, id_ret);
}

bool container_id_of_folder(const char *parent, const char *name, char id_ret[static CONTAINER_ID_BYTES])
{
	return id_of_folder((struct word){ parent, strlen(parent) }, (struct word){ name, strlen(name) },
			    (struct word){ "", 0 }, id_ret);
}

/* Cuts the last folder off @path. */
static struct word last_folder(struct word *path)
{
	struct word folder;

	while (path->len && path->text[path->len - 1] == '/')
		path->len--;
	folder = behind(*path, '/');
	path->len -= folder.len;
	return folder;
}

bool container_id_of_path(const char *path, size_t len, char id_ret[static CONTAINER_ID_BYTES])
{
	struct word rest = { path, len }, folder, below = { "", 0 };

	drop_suffix(&rest, " (deleted)");
	for (; (folder = last_folder(&rest)).len; below = folder) {
		struct word above = rest;

		if (id_of_folder(last_folder(&above), folder, below, id_ret))
			return true;
	}
	return false;
}

bool container_id_of_cgroups(const char *text, size_t len, char id_ret[static CONTAINER_ID_BYTES])
{
	for (const char *end = text + len, *line = text, *next; line < end; line = next) {
		const char *newline = memchr(line, '\n', (size_t)(end - line)), *path;

		next = newline ? newline + 1 : end;
		path = memchr(line, ':', (size_t)(next - line)); /* hierarchy:controllers:path */
		path = path ? memchr(path + 1, ':', (size_t)(next - path - 1)) : NULL;
		if (path && container_id_of_path(path + 1, (size_t)((newline ? newline : end) - path - 1), id_ret))
			return true;
	}
	return false;
}
