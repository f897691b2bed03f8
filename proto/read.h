/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles in other people's formats, recognised by their content alone. Input is hostile: every reader is bounded by a
 * fixed multiple of its input, and says where it stopped. Stateless; any thread.
 */
#ifndef HEARTH_PROTO_READ_H
#define HEARTH_PROTO_READ_H

#include "proto/otlp.h"

struct builder;

/* A format that is read. The readers: 0 with one reference in *@ret; -EBADMSG with @error saying what is wrong and at which
 * byte or line; -ENOMEM. */
struct read_format {
	const char *name; /* "pprof": for messages */
	/* Does @data (not empty) look like it? Cheap and without side effects. */
	bool (*fits)(const uint8_t *data, size_t len);
	int (*read)(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *error);
};

/* The format of @data; NULL when it looks like none. What looks like OTLP's protobuf counts as that: see otlp_read(). */
const struct read_format *read_format_of(const uint8_t *data, size_t len);

int pprof_read(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *error);
int folded_read(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *error);
int speedscope_read(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *error);
int perf_script_read(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *error);

bool pprof_fits(const uint8_t *data, size_t len);
bool folded_fits(const uint8_t *data, size_t len);
bool speedscope_fits(const uint8_t *data, size_t len);
bool perf_script_fits(const uint8_t *data, size_t len);

/* Writes the message; returns -EBADMSG. */
int read_fail(struct otlp_error *error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The first key of the JSON object @data that is one of @keys (NULL-terminated): its place there; -1: none, or no object. */
int read_json_key(const uint8_t *data, size_t len, const char *const *keys);

/* --- for the readers of text --- */

/* Lines without their ends ("\n" or "\r\n"). Start with @at at the text's begin and @number 0. */
struct read_lines {
	const char *at, *end;
	uint64_t number; /* of the line at hand, from 1 */
};

/* False at the end. */
bool read_line(struct read_lines *lines, struct str *ret);

/* Without blanks and tabs at both ends. */
struct str read_trimmed(struct str s);

/* Decimal digits up to INT64_MAX, nothing else. */
bool read_number(struct str s, int64_t *ret);

/* Finishes: 0 and the profiles of @b, which is freed, or -ENOMEM. @start_ns and @end_ns as for builder_freeze(). */
int read_freeze(struct builder *b, bool failed, uint64_t start_ns, uint64_t end_ns, struct profiles **ret);

#endif
