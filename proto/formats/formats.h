/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats of files: how each is told, read and written. Each is one const struct in a file of the format's, listed in
 * the table below. A file that is read is recognised by its content alone. Input is hostile: every reader is bounded by a
 * fixed multiple of its input, and says where it stopped. Stateless; any thread.
 */
#ifndef HEARTH_PROTO_FORMATS_FORMATS_H
#define HEARTH_PROTO_FORMATS_FORMATS_H

#include "proto/otlp/otlp.h"

struct buf;
struct builder;
struct timeline;
struct tree;

/* What content tells a format by, the most telling first. */
enum format_sign { SIGN_KEYS, SIGN_FIELDS, SIGN_LINE, SIGN_COUNT };

struct format;

/* How a capture is made into a format that is a sum of samples, part by part. */
struct format_sum {
	void *(*make)(void);				 /* NULL without memory */
	void (*free)(void *sum);			 /* NULL is fine */
	int (*add)(void *sum, const struct profiles *p); /* 0 or -ENOMEM */
	size_t (*memory_bytes)(const void *sum);
	/* Appends the file to @out and to @left_out what the format cannot express. 0 or -errno. */
	int (*write)(void *sum, const struct format *format, struct buf *out, struct buf *left_out);
};

struct format {
	const char *name;	 /* as in --format */
	const char *suffixes[3]; /* ends of names of such files, NULL-terminated */
	bool is_capture;	 /* OTLP as it is recorded: nothing to convert */
	bool is_binary;

	/* --- reading; without fits() data is read as OTLP or not at all --- */
	const char *title; /* "perf script": for messages about what is read */
	enum format_sign sign;
	/* Does @data (not empty) look like it? Cheap and without side effects. */
	bool (*fits)(const uint8_t *data, size_t len);
	/* 0 with one reference in *@ret; -EBADMSG with @error saying what is wrong and at which byte or line; -ENOMEM. */
	int (*read)(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *error);

	/* --- writing: as a sum of parts, or from the whole capture --- */
	const struct format_sum *sum;
	int (*from_tree)(struct tree *t, struct buf *out); /* where the sum is format_sum_tree */
	int (*write)(const struct profiles *p, struct buf *out, struct buf *left_out);
};

/* All formats, in the order in which help tells of them. */
#define FORMATS(FORMAT)           \
	FORMAT(format_otlp)       \
	FORMAT(format_otlp_gz)    \
	FORMAT(format_otlp_zst)   \
	FORMAT(format_otlp_xz)    \
	FORMAT(format_otlp_json)  \
	FORMAT(format_otlp_jsonl) \
	FORMAT(format_pprof)      \
	FORMAT(format_folded)     \
	FORMAT(format_svg)        \
	FORMAT(format_html)       \
	FORMAT(format_speedscope) \
	FORMAT(format_firefox)    \
	FORMAT(format_perf_script)

#define FORMAT_DECLARED(name) extern const struct format name;
FORMATS(FORMAT_DECLARED)
#undef FORMAT_DECLARED

/* Finds a format by a file's name, the longest suffix that fits, or by the format's name. NULL: none. */
const struct format *format_by_path(const char *path);
const struct format *format_by_name(const char *name);

/* The format to read @data by; NULL when it looks like none. Data that looks like OTLP's protobuf counts as OTLP: see
 * otlp_read(). */
const struct format *format_by_content(const uint8_t *data, size_t len);

/* Appends, for messages and help: "otlp|otlp.gz|...", ".otlp, .otlp.gz, ...", and of those that are read by their content
 * "pprof, folded stacks, ...". */
void format_list_names(struct buf *out);
void format_list_suffixes(struct buf *out);
void format_list_readers(struct buf *out);

/* Appends @p in @format to @out; @left_out says in words what the format cannot express. 0 or -errno. */
int format_write(const struct profiles *p, const struct format *format, struct buf *out, struct buf *left_out);

/* --- for the writers --- */

enum { FORMAT_GZIP_LEVEL = 6 };

/* A call tree, which from_tree() of the format writes. */
extern const struct format_sum format_sum_tree;

/* Works as format_write(), by a timeline of @p; @unsaid: what the format has no place for. */
int format_write_timeline(const struct profiles *p, int (*write)(struct timeline *t, struct buf *out), const char *unsaid,
			  struct buf *out, struct buf *left_out);

/* Adds "@what (@count)" to @left_out, unless @count is 0. */
void format_tell(struct buf *left_out, uint64_t count, const char *what);

/* --- for the readers --- */

/* See struct format. */
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

/* Reads the next line. False at the end. */
bool read_line(struct read_lines *lines, struct str *ret);

/* @s without blanks and tabs at both ends. */
struct str read_trimmed(struct str s);

/* Decimal digits up to INT64_MAX, nothing else. */
bool read_number(struct str s, int64_t *ret);

/* Finishes: 0 and the profiles of @b, which is freed, or -ENOMEM. @start_ns and @end_ns as for builder_freeze(). */
int read_freeze(struct builder *b, bool failed, uint64_t start_ns, uint64_t end_ns, struct profiles **ret);

#endif
