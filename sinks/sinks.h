/* SPDX-License-Identifier: Apache-2.0 */
/* The sinks' constructors; the interface is proto/sink.h. Each returns 0 or -errno and hands the caller one sink to free. */
#ifndef HEARTH_SINKS_SINKS_H
#define HEARTH_SINKS_SINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/sink.h"

struct buf;
struct metrics;

/* Takes everything and forgets it. */
int sink_null_new(struct sink **ret);

/*
 * Hands every profile to each child through a bounded queue and a thread a child, so that a slow child delays nobody.
 * @children are owned from the call on, also when it fails. consume() returns -EAGAIN when no child had room, 0 otherwise;
 * what a full child missed is counted (hearth_sink_dropped_samples_total{sink=,reason="queue full"}). An ack is completed
 * when all durable children have; with an ack, consume() also returns -EAGAIN, and hands out nothing, when a durable child
 * has no room. flush() waits for the queues to run empty, then flushes the children.
 */
int sink_fanout_new(struct sink *const *children, size_t count, size_t queue_items, struct metrics *metrics,
		    struct sink **ret);

/*
 * Hands every profile to @first and then to @second, in the producer's thread; both must be of the kind that does not wait.
 * Both are owned from the call on, also when it fails. Profiles that @second does not take are counted as dropped; consume()
 * returns what @first returned.
 */
int sink_tee_new(struct sink *first, struct sink *second, struct metrics *metrics, struct sink **ret);

enum print_form {
	PRINT_PLAIN,   /* the lazy backend's HEAD text */
	PRINT_TYPED,   /* the collector distribution's: (Str), (Int) behind values, no times, no files and lines */
	PRINT_DEBUG,   /* everything in a request, as it lies in the message; the rest of the options does not matter */
	PRINT_2025_09, /* the lazy backend's of that time: durations as times, a third part of the period's type */
	PRINT_2025_08, /* and before: no times of profiles */
};

struct print_options {
	enum print_form form;
	bool skip_without_container_id;
	bool hide_resource_attributes, hide_profile_attributes, hide_sample_attributes, hide_frames;
	bool hide_source;		 /* no file, line and column where there is a function; */
	bool show_source;		 /* or, in the typed form, show them */
	bool raw;			 /* control bytes in strings as they are, not escaped */
	const char *container_id;	 /* only resources of this container; NULL: all */
	const char *const *sample_types; /* NULL-terminated; NULL: all */
	const char *const *frame_types;	 /* NULL-terminated; NULL: all */
};

/*
 * The readable text, written to @out (borrowed) a whole request at a time. @options may be NULL; its lists are borrowed.
 * Times of samples are in the process's time zone.
 */
int sink_print_new(FILE *out, const struct print_options *options, struct sink **ret);
/* The same text appended to @out. */
void print_profiles(const struct profiles *p, const struct print_options *options, struct buf *out);
/* Log records with body and attributes; of metrics and traces nothing, but in the debug form. @o is a struct otlp_other. */
struct otlp_other;
void print_other(const struct otlp_other *o, const struct print_options *options, struct buf *out);

/* The last step for a capture that is complete and no longer than OTLP_RUN_BYTES. */
enum file_end {
	FILE_END_ORDERED, /* one message, its dictionary in the order in which it packs best */
	FILE_END_MERGED,  /* that, and what one agent's intervals repeat of a process is said once */
	FILE_END_AS_IT_IS /* it is made into something else */
};

/*
 * Appends each interval as a continued ProfilesData message to @path.part and renames it to @path at free() after a
 * successful flush(). @path "-" writes to stdout, and a path that is no regular file (/dev/null, a FIFO) is written to
 * directly. Durable: an ack comes after an fsync. A write error is returned by consume() and sticks; the .part file stays
 * readable up to its last whole message. A .part that a dead process left is replaced. -EISDIR: @path is a directory;
 * -EBUSY: another process is writing this capture; or why @path.part cannot be made.
 */
int sink_file_new(const char *path, enum file_end end, struct sink **ret);

/* Says in words why sink_file_new() or sink_lines_new() failed; valid until the next strerror(). */
const char *sink_file_error(int err);

enum lines_format {
	LINES_JSON,   /* a line of OTLP/JSON a request */
	LINES_FRAMED, /* a request's length, 4 bytes, big-endian, and the request as protobuf */
};

/*
 * Appends each request to @path as the Collector's file exporter writes them; logs, metrics and traces to files beside it,
 * with the signal's name in front of the last dot (all.jsonl, all.logs.jsonl), made when the first of them comes. Earlier
 * content stays, but for a last request that is not whole. Durable: an ack comes after an fsync. consume() fails while the
 * disk is full and goes on when there is room again. -EISDIR; -EBUSY: another process writes it; -EBADMSG: something else is
 * in it; or why it cannot be opened.
 */
int sink_lines_new(const char *path, enum lines_format format, struct sink **ret);

struct dir_options {
	const char *container_id;	 /* only samples of this container; NULL: all */
	const char *const *sample_types; /* NULL-terminated; NULL: all */
};

/*
 * A JSON file a sample: @dir/CONTAINER/TYPE/N.json, with "unknown" for a missing name. Folders are made; names that would
 * lead elsewhere are percent-encoded; N goes on behind the highest number that is there. Files appear whole. -ENOTDIR, or
 * why @dir cannot be made. @options may be NULL; its strings are borrowed.
 */
