/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/context/process_context.h"
#include "agent/proc/proc_maps.h"
#include "agent/proc/proc_reader.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/utf8.h"
#include "proto/otlp/process_context.h"

/* OTEP 4719: the header. */
enum { AT_VERSION = 8, AT_SIZE = 12, AT_PUBLISHED = 16, AT_PAYLOAD = 24, VERSION = 2 };
#define SIGNATURE "OTEL_CTX"

enum {
	TRIES = 3,		/* a publication takes microseconds */
	FIRST_LOOK_SECONDS = 5, /* a program's SDK is there soon after it begins, or never; twice as long each time ... */
	LAST_LOOK_SECONDS = 600,
	AT_ONCE_SECONDS = 1,
};

/* The state of a process; see struct process. */
struct context_slot {
	struct process_slot slot;
	uint64_t exec_id;	/* of the program that was looked at */
	uint64_t addr;		/* of the header; 0: none was found */
	uint64_t published_ns;	/* of @context; 0: there is none */
	uint64_t looked_ns;	/* when its mappings were looked at last */
	uint64_t look_after_ns; /* they are looked at again then */
	struct process_context context;
};

/* --- what is published --- */

bool context_header_parse(const uint8_t bytes[static CONTEXT_HEADER_BYTES], struct context_header *ret)
{
	uint32_t version;

	memcpy(&version, bytes + AT_VERSION, sizeof(version));
	memcpy(&ret->payload_bytes, bytes + AT_SIZE, sizeof(ret->payload_bytes));
	memcpy(&ret->published_ns, bytes + AT_PUBLISHED, sizeof(ret->published_ns));
	memcpy(&ret->payload, bytes + AT_PAYLOAD, sizeof(ret->payload));
	return !memcmp(bytes, SIGNATURE, sizeof(SIGNATURE) - 1) && version == VERSION && ret->published_ns && ret->payload &&
	       ret->payload_bytes && ret->payload_bytes <= CONTEXT_PAYLOAD_BYTES;
}

/* Adds an attribute of any simple kind, as text. */
static int add_attribute(struct attributes *a, const struct key_value *kv)
{
	char text[32];

	switch (kv->value.kind) {
	case VALUE_STRING:
		return attributes_add(a, kv->key, kv->value.string);
	case VALUE_BOOL:
		return attributes_add(a, kv->key, str_z(kv->value.boolean ? "true" : "false"));
	case VALUE_INT:
		snprintf(text, sizeof(text), "%" PRId64, kv->value.integer);
		return attributes_add(a, kv->key, str_z(text));
	case VALUE_DOUBLE:
		snprintf(text, sizeof(text), "%.17g", kv->value.real);
		return attributes_add(a, kv->key, str_z(text));
	default:
		return 0;
	}
}

/* Takes the names that numbers of threads' attributes stand for. One that is no name keeps its number's place. */
static int take_keys(struct process_context *c, const struct any_value *list)
{
	for (uint32_t i = 0; i < list->array.count && i < CONTEXT_KEYS; i++) {
		const struct any_value *v = &list->array.items[i];
		struct str key = v->kind == VALUE_STRING ? v->string : STR("");

		c->key_cnt = i + 1;
		if (!key.len || key.len > ATTRIBUTE_KEY_BYTES || !utf8_is_valid(key.data, key.len) ||
		    memchr(key.data, '\0', key.len))
			continue;
		c->keys[i] = strndup(key.data, key.len);
		if (!c->keys[i])
			return -ENOMEM;
	}
	return 0;
}

int process_context_parse(const uint8_t *bytes, size_t len, struct process_context *ret)
{
	struct otlp_process_context message;
	int error = otlp_process_context_decode(bytes, len, &message);

	*ret = (struct process_context){ 0 };
	if (error)
		return error;
	for (uint32_t i = 0; i < message.resource.attributes.count && !error; i++)
		error = add_attribute(&ret->resource, &message.resource.attributes.items[i]);
	for (uint32_t i = 0; i < message.attributes.count && !error; i++) {
		const struct key_value *kv = &message.attributes.items[i];

		if (str_is(kv->key, "threadlocal.attribute_key_map") && kv->value.kind == VALUE_ARRAY && !ret->key_cnt)
			error = take_keys(ret, &kv->value);
	}
	otlp_process_context_fini(&message);
	if (error)
		process_context_fini(ret);
	return error;
}

void process_context_fini(struct process_context *c)
{
	attributes_fini(&c->resource);
	for (uint32_t i = 0; i < c->key_cnt; i++)
		free(c->keys[i]);
	*c = (struct process_context){ 0 };
}

/* --- reading --- */

/* The process, and the task through which its memory is read. */
struct memory {
	uint32_t pid, task;
	struct buf bytes;
};

