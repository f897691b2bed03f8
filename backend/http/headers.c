/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's headers, as libmicrohttpd hands them over. A proxy in front of us and we must agree on where each request
 * ends, or the rest of one is taken for the next (request smuggling). So a header that can be read in two ways is found
 * here; request.c refuses it and closes its connection. Loop's thread only.
 *
 * Before version 1.0 libmicrohttpd takes lines that no parser should: it ends a value at a NUL, adds a folded line to the
 * header's name, and lets lines end with a bare LF. libmicrohttpd tells none of this, but it cuts the text of a request in
 * place: line by line, each part followed by the NUL or two that it wrote over a space, a colon, or CR LF. When a part is
 * not in its place something was left out. Later versions refuse all this themselves when they are asked to be strict.
 */
#include <string.h>

#include "backend/http/http.h"

enum { CRLF_BYTES = 2 };

struct header_check {
	const char *next; /* where the next line begins, of versions that do not look themselves; else NULL */
	unsigned hosts, lengths, codings;
	bool is_chunked;
	const char *fault; /* the first, or NULL */
};

/* RFC 9110, 5.6.2: the characters that a name is made of. */
static bool is_token(const char *text, size_t len)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < len; i++)
		if (!(text[i] >= '0' && text[i] <= '9') && !((text[i] | 32) >= 'a' && (text[i] | 32) <= 'z') &&
		    (!text[i] || !strchr(others, text[i])))
			return false;
	return len > 0;
}

/* RFC 9110, 5.5: a value has no control characters but tabs. */
static bool is_value(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 127)
			return false;
	return true;
}

/* Whether @value is "chunked", with nothing but white space behind it. */
static bool is_chunked(const char *value, size_t len)
{
	static const char chunked[] = "chunked";

	while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	return len == strlen(chunked) && strncasecmp(value, chunked, len) == 0;
}

static enum MHD_Result check_header(void *arg, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value,
				    size_t value_len)
{
	struct header_check *check = arg;
	(void)kind;

	if (check->next && name != check->next)
		check->fault = "a header is folded, holds a NUL, or does not end with CR LF";
	else if (!is_token(name, name_len))
		check->fault = "a header's name holds what no name may, such as a space before its colon";
	else if (value && !is_value(value, value_len))
		check->fault = "a header's value holds a control character";
	if (check->fault)
		return MHD_NO;
	if (check->next)
		check->next = (value ? value + value_len : name + name_len + 1) + CRLF_BYTES;
	check->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
	check->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
	if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
		check->codings++;
		check->is_chunked = value && is_chunked(value, value_len);
	}
	return MHD_YES;
}

/* Whether the first line's parts are in their places, too, and the empty line behind all headers ends the text. */
static bool is_begun_well(const struct request *r, const char *method, const char *version)
{
	return method + strlen(method) + 1 == r->target && r->target_end + 1 == version;
}

static bool is_ended_well(const struct request *r, const char *method, const char *next)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->connection->mhd,
								       MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return info && method + info->header_size == next + CRLF_BYTES;
}

/* NULL when all would agree on where the body ends, else the reason: RFC 9112, 6.3. */
static const char *framing_fault(const struct header_check *check, const char *version)
{
	if (check->lengths + check->codings > 1)
		return "more than one Content-Length or Transfer-Encoding: where the body ends is not clear";
	if (check->codings && !check->is_chunked)
		return "Transfer-Encoding is not 'chunked', the only one there is here";
	if (check->codings && strcmp(version, MHD_HTTP_VERSION_1_0) == 0)
		return "HTTP/1.0 has no Transfer-Encoding";
	return NULL;
}

const char *headers_fault(const struct request *r, const char *method, const char *version, bool *has_framing_ret)
{
	struct header_check check = { .next = NULL };
	bool looks_itself = MHD_get_version()[0] != '0';

	if (!looks_itself)
		check.next = version + strlen(version) + CRLF_BYTES;
	MHD_get_connection_values_n(r->connection->mhd, MHD_HEADER_KIND, check_header, &check);
	if (!check.fault && !looks_itself && !is_begun_well(r, method, version))
		check.fault = "the first line holds a NUL, or more than single spaces";
	if (!check.fault && !looks_itself && !is_ended_well(r, method, check.next))
		check.fault = "a header is folded, holds a NUL, or does not end with CR LF";
	if (!check.fault && check.hosts > 1)
		check.fault = "more than one Host";
	if (!check.fault)
		check.fault = framing_fault(&check, version);
	*has_framing_ret = check.lengths + check.codings;
	return check.fault;
}
