/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the profiles of an interval. Addresses and mapping ranges are in the file's own (ELF) address space, so that
 * mappings and locations are shared by all processes that map a file. Each distinct file, frame, stack and process is
 * translated once an interval (arrays parallel to those of the traces); an event then costs three small attributes. Agent's
 * thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/config.h"
#include "agent/process/attributes.h"
#include "agent/report/code_lines.h"
#include "agent/report/context_labels.h"
#include "agent/report/host_facts.h"
#include "agent/names/indexes.h"
#include "agent/report/interval.h"
#include "agent/report/logical_frames.h"
#include "agent/report/resource.h"
#include "agent/report/script_frames.h"
#include "agent/report/event_labels.h"
#include "agent/report/wait_labels.h"
#include "agent/samples/merge.h"
#include "agent/kernel/kernel_build_id.h"
#include "agent/samples/walk_ends.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "proto/sums/modules.h"
#include "proto/profiles_builder.h"
#include "proto/sums/truth.h"
#include "proto/unnamed.h"

/* The facts about a file that are the same for all its frames. */
struct file_entry {
	int32_t path;
	uint32_t module;       /* its number in the truth counts */
	int32_t attributes[4]; /* build ids, and the source of its names */
	uint32_t attribute_cnt;
	int32_t mapping; /* mapping of @segment, as most frames of a file are in one segment */
	const struct elf_segment *segment;
	bool has_mapping;
	uint32_t status;     /* its number in the module status */
	uint32_t last_stack; /* the number of the stack that was counted there last, from 1 */
};

/* The facts about a module of the kernel, or the kernel itself, that are the same for all its frames. */
struct kernel_entry {
	char module[64];  /* "" for the kernel itself */
	int32_t build_id; /* an attribute; 0: not known */
};

enum { MAX_KERNEL_ENTRIES = 32 }; /* frames of further modules have no build id */

enum { MAX_TYPES = 32 }; /* of frames; the builder looks further ones up each time */

struct interval {
	struct names *names;
	struct runtimes *runtimes;
	struct truth_counts *truths;
	struct module_status *modules;
	const struct probe_set *probes; /* of the session; borrowed; NULL: there are none */
	struct builder *builder;
	struct builder_profile_spec specs[MAX_KINDS]; /* of the session's kinds */
	struct attributes common;		      /* attributes of all resources */
	bool error_frames, interpreter_frames;
	/* state of the interval being built */
	struct map profiles[MAX_KINDS]; /* by kind: struct process * -> profile handle + 1 */
	struct map files;		/* struct file * -> index into entries + 1 */
	struct file_entry *entries;	/* owned */
	uint32_t entry_cnt, entry_cap;
	int32_t *functions; /* by names' numbers; 0: not made yet. Owned */
	uint32_t function_cnt, function_cap;
	struct kernel_entry kernel[MAX_KERNEL_ENTRIES];
	uint32_t kernel_cnt;
	struct {
		const char *text;
		int32_t attribute;
	} types[MAX_TYPES]; /* attributes of the types of frames */
	uint32_t type_cnt;
	struct context_labels *contexts;
};

/* The configuration's attributes take precedence over the machine's. */
static int find_common(struct interval *iv, const struct agent_config *config)
{
	struct attributes *a = &iv->common;
	int error = config->service_name ? attributes_add(a, STR("service.name"), str_z(config->service_name)) : 0;

	if (!error && config->resource_attributes)
		error = attributes_parse(a, str_z(config->resource_attributes));
	return error ? error : host_facts_add(a);
}

int interval_new(struct names *names, struct runtimes *runtimes, struct truth_counts *truths, struct module_status *modules,
		 const struct agent_config *config, const struct session_kinds *kinds, struct interval **ret)
{
	struct interval *iv = calloc(1, sizeof(*iv));

	if (!iv)
		return -ENOMEM;
	iv->builder = builder_new();
	if (!iv->builder || find_common(iv, config)) {
		interval_free(iv);
		return -ENOMEM;
	}
	iv->names = names;
	iv->runtimes = runtimes;
	iv->truths = truths;
	iv->modules = modules;
	iv->probes = kinds->probes;
	iv->error_frames = config->error_frames;
	iv->interpreter_frames = config->interpreter_frames;
	for (uint32_t i = 0; i < kinds->count; i++) {
		iv->specs[i] = (struct builder_profile_spec){ .scope_name = "hearth", .scope_version = HEARTH_VERSION };
		kinds->list[i].kind->describe(&kinds->list[i], &iv->specs[i]);
	}
	*ret = iv;
	return 0;
}

