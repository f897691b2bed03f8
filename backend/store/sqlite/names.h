/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the store's numbers into what readers want: texts, frames, nodes, labels of series. They are read when first asked
 * for. Strings, functions and mappings stay until there are many; frames, nodes, sets and series are cached in bounds. The
 * reader's are used under the store's read_lock.
 */
#ifndef HEARTH_BACKEND_STORE_SQLITE_NAMES_H
#define HEARTH_BACKEND_STORE_SQLITE_NAMES_H

#include "backend/store/sqlite/keep.h"

struct name_label {
	const char *key, *value; /* value as text; "" for what has none */
	uint32_t attribute;	 /* its number */
};

/* A list of labels, which sets share. */
struct name_set {
	uint32_t count;
	const struct name_label *labels[];
};

struct name_origin {
	char *sample_type, *sample_unit, *period_type, *period_unit;
	int64_t period;
	int shape;
	uint32_t attributes; /* set */
	char *scope_name, *scope_version;
	struct buf message; /* OTLP, see backend/store/origin.h */
};

struct name_series {
	uint32_t resource; /* set */
	uint32_t origin_id;
	const struct name_origin *origin;
};

struct name_function {
	uint32_t name, system_name, file; /* strings */
	int64_t start_line;
};

struct name_mapping {
	const char *path, *module;	/* module: last part of the path */
	const char *build_id, *id_kind; /* "" */
	const char *process;		/* the process that generated the code; "" */
	uint32_t attributes;		/* set */
	int64_t memory_start, memory_limit, file_offset;
	bool has_given; /* names for addresses of this build id: as of the given_version of all that was given */
	uint64_t given_version;
};

/* Names read through the connection *@db with *@codec, which may change while nothing is prepared (names_detach()). 0 or
 * -ENOMEM. */
int store_names_new(struct store_sqlite *s, sqlite3 *const *db, struct column_codec *const *codec, struct store_names **ret);
void store_names_free(struct store_names *n);

/* Bytes of memory held. */
size_t store_names_memory_bytes(const struct store_names *n);

/* Finalizes what it has prepared, before the connection is closed; everything read so far is forgotten but for texts. */
void names_detach(struct store_names *n);

/* Call it between questions only: when many names have been read they are forgotten, and with @is_idle everything. */
void names_rest(struct store_names *n, bool is_idle);

/* Called at a question's start: caches that grew beyond their bounds are emptied. Pointers from before are gone. */
void names_refresh(struct store_names *n);

/* The same of sets alone, for a long question that keeps no pointers to sets and labels. */
void names_refresh_sets(struct store_names *n);

/* Each gives NULL with *@err set when it is not in the store (-EBADMSG) or cannot be read. */
const char *names_string(struct store_names *n, uint32_t id, int *err); /* 0 is "" */
const struct name_function *names_function(struct store_names *n, uint32_t id, int *err);
const struct name_mapping *names_mapping(struct store_names *n, uint32_t id, int *err);
const struct frame_row *names_frame(struct store_names *n, uint32_t id, int *err); /* until the next one */
const struct name_set *names_set(struct store_names *n, uint32_t id, int *err);
const struct name_series *names_series(struct store_names *n, uint32_t id, int *err);

/* Attribute @id as it came: numbers of its key and unit, and its value in @to's memory. 0 or -errno. */
int names_attribute(struct store_names *n, uint32_t id, struct profiles *to, uint32_t *key_ret, uint32_t *unit_ret,
		    struct any_value *ret);
int names_link(struct store_names *n, uint32_t id, struct profiles *to, struct profile_link *ret);

/* The value of label @key of a set; NULL when it has none. */
const char *names_set_value(const struct name_set *set, const char *key);

/* One more than the largest number of a node that is committed. */
uint32_t names_node_count(struct store_names *n, int *err);
int names_nodes(struct store_names *n, uint32_t first, uint32_t count, struct store_node *ret); /* from @first on */

/* The frame as store.h shows it; its strings live until the next one is asked for. */
int names_store_frame(struct store_names *n, uint32_t frame, struct store_frame *ret);

#endif
