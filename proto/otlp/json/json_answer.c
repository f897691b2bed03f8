/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the few words that matter in a collector's JSON answer. The reader walks over the tokens and keeps the last key;
 * nesting does not matter, as no other field of these answers has such a name. Bytes that are no JSON end the walk.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/json_read.h"
#include "base/text/utf8.h"
#include "proto/otlp/otlp.h"

enum { MAX_KEY_BYTES = 32 };

/* The string whose opening quote is before @p; returns what is behind the closing one, or NULL. */
static const char *read_string(const char *text, const char *text_end, struct buf *out)
{
	const uint8_t *p = (const uint8_t *)text, *end = (const uint8_t *)text_end;

	buf_reset(out);
	while (p && p < end && *p != '"') {
		if (*p == '\\')
			p = json_unescape(p + 1, end, out);
		else
			buf_putc(out, (char)*p++);
	}
	return p && p < end ? (const char *)p + 1 : NULL;
}

static void take(const char *key, struct buf *value, int64_t *rejected_ret, char *message_ret, size_t message_size)
{
	AUTO(buf_fini) struct buf clean = BUF_EMPTY;

	if (strcmp(key, "rejectedProfiles") == 0) {
		*rejected_ret = strtoll(buf_text(value), NULL, 10);
	} else if (strcmp(key, "message") == 0 || strcmp(key, "errorMessage") == 0) {
		utf8_append_clean(&clean, value->data, value->len);
		snprintf(message_ret, message_size, "%.*s", (int)utf8_cut(clean.data, clean.len, message_size - 1),
			 buf_text(&clean));
	}
}

void otlp_json_decode_answer(const char *text, size_t len, int64_t *rejected_ret, char *message_ret, size_t message_size)
{
	const char *p = text, *end = text + len;
	AUTO(buf_fini) struct buf value = BUF_EMPTY;
	char key[MAX_KEY_BYTES] = "";
	bool is_value = false; /* a colon came last */

	*rejected_ret = 0;
	message_ret[0] = '\0';
	while (p && p < end) {
		size_t number = 0;

		while (p + number < end && strchr("+-.0123456789eE", p[number]) && p[number])
			number++;
		if (number) {
			buf_reset(&value);
			buf_append(&value, p, number);
			p += number;
		} else if (*p == '"') {
			p = read_string(p + 1, end, &value);
			if (p && !is_value)
				snprintf(key, sizeof(key), "%s", buf_text(&value));
		} else {
			is_value = *p == ':' || (is_value && strchr(" \t\r\n", *p) && *p);
			p++;
			continue;
		}
		if (p && is_value)
			take(key, &value, rejected_ret, message_ret, message_size);
		is_value = false;
	}
}