static void fini_profiles(struct interval *iv)
{
	for (uint32_t i = 0; i < MAX_KINDS; i++)
		map_fini(&iv->profiles[i]);
}

void interval_free(struct interval *iv)
{
	if (!iv)
		return;
	context_labels_free(iv->contexts);
	builder_free(iv->builder);
	fini_profiles(iv);
	map_fini(&iv->files);
	attributes_fini(&iv->common);
	free(iv->entries);
	free(iv->functions);
	free(iv);
}

/* --- locations --- */

/* The attribute of frames of @type, a static text. */
static int32_t type_attribute(struct interval *iv, const char *type)
{
	int32_t attribute;

	for (uint32_t i = 0; i < iv->type_cnt; i++)
		if (iv->types[i].text == type)
			return iv->types[i].attribute;
	attribute = builder_attribute_string(iv->builder, "profile.frame.type", str_z(type));
	if (iv->type_cnt < MAX_TYPES) {
		iv->types[iv->type_cnt].text = type;
		iv->types[iv->type_cnt++].attribute = attribute;
	}
	return attribute;
}

static struct str base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return str_z(slash ? slash + 1 : path);
}

/* The source of the names of @file. */
static const char *names_source(const struct file *file)
{
	if (!file->index)
		return code_source_name(CODE_SOURCE_NONE);
	if (file->index->entry.index)
		return code_source_name(symbol_index_head(file->index->entry.index)->best);
	return file_names_are_coming(file) ? "pending" : code_source_name(CODE_SOURCE_NONE);
}

static void describe_file(struct interval *iv, const struct file *file, struct file_entry *entry)
{
	const struct build_ids *ids = &file->info.build_ids;
	struct builder *b = iv->builder;
	uint32_t count = 0;

	*entry = (struct file_entry){ .path = builder_string(b, str_z(file->path)),
				      .module = truth_counts_module(iv->truths, base_name(file->path)),
				      .status = module_status_find(iv->modules, base_name(file->path), ids->gnu,
								   names_source(file)) };
	if (ids->gnu[0])
		entry->attributes[count++] = builder_attribute_string(b, "process.executable.build_id.gnu", str_z(ids->gnu));
	if (ids->go[0])
		entry->attributes[count++] = builder_attribute_string(b, "process.executable.build_id.go", str_z(ids->go));
	if (ids->htlhash[0])
		entry->attributes[count++] = builder_attribute_string(b, "process.executable.build_id.htlhash",
								      str_z(ids->htlhash));
	if (file->index)
		entry->attributes[count++] = builder_attribute_string(b, MODULES_SOURCE_KEY, str_z(names_source(file)));
	entry->attribute_cnt = count;
}

/* The entry of @file, made at its first frame of the interval; @spare if there is no memory to keep one. */
static struct file_entry *file_entry(struct interval *iv, const struct file *file, struct file_entry *spare)
{
	uintptr_t known = (uintptr_t)map_get(&iv->files, (uintptr_t)file);

	if (known)
		return &iv->entries[known - 1];
	if (!vec_reach(&iv->entries, &iv->entry_cap, iv->entry_cnt) &&
	    !map_put(&iv->files, (uintptr_t)file, (void *)((uintptr_t)iv->entry_cnt + 1)))
		spare = &iv->entries[iv->entry_cnt++];
	describe_file(iv, file, spare);
	return spare;
}

static int32_t file_mapping(struct interval *iv, const struct file *file, struct file_entry *entry, uint64_t addr)
{
	const struct elf_segment *segment = NULL;

	for (uint32_t i = 0; i < file->info.segment_count && !segment; i++)
		if (addr - file->info.segments[i].vaddr < file->info.segments[i].size_bytes)
			segment = &file->info.segments[i];
	if (entry->has_mapping && entry->segment == segment)
		return entry->mapping;
	entry->mapping = builder_mapping(iv->builder, segment ? segment->vaddr : 0,
					 segment ? segment->vaddr + segment->size_bytes : 0, segment ? segment->offset : 0,
					 entry->path, entry->attributes, entry->attribute_cnt);
	entry->segment = segment;
	entry->has_mapping = true;
	return entry->mapping;
}

