/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf bytes from a line of text, so that tables of messages can be read: "1{2:7 3'abc'}" is field 1 holding field 2 = 7
 * and field 3 = "abc". N:v varint, N=v fixed64, N'text' or N{fields} length-delimited, N[v v] packed varints, xHH one raw
 * byte.
 */
#ifndef HEARTH_TESTS_OTLP_BYTES_H
#define HEARTH_TESTS_OTLP_BYTES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static void bytes_varint(struct buf *out, uint64_t v)
{
	for (; v > 127; v >>= 7)
		buf_putc(out, (char)(v | 128));
	buf_putc(out, (char)v);
}

static void bytes_wrap(struct buf *out, const void *data, size_t len)
{
	bytes_varint(out, len);
	buf_append(out, data, len);
}

static const char *bytes_fields(const char *t, struct buf *out);

/* What follows the number of field @field. */
static const char *bytes_value(const char *t, uint64_t field, struct buf *out)
{
	struct buf inner = BUF_EMPTY;
	char *end, kind = *t++;
	uint64_t v;

	bytes_varint(out, field << 3 | (kind == ':' ? 0 : kind == '=' ? 1 : 2));
	if (kind == ':' || kind == '=') {
		v = *t == '-' ? (uint64_t)strtoll(t, &end, 0) : strtoull(t, &end, 0);
		if (kind == ':')
			bytes_varint(out, v);
		else
			buf_append(out, &v, 8);
		return end;
	}
	if (kind == '\'') {
		bytes_wrap(out, t, strcspn(t, "'"));
		return strchr(t, '\'') + 1;
	}
	if (kind == '{')
		t = bytes_fields(t, &inner);
	for (; kind == '[' && *t != ']'; t = end + (*end == ' '))
		bytes_varint(&inner, (uint64_t)strtoll(t, &end, 0));
	bytes_wrap(out, inner.data, inner.len);
	buf_fini(&inner);
	return t + 1;
}

static const char *bytes_fields(const char *t, struct buf *out)
{
	char *end;

	for (;;) {
		t += strspn(t, " ");
		if (*t == '}' || *t == '\0')
			return t;
		if (*t == 'x') {
			char hex[3] = { t[1], t[2], '\0' };

			buf_putc(out, (char)strtoul(hex, NULL, 16));
			t += 3;
		} else {
			uint64_t field = strtoull(t, &end, 0);

			t = bytes_value(end, field, out);
		}
	}
}

/* A message over most fields. */
__attribute__((unused)) static const char bytes_rich[] =
	"1{1{1{1'host.name' 2{1'h'}} 1{3:1 2{5{1{3:-5} 1{4=3} 1{6{1{1'a' 2{2:1}}}}}}} 2:3 3{1'u' 2't' 3'k' 4'd'}}"
	"2{1{1'n' 2'v' 3{1'x' 2{7'abc'}} 4:9}"
	"2{1{1:1 2:2} 2{1:1 2[1 0] 3:1 4[-1 300] 5'0123456789abcdef'} 2{5=77} 3=5 4:6 5{1:3} 6:7"
	" 7'0123456789abcdef' 8:1 9'pprof' 10'zz' 11[1]} 3'url'} 3'url2'}"
	"2{1{} 1{1:1 2:300 3:4 4:1 5[1]} 2{} 2{1:1 2:0xffffffffff 3{1:1 2:3 3:4} 3{} 4[1]} 3{} 3{1:1 2:2 3:3 4:5}"
	"4{} 4{1'0123456789abcdef' 2'01234567'} 5'' 5'one' 5'two' 5'three' 6{} 6{1:1 2{8:2} 3:3} 7{} 7{1[1 0 1]}}";

#endif
