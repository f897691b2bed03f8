/* SPDX-License-Identifier: Apache-2.0 */
/* What a client says it can take, and what it has already. Any thread that owns the request. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backend/http.h"

static const char *skip(const char *text, const char *of)
{
	return text + strspn(text, of);
}

/* "gzip;q=0" refuses what "*" would allow. */
static bool has_weight(const char *item, size_t len)
{
	for (const char *p = item; (p = memchr(p, ';', len - (size_t)(p - item))); p++) {
		const char *name = skip(p + 1, " \t");
		if ((name[0] == 'q' || name[0] == 'Q') && name[1] == '=')
			return strtod(name + 2, NULL) > 0;
	}
	return true;
}

bool request_takes_gzip(const struct request *r)
{
	const char *next = request_header(r, MHD_HTTP_HEADER_ACCEPT_ENCODING);
	bool any = false;
	while (next && *next) {
		const char *item = skip(next, ", \t");
		size_t len = strcspn(item, ","), name = strcspn(item, ",; \t");
		if (name == 4 && strncasecmp(item, "gzip", 4) == 0)
			return has_weight(item, len);
		if (name == 1 && item[0] == '*')
			any = has_weight(item, len);
		next = item + len;
	}
	return any;
}

/* Weak comparison: a "W/" before a tag is no difference. */
bool request_has_copy(const struct request *r, const char *etag)
{
	const char *next = request_header(r, MHD_HTTP_HEADER_IF_NONE_MATCH);
	size_t want = strlen(etag);
	while (next && *next) {
		const char *item = skip(next, ", \t");
		if (strncmp(item, "W/", 2) == 0)
			item += 2;
		size_t len = strcspn(item, ", \t");
		if ((len == 1 && item[0] == '*') || (len == want && memcmp(item, etag, len) == 0))
			return true;
		next = item + len;
	}
	return false;
}