/* The build id of @module as an attribute; 0 if that is not known. */
static int32_t kernel_build_id_attribute(struct interval *iv, struct str module)
{
	struct kernel_entry *entry = iv->kernel;
	char id[BUILD_ID_CHARS];

	for (; entry < iv->kernel + iv->kernel_cnt; entry++)
		if (strlen(entry->module) == module.len && !memcmp(entry->module, module.data, module.len))
			return entry->build_id;
	if (iv->kernel_cnt == MAX_KERNEL_ENTRIES || module.len >= sizeof(entry->module))
		return 0;
	iv->kernel_cnt++;
	memcpy(entry->module, module.data, module.len);
	entry->module[module.len] = '\0';
	entry->build_id = kernel_build_id(entry->module, id)
				  ? builder_attribute_string(iv->builder, "process.executable.build_id.gnu", str_z(id))
				  : 0;
	return entry->build_id;
}

/* The mapping of a frame in the kernel's @module, "" for the kernel itself. */
static int32_t kernel_mapping(struct interval *iv, const struct trace_frame *frame, struct str module, uint32_t *module_ret)
{
	struct str name = module.len ? module : str_z(trace_frame_kind(frame)->module);
	int32_t build_id = kernel_build_id_attribute(iv, module);

	*module_ret = truth_counts_module(iv->truths, name);
	return builder_mapping(iv->builder, 0, 0, 0, builder_string(iv->builder, name), &build_id, build_id != 0);
}

/* The mapping of a frame in a file. */
static int32_t native_mapping(struct interval *iv, const struct trace_frame *frame, uint32_t *module_ret)
{
	struct file_entry spare, *entry = file_entry(iv, frame->file, &spare);

	*module_ret = entry->module;
	return file_mapping(iv, frame->file, entry, frame->addr);
}

/* The mapping of a frame in memory of its process that belongs to no file. */
static int32_t anonymous_mapping(struct interval *iv, const struct trace_frame *frame, uint32_t *module_ret)
{
	struct builder *b = iv->builder;
	int32_t process = builder_attribute_string(b, CODE_PROCESS_KEY, process_name(frame->process));

	*module_ret = truth_counts_module(iv->truths, str_z(trace_frame_kind(frame)->module));
	return builder_mapping(b, 0, 0, 0, builder_string(b, STR(ANONYMOUS_PATH)), &process, 1);
}

static int32_t build_function(struct builder *b, const struct frame_line *l)
{
	int32_t name = builder_string(b, l->name);
	int32_t system_name = l->system_name.len ? builder_string(b, l->system_name) : 0;
	int32_t file = l->file.len ? builder_string(b, l->file) : 0;

	return builder_function(b, name, system_name, file, l->start_line);
}

/* A function is looked up by its texts, which may be long, once an interval. */
static struct profile_line build_line(struct interval *iv, const struct frame_line *l)
{
	int32_t made, *function = l->function && l->function < iv->function_cnt ? &iv->functions[l->function] : &made;

	if (function == &made || !*function)
		*function = build_function(iv->builder, l);
	return (struct profile_line){ .function_index = *function, .line = l->line, .column = l->column };
}

/* The location of a frame that names.h knows, of the kernel or of a file. It gets the given mapping and type. */
static int32_t build_known(struct interval *iv, const struct trace_frame *frame, const struct frame_name *name,
			   int32_t mapping, const char *type, struct truth_frame *truth)
{
	struct builder *b = iv->builder;
	struct profile_line lines[CODE_MAX_FRAMES];
	int32_t attributes[3] = { type_attribute(iv, type) };
	uint32_t count = 1;

	truth->is_named = name->line_count;
	if (!name->line_count && name->size_bytes) {
		attributes[count++] = builder_attribute_int(b, CODE_START_KEY, (int64_t)name->start);
		attributes[count++] = builder_attribute_int(b, CODE_SIZE_KEY, (int64_t)name->size_bytes);
	}
	for (uint32_t i = 0; i < name->line_count; i++)
		lines[i] = build_line(iv, &name->lines[i]);
	return builder_location(b, mapping, frame->addr, lines, name->line_count, attributes, count);
}

static int32_t build_kernel(struct interval *iv, const struct trace_frame *frame, uint64_t time_ns,
			    struct truth_frame *truth)
{
	struct frame_name name;
	int32_t mapping;

