/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of scripts and names of generated code, by content: equal ones of several processes, or lives of a process, are
 * one object. Objects outlive their processes as long as a stack has them. Reference counted; agent's thread.
 */
#ifndef HEARTH_AGENT_OBJECTS_OBJECTS_H
#define HEARTH_AGENT_OBJECTS_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

struct object {
	uint32_t id; /* from 1, below OBJECT_IDS; used again after the object is gone */
	uint32_t refs;
	uint32_t runtime; /* enum runtime_id, or OBJECT_OF_CODE + enum code_id */
	uint32_t len_bytes;
	uint64_t hash;
	struct object *next; /* of the same hash */
	struct objects *all;
	uint8_t content[]; /* symbols/script/script.h, or block_names.h of generated code */
};

enum { OBJECT_IDS = 1 << 24, OBJECT_OF_CODE = 64 };

struct objects;

/* 0 or -ENOMEM. */
int objects_new(struct objects **ret);
/* To be called when nobody holds an object. */
void objects_free(struct objects *o);

/* Finds or makes the object of @runtime with these @len bytes; *@ret is a reference. 0, -ENOMEM, or -ENOSPC: there are too
 * many. */
int objects_add(struct objects *o, uint32_t runtime, const void *content, uint32_t len, struct object **ret);

/* The object @id; NULL: there is none. */
struct object *objects_find(const struct objects *o, uint32_t id);

struct object *object_get(struct object *object); /* accepts NULL */
void object_put(struct object *object);		  /* accepts NULL */

uint32_t objects_count(const struct objects *o);
size_t objects_memory_bytes(const struct objects *o);

#endif