/* 0; -EIO: there is no such memory; -EBUSY: the process has ended, or lets nobody look: what is known stays true. */
static int read_at(struct memory *m, uint64_t addr, void *to, size_t bytes)
{
	int error = addr > INT64_MAX ? -EIO : proc_read(m->pid, m->task, "mem", addr, bytes, &m->bytes);

	if (!error && m->bytes.len == bytes) {
		memcpy(to, m->bytes.data, bytes);
		return 0;
	}
	return error && error != -EIO ? -EBUSY : -EIO;
}

/* Reads the context that the header at slot->addr tells of, unless it is known. 0; -EAGAIN: it is being written; -ESRCH:
 * there is none any more; another -errno: it makes no sense, or cannot be read now. */
static int read_once(struct context_slot *slot, struct memory *m)
{
	uint8_t bytes[CONTEXT_HEADER_BYTES];
	AUTO_FREE uint8_t *payload = NULL;
	struct process_context context;
	struct context_header header;
	uint64_t published_ns;
	int error;

	error = read_at(m, slot->addr, bytes, sizeof(bytes));
	if (error == -EBUSY)
		return error;
	if (error || memcmp(bytes, SIGNATURE, sizeof(SIGNATURE) - 1))
		return -ESRCH;
	if (!context_header_parse(bytes, &header))
		return header.published_ns ? -EBADMSG : -EAGAIN;
	if (header.published_ns == slot->published_ns)
		return 0;
	payload = malloc(header.payload_bytes);
	if (!payload)
		return -ENOMEM;
	if (read_at(m, header.payload, payload, header.payload_bytes) ||
	    read_at(m, slot->addr + AT_PUBLISHED, &published_ns, sizeof(published_ns)) ||
	    published_ns != header.published_ns)
		return -EAGAIN;
	error = process_context_parse(payload, header.payload_bytes, &context);
	if (error)
		return error;
	process_context_fini(&slot->context);
	slot->context = context;
	slot->published_ns = published_ns;
	return 0;
}

/* Is this the mapping of a context? The kernel tells its name where memory can have one, else that of its memfd. */
static int find_header(void *arg, const struct proc_map *map)
{
	static const char *const names[] = { "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX" };
	struct context_slot *slot = arg;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (map->executable || map->path_len < strlen(names[i]) || memcmp(map->path, names[i], strlen(names[i])))
			continue;
		slot->addr = map->start;
		return 1;
	}
	return 0;
}

static void forget(struct context_slot *slot)
{
	process_context_fini(&slot->context);
	slot->addr = slot->published_ns = 0;
}

/* Looks for the header, seldom as time goes by. */
static void look_for_header(struct context_slot *slot, uint32_t pid, bool at_once)
{
	uint64_t now_ns = clock_mono_ns(), after_ns = slot->look_after_ns;

	if (at_once && after_ns > AT_ONCE_SECONDS * NSEC_PER_SEC)
		after_ns = AT_ONCE_SECONDS * NSEC_PER_SEC;
	if (slot->addr || (slot->looked_ns && now_ns - slot->looked_ns < after_ns))
		return;
	slot->looked_ns = now_ns;
	slot->look_after_ns = slot->look_after_ns ? 2 * slot->look_after_ns : FIRST_LOOK_SECONDS * NSEC_PER_SEC;
	if (slot->look_after_ns > LAST_LOOK_SECONDS * NSEC_PER_SEC)
		slot->look_after_ns = LAST_LOOK_SECONDS * NSEC_PER_SEC;
	(void)proc_maps_each(pid, find_header, slot);
}

static void free_slot(struct process_slot *slot)
{
	forget((struct context_slot *)slot);
	free(slot);
}

static struct context_slot *make_slot(struct process *p)
{
	struct context_slot *slot = (struct context_slot *)p->context;

	if (!slot) {
		slot = calloc(1, sizeof(*slot));
		if (!slot)
			return NULL;
		slot->slot.free = free_slot;
		slot->exec_id = p->exec_id;
		p->context = &slot->slot;
	}
	if (slot->exec_id != p->exec_id) { /* another program runs now */
		forget(slot);
		slot->exec_id = p->exec_id;
		slot->looked_ns = slot->look_after_ns = 0;
	}
	return slot;
}

void process_context_look(struct process *p, bool at_once)
{
	struct context_slot *slot = p->is_outside || process_has_ended(p) ? NULL : make_slot(p);
	struct memory memory = { .pid = p->pid };
	int error = -EAGAIN;

	if (!slot)
		return;
	look_for_header(slot, p->pid, at_once);
	if (!slot->addr)
		return;
	memory.task = proc_maps_task(p->pid, NULL, 0);
	for (int i = 0; i < TRIES && error == -EAGAIN; i++)
		error = read_once(slot, &memory);
	buf_fini(&memory.bytes);
	if (error == -ESRCH)
		forget(slot);
}

const struct process_context *process_context_of(const struct process *p)
{
	const struct context_slot *slot = (const struct context_slot *)p->context;

	return slot && slot->published_ns ? &slot->context : NULL;
}