	(void)time_ns;
	names_find(iv->names, frame, &name);
	mapping = kernel_mapping(iv, frame, name.module, &truth->module);
	return build_known(iv, frame, &name, mapping, trace_frame_kind(frame)->type, truth);
}

static int32_t build_native(struct interval *iv, const struct trace_frame *frame, uint64_t time_ns,
			    struct truth_frame *truth)
{
	const char *type = frame->file->info.build_ids.go[0] ? "go" : trace_frame_kind(frame)->type;
	struct frame_name name;

	(void)time_ns;
	names_find(iv->names, frame, &name);
	return build_known(iv, frame, &name, native_mapping(iv, frame, &truth->module), type, truth);
}

/* The location of a frame that a runtime names, as it was at @time_ns. */
static int32_t build_of_runtime(struct interval *iv, const struct trace_frame *frame, uint64_t time_ns,
				struct truth_frame *truth)
{
	int32_t mapping = anonymous_mapping(iv, frame, &truth->module), type;
	struct profile_line line = { 0 };
	struct runtime_name name;

	truth->is_named = runtimes_find(iv->runtimes, frame->process, frame->addr, time_ns, &name);
	type = type_attribute(iv, truth->is_named && name.type ? name.type : trace_frame_kind(frame)->type);
	if (truth->is_named)
		line = build_line(iv, &name.line);
	return builder_location(iv->builder, mapping, frame->addr, &line, truth->is_named, &type, 1);
}

/* The location of a frame in code that a runtime made. Its mapping is the source file, as that of a script; the line of a
 * place between calls is told as what it is. */
static int32_t build_code(struct interval *iv, const struct trace_frame *frame, struct truth_frame *truth)
{
	struct frame_line found[BLOCK_NAMES_MAX_DEPTH];
	struct profile_line lines[BLOCK_NAMES_MAX_DEPTH];
	const char *type = script_frame_type(frame);
	int32_t attributes[2] = { type_attribute(iv, type) }, mapping = 0;
	struct builder *b = iv->builder;
	bool is_approximate;
	uint32_t count = code_lines_find(frame, found, &is_approximate);

	truth->module = truth_counts_module(iv->truths, str_z(type));
	truth->is_named = count;
	attributes[1] = is_approximate ? builder_attribute_bool(b, CODE_APPROXIMATE_KEY, true) : 0;
	if (count)
		mapping = builder_mapping(b, 0, 0, 0, builder_string(b, code_lines_module(&found[count - 1], type)), NULL,
					  0);
	for (uint32_t i = 0; i < count; i++)
		lines[i] = build_line(iv, &found[i]);
	return builder_location(b, mapping, 0, lines, count, attributes, 1 + is_approximate);
}

/* The location of a frame of a script. The file of the script is its mapping, as the module is for those who write it. */
static int32_t build_script(struct interval *iv, const struct trace_frame *frame, uint64_t time_ns,
			    struct truth_frame *truth)
{
	int32_t type = type_attribute(iv, script_frame_type(frame)), mapping = 0;
	struct builder *b = iv->builder;
	struct profile_line line = { 0 };
	struct frame_line l;

	(void)time_ns;
	if (code_lines_are_of(frame))
		return build_code(iv, frame, truth);
	truth->module = truth_counts_module(iv->truths, str_z(trace_frame_kind(frame)->module));
	truth->is_named = script_frame_find(frame, &l);
	if (truth->is_named) {
		mapping = builder_mapping(b, 0, 0, 0, builder_string(b, l.file), NULL, 0);
		line = build_line(iv, &l);
	}
	return builder_location(b, mapping, 0, &line, truth->is_named, &type, 1);
}

/* The location of @frame as it was at @time_ns (UINT64_MAX: the latest). */
static int32_t build_frame(struct interval *iv, const struct trace_frame *frame, uint64_t time_ns, struct truth_frame *truth)
{
	static int32_t (*const builders[NAMER_MAX])(struct interval * iv, const struct trace_frame *frame, uint64_t time_ns,
						    struct truth_frame *truth) = {
		[NAMER_KERNEL] = build_kernel,
		[NAMER_FILE] = build_native,
		[NAMER_RUNTIME] = build_of_runtime,
		[NAMER_OBJECT] = build_script,
	};

	return builders[trace_frame_kind(frame)->namer](iv, frame, time_ns, truth);
}

