/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a message's stacks into nodes. First keys are made of all that the message's tables have, table by table, so that
 * memory is read in its order; then a stack's node is looked up by its key. Only if that is not known, numbers are looked
 * up: of the nodes above it, of its frames, their functions and names.
 */
#include <errno.h>
#include <stdlib.h>

#include "backend/store/sqlite/message.h"
#include "base/cleanup.h"

static uint32_t keep_function(struct message *m, int32_t index)
{
	const struct profile_function *f = &m->p->dict.functions[index];
	uint32_t id_new;

	if (!index || m->functions[index])
		return m->functions[index];
	m->functions[index] = keep_number(m->k, KEPT_FUNCTION, m->function_keys[index], &id_new);
	if (!m->functions[index]) {
		const int64_t row[] = { message_string(m, f->name_strindex), message_string(m, f->system_name_strindex),
					message_string(m, f->filename_strindex), f->start_line };

		message_insert_integers(m, KEPT_FUNCTION, id_new, row, ARRAY_LEN(row));
		m->functions[index] = id_new;
	}
	return m->functions[index];
}

static uint32_t keep_mapping(struct message *m, int32_t index)
{
	const struct profile_mapping *mapping = &m->p->dict.mappings[index];
	uint32_t id_new;

	if (index && !m->mappings[index]) {
		const int64_t row[] = { message_string(m, mapping->filename_strindex), (int64_t)mapping->memory_start,
					(int64_t)mapping->memory_limit, (int64_t)mapping->file_offset,
					message_set(m, &mapping->attributes) };

		m->mappings[index] = keep_number(m->k, KEPT_MAPPING, id_key_of(row, sizeof(row)), &id_new);
		if (!m->mappings[index]) {
			message_insert_integers(m, KEPT_MAPPING, id_new, row, ARRAY_LEN(row));
			m->mappings[index] = id_new;
		}
	}
	return m->mappings[index];
}

/* The frame of one line of a location, without its function. */
static struct frame_row make_row(struct message *m, int32_t index, uint32_t line)
{
	const struct profile_location *l = &m->p->dict.locations[index];
	struct frame_row row = {
		.address = l->address,
		.mapping = keep_mapping(m, l->mapping_index),
		.attributes = message_set(m, &l->attributes),
		.inlined = line + 1 < l->line_count,
	};

	if (line < l->line_count) {
		row.line = l->lines[line].line;
		row.column = l->lines[line].column;
	}
	return row;
}

static int32_t function_of(struct message *m, int32_t location, uint32_t line)
{
	const struct profile_location *l = &m->p->dict.locations[location];

	return line < l->line_count ? l->lines[line].function_index : 0;
}

static uint32_t keep_frame(struct message *m, struct message_frame *frame)
{
	struct keep *k = m->k;
	uint32_t id_new;

	if (frame->number)
		return frame->number;
	frame->number = keep_number(k, KEPT_FRAME, frame->key, &id_new);
	if (!frame->number && ROOM(m, k->frames, k->frame_cap, k->frame_count, 1)) {
		struct frame_row row = make_row(m, frame->location, frame->line);

		row.function = keep_function(m, function_of(m, frame->location, frame->line));
		k->frames[k->frame_count++] = row;
		frame->number = id_new;
	}
	return frame->number;
}

/* --- keys --- */

static void make_string_keys(struct message *m)
{
	const struct dictionary *d = &m->p->dict;

	for (uint32_t i = 0; i < d->string_count; i++) {
		if (d->strings[i].len)
			m->string_keys[i] = id_key_of(d->strings[i].data, d->strings[i].len);
	}
}

static void make_function_keys(struct message *m)
{
	const struct dictionary *d = &m->p->dict;

	for (uint32_t i = 1; i < d->function_count; i++) {
		const struct profile_function *f = &d->functions[i];
		const struct id_key names[FUNCTION_NAMES] = { m->string_keys[f->name_strindex],
							      m->string_keys[f->system_name_strindex],
							      m->string_keys[f->filename_strindex] };

		m->function_keys[i] = keep_function_key(names, f->start_line);
	}
}

