/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A type of sink, as --sink NAME[=VALUE] names it: one const struct in the sink's own file. cmd/setup/sinks_of.c has the
 * table of all, makes sinks by it and prints it as help. The options come as the settings below: a sink knows no command
 * line.
 */
#ifndef HEARTH_SINKS_SINK_TYPE_H
#define HEARTH_SINKS_SINK_TYPE_H

#include "sinks/sinks.h"

/* The settings of all sinks; each reads its own. All that it points to is borrowed and outlives the sinks. */
struct sink_settings {
	struct metrics *metrics;
	FILE *out; /* what print writes to */
	struct print_options print;
	struct dir_options dir;
	struct otlp_sink_config otlp; /* of every collector; url is the sink's value */
	bool receives;		      /* the producer is a receiver, which counts what it receives */
};

struct sink_type {
	const char *name;
	const char *value; /* the word for what stands behind '='; NULL: nothing may */
	const char *help;  /* further words, shown in parentheses; NULL: none */
	bool is_store;	   /* it keeps profiles in a store */
	bool is_sender;	   /* it sends them over a network */
	bool is_slow;	   /* its consume() may wait for a disk or a reader */

	/* Makes the sink. @value is NULL where the type has none. 0; or -errno, with a message in @error or none. */
	int (*make)(const struct sink_settings *settings, const char *value, struct sink **ret, struct buf *error);
	/*
	 * Says in @error, which is empty, why make() failed with @err; @value has no password any more. The error to end
	 * with, -EINVAL when the options are wrong. NULL: the error's name says it all.
	 */
	int (*explain)(const struct sink_settings *settings, const char *value, int err, struct buf *error);
};

/* The explain() of sinks that write files at @value. */
int sink_explain_file(const struct sink_settings *settings, const char *value, int err, struct buf *error);

#endif
