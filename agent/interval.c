/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the profiles of an interval. Addresses and mapping ranges are in the file's own (ELF) address space, so that
 * mappings and locations are shared by all processes that map a file. Each distinct frame, stack and process is translated
 * once an interval (arrays parallel to those of the traces); an event then costs three small attributes. Agent's thread.
 */
#include <errno.h>
#include <string.h>

#include "agent/interval.h"
#include "agent/walk_ends.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "proto/profiles_builder.h"
#include "proto/truth.h"

struct interval {
	struct names *names;
	struct builder *builder;
	struct builder_profile_spec spec;
	/* of the interval being built */
	struct map profiles; /* struct process * -> profile handle + 1 */
};

int interval_new(struct names *names, unsigned freq_hz, const char *event, struct interval **ret)
{
	struct interval *iv = calloc(1, sizeof(*iv));
	bool is_time = !event || !strcmp(event, "cpu-clock") || !strcmp(event, "task-clock");

	if (!iv)
		return -ENOMEM;
	iv->builder = builder_new();
	if (!iv->builder) {
		free(iv);
		return -ENOMEM;
	}
	iv->names = names;
	iv->spec = (struct builder_profile_spec){
		.scope_name = "hearth",
		.scope_version = HEARTH_VERSION,
		.sample_type = is_time ? "samples" : event,
		.sample_unit = "count",
		.period_type = is_time ? "cpu" : "",
		.period_unit = is_time ? "nanoseconds" : "",
		.period = is_time ? (int64_t)(NSEC_PER_SEC / freq_hz) : 0,
	};
	*ret = iv;
	return 0;
}

void interval_free(struct interval *iv)
{
	if (!iv)
		return;
	builder_free(iv->builder);
	map_fini(&iv->profiles);
	free(iv);
}

static struct str str_of(const char *text)
{
	return (struct str){ text, (uint32_t)strlen(text) };
}

/* --- locations --- */

static int32_t file_mapping(struct interval *iv, const struct file *file, uint64_t addr)
{
	const struct build_ids *ids = &file->info.build_ids;
	const struct elf_segment *segment = NULL;
	struct builder *b = iv->builder;
	int32_t attributes[3];
	uint32_t count = 0;

	for (uint32_t i = 0; i < file->info.segment_count && !segment; i++)
		if (addr - file->info.segments[i].vaddr < file->info.segments[i].size_bytes)
			segment = &file->info.segments[i];
	if (ids->gnu[0])
		attributes[count++] = builder_attribute_string(b, "process.executable.build_id.gnu", str_of(ids->gnu));
	if (ids->go[0])
		attributes[count++] = builder_attribute_string(b, "process.executable.build_id.go", str_of(ids->go));
	if (ids->htlhash[0])
		attributes[count++] = builder_attribute_string(b, "process.executable.build_id.htlhash",
							       str_of(ids->htlhash));
	return builder_mapping(b, segment ? segment->vaddr : 0, segment ? segment->vaddr + segment->size_bytes : 0,
			       segment ? segment->offset : 0, builder_string(b, str_of(file->path)), attributes, count);
}

static const char *frame_type(const struct trace_frame *frame)
{
	if (frame->kind == FRAME_KERNEL)
		return "kernel";
	return frame->kind == FRAME_NATIVE && frame->file->info.build_ids.go[0] ? "go" : "native";
}

static int32_t frame_mapping(struct interval *iv, const struct trace_frame *frame, struct str kernel_module)
{
	struct builder *b = iv->builder;

	if (frame->kind == FRAME_NATIVE)
		return file_mapping(iv, frame->file, frame->addr);
	if (frame->kind == FRAME_ANONYMOUS)
		return builder_mapping(b, 0, 0, 0, builder_string_z(b, "//anon"), NULL, 0);
	return builder_mapping(b, 0, 0, 0, builder_string(b, kernel_module.len ? kernel_module : STR("vmlinux")), NULL, 0);
}