/* A location is one frame at least. */
static void make_frame_keys(struct message *m)
{
	const struct dictionary *d = &m->p->dict;

	for (int32_t i = 0; (uint32_t)i < d->location_count; i++) {
		const uint32_t count = d->locations[i].line_count ? d->locations[i].line_count : 1;

		if (!ROOM(m, m->frames, m->frame_cap, m->frame_count, count))
			return;
		m->locations[i] = (struct location_frames){ .first = (uint32_t)m->frame_count, .count = count };
		for (uint32_t line = count; line-- > 0;) {
			const struct frame_row row = make_row(m, i, line);

			m->frames[m->frame_count++] = (struct message_frame){
				.key = keep_frame_key(&row, m->function_keys[function_of(m, i, line)]),
				.location = i,
				.line = line,
			};
		}
	}
}

static void make_stack_keys(struct message *m)
{
	const struct dictionary *d = &m->p->dict;

	for (uint32_t i = 0; i < d->stack_count; i++) {
		struct id_key key = { 0 };

		for (uint32_t l = d->stacks[i].count; l > 0; l--) {
			const struct location_frames frames = m->locations[d->stacks[i].items[l - 1]];

			for (uint32_t f = frames.first; f < frames.first + frames.count; f++)
				key = id_key_below(key, m->frames[f].key);
		}
		m->stack_keys[i] = key;
	}
}

void message_make_keys(struct message *m)
{
	make_string_keys(m);
	make_function_keys(m);
	make_frame_keys(m);
	if (!m->err)
		make_stack_keys(m);
}

/* --- nodes --- */

/* Puts the path of stack @index, outermost frame first, into m->path. */
static void find_path(struct message *m, int32_t index)
{
	const struct indices *stack = &m->p->dict.stacks[index];
	struct id_key key = { 0 };

	m->path_count = 0;
	for (uint32_t i = stack->count; i > 0; i--) {
		const struct location_frames frames = m->locations[stack->items[i - 1]];

		if (!ROOM(m, m->path, m->path_cap, m->path_count, frames.count))
			return;
		for (uint32_t f = frames.first; f < frames.first + frames.count; f++) {
			key = id_key_below(key, m->frames[f].key);
			m->path[m->path_count++] = (struct path_step){ key, f };
			ids_prefetch(&m->k->ids[KEPT_NODE], key);
		}
	}
}

/* Keeps the path's last node, which is not known, and unknown nodes above it. Returns its number. */
static uint32_t keep_path(struct message *m)
{
	struct keep *k = m->k;
	size_t known = m->path_count - 1;
	uint32_t node = 0;

	while (known && !(node = ids_get(&k->ids[KEPT_NODE], m->path[known - 1].key)))
		known--;
	if (!ROOM(m, k->nodes, k->node_cap, k->node_count, m->path_count - known))
		return 0;
	for (size_t i = known; i < m->path_count; i++)
		ids_prefetch(&k->ids[KEPT_FRAME], m->frames[m->path[i].frame].key);
	for (size_t i = known; i < m->path_count; i++) {
		const uint32_t frame = keep_frame(m, &m->frames[m->path[i].frame]);

		k->nodes[k->node_count++] = (struct store_node){ .parent = node, .frame = frame };
		node = k->next[KEPT_NODE]++;
		/* Stacks are asked for; the nodes within them only where a new one branches off. */
		if (i + 1 < m->path_count)
			(void)ids_put_last(&k->ids[KEPT_NODE], m->path[i].key, node);
		else
			(void)ids_put(&k->ids[KEPT_NODE], m->path[i].key, node);
	}
	return node;
}

uint32_t message_stack(struct message *m, int32_t index)
{
	uint32_t *node = &m->stacks[index];

	if (*node || !m->p->dict.stacks[index].count)
		return *node;
	*node = ids_get(&m->k->ids[KEPT_NODE], m->stack_keys[index]);
	if (*node)
		return *node;
	find_path(m, index);
	if (!m->err)
		*node = keep_path(m);
	return *node;
}