/* The profile of @p and the session's @kind. */
static uint32_t build_profile(struct interval *iv, struct process *p, uint32_t kind)
{
	uintptr_t known = (uintptr_t)map_get(&iv->profiles[kind], (uintptr_t)p);
	uint32_t profile;

	if (known)
		return (uint32_t)(known - 1);
	profile = builder_profile(iv->builder, resource_build(iv->builder, p, &iv->common), &iv->specs[kind]);
	(void)map_put(&iv->profiles[kind], (uintptr_t)p,
		      (void *)((uintptr_t)profile + 1)); /* without this it is found again by its bytes */
	return profile;
}

/* --- the interval --- */

/* What each distinct frame of an interval came to. */
struct built_frame {
	int32_t location;
	enum frame_glue glue;
};

enum { MAX_STACK = MAX_KERNEL_FRAMES + MAX_MERGED_FRAMES + 1 };

/* Puts the frames of @trace, which are in @built, at @indices; returns their number.  Code that was made while the program
 * ran counts as it was at @time_ns, unless that is UINT64_MAX. */
static uint32_t put_stack(struct interval *iv, const struct traces *t, const struct trace *trace,
			  const struct built_frame *built, uint64_t time_ns, int32_t indices[MAX_STACK])
{
	uint32_t kept[MAX_MERGED_FRAMES];
	const uint32_t *ids = traces_frame_ids(t, trace);
	uint32_t used = 0, count = trace->frame_cnt;
	bool is_called = true;

	if (trace->is_logical && count <= MAX_MERGED_FRAMES) {
		count = logical_frames(iv->names, t, ids, count, kept);
		ids = kept;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct trace_frame *frame = traces_frame(t, ids[i]);
		struct truth_frame truth;

		is_called &= trace_frame_kind(frame)->namer != NAMER_OBJECT;
		if (trace->has_script && !iv->interpreter_frames &&
		    (built[ids[i]].glue == FRAME_GLUE || (built[ids[i]].glue == FRAME_UNNAMED && !is_called)))
			continue;
		indices[used] = built[ids[i]].location;
		if (time_ns != UINT64_MAX && trace_frame_kind(frame)->namer == NAMER_RUNTIME)
			indices[used] = build_frame(iv, frame, time_ns, &truth);
		used++;
	}
	if (walk_end_is_truncated(trace->end) && (iv->error_frames || trace->end == END_OUTSIDE))
		indices[used++] = event_labels_marker(iv->builder, trace->end, type_attribute(iv, TRUTH_MARKER_TYPE));
	return used;
}

static int32_t build_stack(struct interval *iv, const struct traces *t, const struct trace *trace,
			   const struct built_frame *built, uint64_t time_ns)
{
	int32_t indices[MAX_STACK];

	return builder_stack(iv->builder, indices, put_stack(iv, t, trace, built, time_ns, indices));
}

/* The stack of a wait with that of @waker on it. */
static int32_t build_joined(struct interval *iv, const struct traces *t, const struct trace *trace,
			    const struct waker *waker, const struct built_frame *built)
{
	int32_t indices[2 * MAX_STACK + 1];
	uint32_t used = put_stack(iv, t, traces_get(t, waker->trace), built, waker->woken_ns, indices);

	indices[used++] = wait_labels_separator(iv->builder, waker, type_attribute(iv, WAKER_TYPE));
	used += put_stack(iv, t, trace, built, waker->woken_ns, indices + used);
	return builder_stack(iv->builder, indices, used);
}

static void build_event(struct interval *iv, const struct traces *t, const struct trace_event *e, enum walk_end end,
			int32_t stack)
{
	int32_t attributes[EVENT_LABELS + CONTEXT_LABELS], link;
	uint32_t count = event_labels_build(iv->builder, t, e, iv->probes, end, attributes);

	count += context_labels_of(iv->contexts, e, &attributes[count], &link);
	builder_event(iv->builder, build_profile(iv, e->process, e->kind), stack, attributes, count, link,
		      clock_mono_to_unix_ns(e->time_ns), e->value != 1, (int64_t)e->value);
}