static int32_t build_location(struct interval *iv, const struct trace_frame *frame)
{
	struct frame_name name = names_find(iv->names, frame);
	struct builder *b = iv->builder;
	int32_t mapping = frame_mapping(iv, frame, name.module);
	int32_t type = builder_attribute_string(b, "profile.frame.type", str_of(frame_type(frame)));
	struct profile_line line = { 0 };

	if (name.name.len)
		line.function_index = builder_function(b, builder_string(b, name.name),
						       name.system_name.len ? builder_string(b, name.system_name) : 0, 0, 0);
	return builder_location(b, mapping, frame->addr, &line, name.name.len ? 1 : 0, &type, 1);
}

/* --- resources --- */

static uint32_t build_profile(struct interval *iv, struct process *p)
{
	const char *path = p->exe_path ? p->exe_path : "", *slash = strrchr(path, '/');
	const char *name = p->exe_path ? (slash ? slash + 1 : path) : p->comm;
	struct key_value attributes[3] = {
		{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = p->pid } },
		{ .key = STR("process.executable.name"), .value = { .kind = VALUE_STRING, .string = str_of(name) } },
		{ .key = STR("process.executable.path"), .value = { .kind = VALUE_STRING, .string = str_of(path) } },
	};
	uintptr_t known = (uintptr_t)map_get(&iv->profiles, (uintptr_t)p);
	uint32_t profile;

	if (known)
		return (uint32_t)(known - 1);
	profile = builder_profile(iv->builder, builder_resource(iv->builder, attributes, p->exe_path ? 3 : 2), &iv->spec);
	(void)map_put(&iv->profiles, (uintptr_t)p,
		      (void *)((uintptr_t)profile + 1)); /* else it is found again by its bytes */
	return profile;
}

/* --- the interval --- */

static void build_stack(struct interval *iv, const struct traces *t, uint32_t index, const int32_t *locations,
			int32_t *stack)
{
	int32_t indices[MAX_KERNEL_FRAMES + MAX_USER_FRAMES];
	const struct trace *trace = traces_get(t, index);
	const uint32_t *ids = traces_frame_ids(t, trace);

	for (uint32_t i = 0; i < trace->frame_cnt; i++)
		indices[i] = locations[ids[i]];
	*stack = builder_stack(iv->builder, indices, trace->frame_cnt);
}

static void build_event(struct interval *iv, const struct trace_event *e, enum walk_end end, int32_t stack)
{
	struct builder *b = iv->builder;
	uint32_t count = 3;
	int32_t attributes[4] = {
		builder_attribute_string(b, "thread.name", str_of(e->comm)),
		builder_attribute_int(b, "thread.id", e->tid),
		builder_attribute_int(b, "cpu.logical_number", e->cpu),
	};

	if (walk_end_is_truncated(end))
		attributes[count++] = builder_attribute_string(b, TRUTH_TRUNCATED_KEY, str_of(walk_end_text(end)));
	builder_event(b, build_profile(iv, e->process), stack, attributes, count, 0, clock_mono_to_unix_ns(e->time_ns),
		      false, 0);
}

int interval_build(struct interval *iv, const struct traces *t, uint64_t start_ns, uint64_t end_ns, struct profiles **ret)
{
	uint32_t frames = traces_frame_count(t), stacks = traces_count(t), events = traces_event_count(t);
	AUTO_FREE int32_t *locations = calloc(frames + 1, sizeof(*locations));
	AUTO_FREE int32_t *stack = calloc(stacks + 1, sizeof(*stack));

	if (!locations || !stack || names_update(iv->names, t))
		return -ENOMEM;
	map_fini(&iv->profiles); /* the builder's handles are new each interval */
	for (uint32_t i = 0; i < frames; i++)
		locations[i] = build_location(iv, traces_frame(t, i));
	for (uint32_t i = 0; i < stacks; i++)
		build_stack(iv, t, i, locations, &stack[i]);
	for (uint32_t i = 0; i < events; i++) {
		const struct trace_event *e = &traces_events(t)[i];

		build_event(iv, e, traces_get(t, e->trace)->end, stack[e->trace]);
	}
	return builder_freeze(iv->builder, clock_mono_to_unix_ns(start_ns), clock_mono_to_unix_ns(end_ns), ret);
}
