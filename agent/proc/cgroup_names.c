/* SPDX-License-Identifier: Apache-2.0 */
/* Any line may tell: the pod is in all trees of version 1 alike, the unit in that of systemd (name=systemd) or version 2. */
#include "agent/proc/cgroup_names.h"

#include <ctype.h>
#include <string.h>

enum { UID_DIGITS = 32 };

struct folder {
	const char *name;
	size_t len;
};

static bool ends_in(struct folder f, const char *suffix)
{
	size_t len = strlen(suffix);

	return f.len > len && !memcmp(f.name + f.len - len, suffix, len);
}

/* Calls @fn for each folder of each path, from the outermost in, until it returns false. */
static void for_each_folder(const char *text, size_t len, bool (*fn)(void *arg, struct folder f), void *arg)
{
	const char *end = text + len;

	for (const char *line = text, *next; line < end; line = next) {
		const char *newline = memchr(line, '\n', (size_t)(end - line)), *stop = newline ? newline : end;
		const char *at = memchr(line, ':', (size_t)(stop - line)); /* hierarchy:controllers:path */

		next = newline ? newline + 1 : end;
		at = at ? memchr(at + 1, ':', (size_t)(stop - at - 1)) : NULL;
		while (at && at < stop) {
			const char *begin = at + 1, *slash = memchr(begin, '/', (size_t)(stop - begin));

			at = slash ? slash : stop;
			if (at > begin && !fn(arg, (struct folder){ begin, (size_t)(at - begin) }))
				return;
		}
	}
}

/* --- pods --- */

struct uid_search {
	char *uid;
	bool is_in_pods, is_found;
};

/* 8-4-4-4-12 hexadecimal digits, or 32 of them without dashes. */
static bool copy_uid(const char *text, size_t len, char *out)
{
	size_t digits = 0, dashes = 0;

	if (len >= POD_UID_BYTES)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool is_dash = text[i] == '-' || text[i] == '_';

		digits += isxdigit((unsigned char)text[i]) != 0;
		dashes += is_dash;
		out[i] = is_dash ? '-' : text[i];
	}
	out[len] = '\0';
	return digits == UID_DIGITS && digits + dashes == len && (dashes == 0 || dashes == 4);
}

static bool look_for_uid(void *arg, struct folder f)
{
	struct uid_search *s = arg;
	const char *pod;

	s->is_in_pods |= memmem(f.name, f.len, "kubepods", 8) != NULL;
	if (!s->is_in_pods)
		return true;
	if (f.len > 3 && !memcmp(f.name, "pod", 3)) {
		s->is_found = copy_uid(f.name + 3, f.len - 3, s->uid);
	} else if (ends_in(f, ".slice")) {
		pod = memmem(f.name, f.len, "-pod", 4);
		s->is_found = pod && copy_uid(pod + 4, (size_t)(f.name + f.len - 6 - (pod + 4)), s->uid);
	}
	return !s->is_found;
}

bool cgroup_names_pod_uid(const char *text, size_t len, char uid_ret[static POD_UID_BYTES])
{
	struct uid_search s = { .uid = uid_ret };

	for_each_folder(text, len, look_for_uid, &s);
	return s.is_found;
}

/* --- units --- */

static bool look_for_unit(void *arg, struct folder f)
{
	struct folder *unit = arg;

	if ((ends_in(f, ".service") || ends_in(f, ".scope")) && f.len < UNIT_NAME_BYTES)
		*unit = f;
	return true;
}

bool cgroup_names_unit(const char *text, size_t len, char unit_ret[static UNIT_NAME_BYTES])
{
	struct folder unit = { "", 0 };

	for_each_folder(text, len, look_for_unit, &unit);
	memcpy(unit_ret, unit.name, unit.len);
	unit_ret[unit.len] = '\0';
	return unit.len && !memchr(unit_ret, '\0', unit.len);
}