static void begin_functions(struct interval *iv)
{
	uint32_t count = names_function_count(iv->names);

	if (count > iv->function_cap) {
		free(iv->functions);
		iv->functions = malloc(2 * (size_t)count * sizeof(*iv->functions));
		iv->function_cap = iv->functions ? 2 * count : 0;
	}
	iv->function_cnt = count < iv->function_cap ? count : iv->function_cap;
	if (iv->function_cnt)
		memset(iv->functions, 0, iv->function_cnt * sizeof(*iv->functions));
}

/* The builder's handles and indices are new each interval. */
static void begin(struct interval *iv)
{
	fini_profiles(iv);
	map_fini(&iv->files);
	iv->entry_cnt = 0;
	iv->kernel_cnt = 0;
	begin_functions(iv);
	iv->type_cnt = 0;
}

/* A sample counts once for each file it has a frame in. */
static void count_modules(struct interval *iv, const struct traces *t, const struct truth_stack *stacks)
{
	for (uint32_t i = 0; i < traces_count(t); i++) {
		const struct trace *trace = traces_get(t, i);
		const uint32_t *ids = traces_frame_ids(t, trace);

		for (uint32_t k = 0; k < trace->frame_cnt; k++) {
			const struct trace_frame *frame = traces_frame(t, ids[k]);
			uintptr_t known = frame->file ? (uintptr_t)map_get(&iv->files, (uintptr_t)frame->file) : 0;

			if (!known || iv->entries[known - 1].last_stack == i + 1)
				continue;
			iv->entries[known - 1].last_stack = i + 1;
			module_status_add(iv->modules, iv->entries[known - 1].status, stacks[i].events);
		}
	}
	module_status_publish(iv->modules);
}

int interval_build(struct interval *iv, const struct traces *t, uint64_t start_ns, uint64_t end_ns,
		   const struct wait_hook *hook, struct profiles **ret)
{
	uint32_t frames = traces_frame_count(t), stacks = traces_count(t), events = traces_event_count(t);
	AUTO_FREE struct built_frame *built = calloc(frames + 1, sizeof(*built));
	AUTO_FREE struct truth_frame *truths = calloc(frames + 1, sizeof(*truths));
	AUTO_FREE struct truth_stack *scratch = calloc(stacks + 1, sizeof(*scratch));
	AUTO_FREE int32_t *stack = calloc(stacks + 1, sizeof(*stack));

	if (!built || !truths || !scratch || !stack || names_update(iv->names, t, start_ns, hook))
		return -ENOMEM;
	begin(iv);
	if (context_labels_build(&iv->contexts, iv->builder, t))
		return -ENOMEM;
	for (uint32_t i = 0; i < frames; i++) {
		built[i].location = build_frame(iv, traces_frame(t, i), UINT64_MAX, &truths[i]);
		built[i].glue = script_frame_glue(iv->names, traces_frame(t, i));
		wait_hook_run(hook);
	}
	for (uint32_t i = 0; i < stacks; i++) {
		stack[i] = build_stack(iv, t, traces_get(t, i), built, UINT64_MAX);
		wait_hook_run(hook);
	}
	for (uint32_t i = 0; i < events; i++) {
		const struct trace_event *e = &traces_events(t)[i];
		const struct trace *trace = traces_get(t, e->trace);
		bool varies = trace->asks_runtimes && runtimes_vary(iv->runtimes, e->process);
		const struct waker *waker = e->waker ? wakers_get(traces_wakers(t), e->waker - 1) : NULL;

		build_event(iv, t, e, trace->end,
			    waker    ? build_joined(iv, t, trace, waker, built)
			    : varies ? build_stack(iv, t, trace, built, e->time_ns)
				     : stack[e->trace]);
		wait_hook_run(hook);
	}
	truth_counts_add(iv->truths, t, truths, scratch);
	count_modules(iv, t, scratch);
	return builder_freeze(iv->builder, clock_mono_to_unix_ns(start_ns), clock_mono_to_unix_ns(end_ns), ret);
}

size_t interval_memory_bytes(const struct interval *iv)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < MAX_KINDS; i++)
		bytes += map_memory_bytes(&iv->profiles[i]);
	return bytes + sizeof(*iv) + builder_memory_bytes(iv->builder) + map_memory_bytes(&iv->files) +
	       iv->entry_cap * sizeof(*iv->entries) + iv->function_cap * sizeof(*iv->functions) +
	       context_labels_memory_bytes(iv->contexts);
}
