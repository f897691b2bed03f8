/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that answers to Pyroscope's query service share: pyroscope.c has the lists, pyroscope_graphs.c the numbers. */
#ifndef HEARTH_BACKEND_COMPAT_PYROSCOPE_H
#define HEARTH_BACKEND_COMPAT_PYROSCOPE_H

#include "backend/api/api_call.h"
#include "proto/compat/connect.h"

#define PROFILE_TYPE_LABEL "__profile_type__"

/* Handlers: these write the message of Connect's that parameter "codec" says. */
int api_profile_types(struct api_call *call);
int api_label_names(struct api_call *call);
int api_label_values(struct api_call *call);
int api_series_labels(struct api_call *call);
int api_select_series(struct api_call *call);
int api_select_stacktraces(struct api_call *call);

/* A request in terms of the store. */
struct question {
	struct query q;
	char *kind;	/* owned: of the profile type; NULL: the one with the most events */
	int64_t scale;	/* a unit of weight in the profile type's unit */
	bool is_absent; /* there is nothing of that type */
	char *by;	/* owned: the key to group by, or NULL */
};

struct profile_type {
	const char *kind;
	const char *name, *sample_type, *sample_unit, *period_type, *period_unit;
	int64_t scale;
};

/* "process_cpu:cpu:nanoseconds:cpu:nanoseconds" */
void profile_type_id(const struct profile_type *t, struct buf *out);

/* Calls @fn with each type that there is something of in @sel. */
int pyroscope_types(struct api_call *call, const struct store_selection *sel,
		    int (*fn)(void *arg, const struct profile_type *type), void *arg);

/* Reads all but what to group by. question_fini() in any case; a question begins all zeros. */
int pyroscope_read(struct api_call *call, struct question *qu);
void question_fini(struct question *qu);

/* The value of the one parameter @key that is not empty; "" when there is none. */
int pyroscope_param(struct api_call *call, const char *key, const char **ret);

/* The key that @name stands for, the caller's to free; @name itself when nothing here is called so. */
int pyroscope_label(struct api_call *call, const struct store_selection *range, const char *name, char **ret);

/* The character that stands for @c in a label's name there: a letter, a digit or an underscore. */
char pyroscope_char(char c);

/* Begins the answer in the codec that was asked for; connect_writer_end() ends it. */
void pyroscope_answer(struct api_call *call, struct connect_writer *w);

#endif
