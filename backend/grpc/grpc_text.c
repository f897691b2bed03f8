/* SPDX-License-Identifier: Apache-2.0 */
/* Header and trailer values of "gRPC over HTTP2". No state; reads outside bytes and trusts nothing of them. */
#include "backend/grpc/grpc_text.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text/base64.h"

enum { TIMEOUT_MAX_DIGITS = 8 };

#define MEDIA_TYPE "application/grpc"
#define PROTO	   "+proto"

int grpc_parse_timeout(const char *text, size_t len, uint64_t *ns_ret)
{
	static const struct {
		char letter;
		uint64_t ns;
	} units[] = {
		{ 'H', 3600 * NSEC_PER_SEC },
		{ 'M', 60 * NSEC_PER_SEC },
		{ 'S', NSEC_PER_SEC },
		{ 'm', NSEC_PER_MSEC },
		{ 'u', 1000 },
		{ 'n', 1 },
	};
	uint64_t value = 0;
	size_t digits = 0;

	while (digits < len && text[digits] >= '0' && text[digits] <= '9' && digits < TIMEOUT_MAX_DIGITS)
		value = value * 10 + (uint64_t)(text[digits++] - '0');
	if (digits == 0 || digits + 1 != len)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].letter == text[digits]) {
			if (__builtin_mul_overflow(value, units[i].ns, ns_ret))
				*ns_ret = UINT64_MAX; /* 99999999H is beyond: for ever */
			return 0;
		}
	}
	return -EINVAL;
}

bool grpc_is_content_type(const char *text, size_t len)
{
	const char *end = memchr(text, ';', len);

	if (end)
		len = (size_t)(end - text);
	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	if (len < strlen(MEDIA_TYPE) || strncasecmp(text, MEDIA_TYPE, strlen(MEDIA_TYPE)) != 0)
		return false;
	return len == strlen(MEDIA_TYPE) ||
	       (len == strlen(MEDIA_TYPE PROTO) && strncasecmp(text + strlen(MEDIA_TYPE), PROTO, strlen(PROTO)) == 0);
}

void grpc_append_message(const char *text, struct buf *out)
{
	buf_percent(out, text, strlen(text), " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~");
}

void grpc_append_base64(const void *data, size_t len, struct buf *out)
{
	base64_append(out, data, len);
	while (out->len && out->data[out->len - 1] == '=')
		out->len--;
}
