/* SPDX-License-Identifier: Apache-2.0 */
/* The encodings that a client says it can take, and the version of an answer that it has already. Any thread that owns the
 * request. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backend/http/http.h"
#include "base/cleanup.h"

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

/* The media type without its parameters, as we name it in the answer; NULL: none that we speak. */
static const char *otlp_content_type(const char *value)
{
	static const char *const spoken[] = { "application/x-protobuf", "application/protobuf", CONTENT_TYPE_JSON };
	size_t len = value ? strcspn(value, "; \t") : 0;
	for (size_t i = 0; i < ARRAY_LEN(spoken); i++)
		if (len == strlen(spoken[i]) && strncasecmp(value, spoken[i], len) == 0)
			return spoken[i];
	return NULL;
}

/* False: an encoding that we do not speak. */
static bool content_encoding(const char *value, enum ingest_encoding *ret)
{
	*ret = ENCODING_IDENTITY;
	if (!value || !value[0] || strcasecmp(value, "identity") == 0)
		return true;
	*ret = strcasecmp(value, "zstd") == 0 ? ENCODING_ZSTD : ENCODING_GZIP;
	return *ret == ENCODING_ZSTD || strcasecmp(value, "gzip") == 0;
}

bool request_encoding(struct request *r, enum ingest_encoding *ret)
{
	const char *encoding = request_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING);

	if (content_encoding(encoding, ret))
		return true;
	reply_refuse(r, MHD_HTTP_BAD_REQUEST, REJECTED_ENCODING,
		     "content encoding '%.64s' is not supported: send gzip, zstd or identity", encoding);
	return false;
}

bool request_speaks(struct request *r)
{
	r->content_type = otlp_content_type(request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE));
	if (r->content_type && strcmp(r->content_type, CONTENT_TYPE_JSON) == 0)
		r->ingest.format = FORMAT_JSON;
	return r->content_type;
}