int sink_dir_new(const char *dir, const struct dir_options *options, struct sink **ret);

enum otlp_protocol {
	OTLP_BY_URL, /* HTTP for an http URL, gRPC for the other forms */
	OTLP_HTTP_PROTOBUF,
	OTLP_HTTP_JSON,
	OTLP_GRPC,
};

/* How requests are packed. */
enum otlp_packing {
	OTLP_GZIP,
	OTLP_ZSTD, /* gzip to a collector that does not take it */
	OTLP_UNPACKED,
};

struct otlp_sink_config {
	const char *url;	     /* as otlp_endpoint_init() takes it: http(s)://, grpc(s)://, HOST:PORT, unix:PATH */
	enum otlp_protocol protocol; /* where the URL's scheme does not say grpc */
	bool insecure;		     /* HOST:PORT is spoken to without TLS */
	const char *const *headers;  /* "Name: value", NULL-terminated; may be NULL */
	const char *token_file;	     /* its first line is a bearer token; or NULL */
	uint64_t timeout_ns;	     /* an attempt; 10 s when 0, UINT64_MAX: no limit */
	enum otlp_packing packing;
	size_t max_export_bytes; /* 4 MiB less a margin when 0 */
	size_t max_queue_bytes;	 /* encoded requests that wait while the collector is away; 64 MiB when 0 */
	const char *ca_file;	 /* PEM trust anchors or NULL */
	const char *cert_file;	 /* PEM certificate with its chain to show, or NULL */
	const char *key_file;	 /* its key; NULL: it is in cert_file */
	const char *spool_dir;	 /* requests wait there, in a folder a collector, while it is away; NULL: in memory only */
	uint64_t spool_bytes;	 /* at most; 512 MiB when 0 */
	uint64_t spool_age_ns;	 /* older ones are dropped; 0: no limit */
	bool one_of_several;	 /* its series have a label of their own, collector="ADDRESS" */
	const char *proxy;	 /* URL; NULL: that of the environment (http_proxy and so on) */
};

/*
 * OTLP over HTTP or gRPC, on libcurl, with a sending thread of its own. consume() encodes and queues; when max_queue_bytes
 * is reached the oldest request goes and is counted. Retries what OTLP calls retryable (429, 502, 503, 504 and their like of
 * gRPC), refused and broken connections with jittered exponential backoff, or when the collector says; a request that is too
 * large for the collector is split; other answers are final and counted.
 *
 * With a spool, requests go to disk while the collector is away, and what is left at the end; they are sent by turns with
 * fresh ones, oldest first. flush() waits for the queue to be sent or spooled; what is left at its deadline is spooled, or
 * dropped and counted. An ack is completed when the collector acknowledged or the spool has synced, or with an error when a
 * part of the profiles was dropped. Accounting: samples consumed + samples that were in the spool =
 * hearth_exported_samples_total + hearth_export_dropped_samples_total + hearth_spool_samples.
 *
 * Logs, metrics and traces are passed on as they came, never split; each request counts as one sample in the counters above.
 *
 * -EINVAL: the url is none; -EPROTONOSUPPORT: another scheme; -EBADMSG: a header is not "Name: value"; -ENODATA: token_file
 * holds no token; -EBUSY: another process uses the spool; why a file or the spool cannot be used. Strings are borrowed until
 * the sink is freed. consume() returns -ENOMEM only.
 */
int sink_otlp_new(const struct otlp_sink_config *config, struct metrics *metrics, struct sink **ret);

/*
 * The terminal summary: the live table of the top functions. On a terminal it redraws in place each interval; otherwise it
 * prints the heaviest as plain lines if that is wanted, and the final table at flush(). @status fills the line above the
 * table (samples/s, losses) and may be NULL.
 */
struct summary_options {
	FILE *out;
	bool live;  /* @out is a terminal: redraw */
	bool keys;  /* sink_summary_keys() will be called */
	bool lines; /* not live: a few lines each interval */
	bool colour;
	unsigned rows, columns; /* of the terminal; asked anew at each drawing when 0 */
	void (*status)(void *arg, struct buf *line);
	void *status_arg;
	/* Appends the address of a page that shows the callers of the function @name of @module ("": of any); may be NULL.
	 */
	void (*link)(void *arg, const char *name, const char *module, struct buf *url);
	void *link_arg;
	struct metrics *metrics; /* where it says what memory it takes; may be NULL */
	/* Profiles of several types come: a key goes through @kinds (as for view_kind(); borrowed, NULL behind the last),
	 * and shows at first @kind; either may be NULL. */
	const char *const *kinds;
	const char *kind;
};
int sink_summary_new(const struct summary_options *options, struct sink **ret);

/* Obeys the keys that a terminal sent, and draws; *@quit_ret: one asked for the end. 0 or -errno. */
int sink_summary_keys(struct sink *sink, const char *bytes, size_t len, bool *quit_ret);

/* Draws again, for a terminal of another size or one that comes back; nothing when it is not live. 0 or -errno. */
int sink_summary_redraw(struct sink *sink);

/* Gives the terminal back for a while. 0 or -errno. */
int sink_summary_leave(struct sink *sink);

#endif
