/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the samples of a frozen struct profiles. All locations are resolved into frames before the first call. If each is
 * one frame, their indices are the frames' ids and a stack is given as it lies in the model; else a sample costs a number a
 * frame. The arrays are the call's own. Any thread, as the model is never written.
 */
#include "proto/sums/stack_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "proto/sums/modules.h"
#include "proto/unnamed.h"

enum { MAX_STACK_FRAMES = 1 << 20 }; /* the rest, at the root, is cut: a small hostile input can ask for 10^12 */

struct walk {
	const struct profiles *p;
	struct frame *frames;	/* of all locations, one after another */
	uint32_t *first;	/* where a location's frames start; one more at the end */
	bool has_inlined;	/* locations of several frames */
	enum key *keys;		/* by attribute: which of those that matter here? */
	struct module *modules; /* by mapping */
	uint32_t *stack;	/* of the current sample */
	size_t stack_cap;
	struct sample_kind kind; /* of the current profile */
	struct str process;	 /* of the current resource */
	struct sums *sums;	 /* by stack, of the current profile; NULL: each sample comes alone */
	uint32_t *seen;		 /* the stacks that have one */
	uint32_t seen_count;
	int (*fn)(void *arg, const struct stack_sample *s);
	void *arg;
};

enum key { KEY_OTHER, KEY_THREAD_NAME, KEY_FRAME_TYPE };

/* The facts that a mapping gives of its frames. */
struct module {
	struct str name, source;
};

struct sums {
	uint64_t weight, events;
	const struct sample *sample; /* the first */
};

static struct str base_name(struct str path)
{
	const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;
	uint32_t skip = slash ? (uint32_t)(slash - path.data) + 1 : 0;

	return (struct str){ path.data + skip, path.len - skip };
}

static const struct any_value *find_key(const struct walk *w, const struct indices *attributes, enum key key)
{
	for (uint32_t i = 0; i < attributes->count; i++)
		if (w->keys[attributes->items[i]] == key)
			return &w->p->dict.attributes[attributes->items[i]].value;
	return NULL;
}

static struct module resolve_mapping(const struct profiles *p, const struct profile_mapping *mapping)
{
	const struct any_value *source = profiles_find_attribute(p, &mapping->attributes, MODULES_SOURCE_KEY);

	return (struct module){ base_name(profiles_string(p, mapping->filename_strindex)), profiles_value_text(p, source) };
}

static void resolve_location(struct walk *w, uint32_t index)
{
	const struct profiles *p = w->p;
	const struct profile_location *l = &p->dict.locations[index];
	const struct any_value *type = find_key(w, &l->attributes, KEY_FRAME_TYPE);
	const struct module *module = &w->modules[l->mapping_index];
	struct frame base = {
		.function = STR(""),
		.file = STR(""),
		.module = module->name,
		.type = STR("unknown"),
		.source = module->source,
		.address = l->address,
		.profiles = p,
		.location = index,
	};
	uint32_t count = w->first[index + 1] - w->first[index];

	if (type)
		profiles_value_string(p, type, &base.type);
	if (!base.module.len && str_is(base.type, "kernel"))
		base.module = STR("[kernel]");
	for (uint32_t i = 0; i < count; i++) {
		struct frame *f = &w->frames[w->first[index] + i];

		*f = base;
		f->id = w->first[index] + i;
		if (l->line_count) {
			const struct profile_function *function = &p->dict.functions[l->lines[i].function_index];
			int32_t name = function->name_strindex;

			f->function = profiles_string(p, name ? name : function->system_name_strindex);
			f->file = profiles_string(p, function->filename_strindex);
			f->line = l->lines[i].line;
			f->inlined = i + 1 < count;
		}
	}
}

size_t stack_walk_frame_count(const struct profiles *p)
{
	size_t count = 0;

	for (uint32_t i = 0; i < p->dict.location_count; i++)
		count += p->dict.locations[i].line_count ? p->dict.locations[i].line_count : 1;
	return count;
}

static int walk_init(struct walk *w)
{
	const struct dictionary *d = &w->p->dict;
	size_t count = stack_walk_frame_count(w->p);

	if (count > UINT32_MAX)
		return -ENOMEM;
	w->first = malloc(((size_t)d->location_count + 1) * sizeof(*w->first));
	w->frames = reallocarray(NULL, count + 1, sizeof(*w->frames));
	w->keys = calloc((size_t)d->attribute_count + 1, sizeof(*w->keys));
	w->modules = reallocarray(NULL, d->mapping_count, sizeof(*w->modules));
	if (!w->first || !w->frames || !w->keys || !w->modules)
		return -ENOMEM;
	w->has_inlined = count != d->location_count;
	for (uint32_t i = 0; i < d->mapping_count; i++)
		w->modules[i] = resolve_mapping(w->p, &d->mappings[i]);
	for (uint32_t i = 0; i < d->attribute_count; i++) {
		struct str key = profiles_string(w->p, d->attributes[i].key_strindex);

		w->keys[i] = str_is(key, "thread.name")		 ? KEY_THREAD_NAME
			     : str_is(key, "profile.frame.type") ? KEY_FRAME_TYPE
								 : KEY_OTHER;
	}
	w->first[0] = 0;
	for (uint32_t i = 0; i < d->location_count; i++) {
		w->first[i + 1] = w->first[i] + (d->locations[i].line_count ? d->locations[i].line_count : 1);
		resolve_location(w, i);
	}
	return 0;
}

static void walk_fini(struct walk *w)
{
	free(w->first);
	free(w->frames);
	free(w->keys);
	free(w->modules);
	free(w->stack);
	free(w->sums);
	free(w->seen);
}

/* Finds the frames of @s. -ENOMEM. */
static int walk_stack(struct walk *w, struct stack_sample *s)
{
	const struct indices *locations = &w->p->dict.stacks[s->sample->stack_index];
	size_t at = 0;

	if (!w->has_inlined) {
		s->frame_ids = (const uint32_t *)locations->items;
		s->frame_count = locations->count < MAX_STACK_FRAMES ? locations->count : MAX_STACK_FRAMES;
		return 0;
	}
	for (uint32_t i = 0; i < locations->count && at < MAX_STACK_FRAMES; i++) {
		uint32_t first = w->first[locations->items[i]], end = w->first[locations->items[i] + 1];

		if (end - first > MAX_STACK_FRAMES - at)
			end = first + (uint32_t)(MAX_STACK_FRAMES - at);
		if (vec_reserve(&w->stack, &w->stack_cap, at + (end - first)))
			return -ENOMEM;
		while (first < end)
			w->stack[at++] = first++;
	}
	s->frame_ids = w->stack;
	s->frame_count = (uint32_t)at;
	return 0;
}

static uint64_t sample_weight(const struct sample *s, uint64_t events)
{
	uint64_t sum = 0;

	if (!s->value_count)
		return events;
	for (uint32_t i = 0; i < s->value_count; i++)
		sum += s->values[i] > 0 ? (uint64_t)s->values[i] : 0;
	return sum;
}

static struct sample_kind kind_of(const struct profiles *p, const struct profile *profile)
{
	struct str period_type = profiles_string(p, profile->period_type.type_strindex);
	struct str period_unit = profiles_string(p, profile->period_type.unit_strindex);
	struct sample_kind kind = {
		.type = profiles_string(p, profile->sample_type.type_strindex),
		.unit = profiles_string(p, profile->sample_type.unit_strindex),
	};
	bool is_count = str_is(kind.unit, "count");

	if (str_is(kind.type, "cpu") && str_is(kind.unit, "nanoseconds"))
		kind.cpu_ns = 1;
	else if (is_count && str_is(period_type, "cpu") && str_is(period_unit, "nanoseconds") && profile->period > 0)
		kind.cpu_ns = (uint64_t)profile->period;
	kind.counts_events = is_count && str_is(kind.type, "samples");
	return kind;
}

/* A sample without times that counts samples is that many. */
static uint64_t event_count(const struct walk *w, const struct sample *s)
{
	if (s->timestamp_count)
		return s->timestamp_count;
	return w->kind.counts_events && s->value_count == 1 && s->values[0] > 0 ? (uint64_t)s->values[0] : 1;
}

/* @s has its weight and events. */
static int visit(struct walk *w, struct stack_sample *s)
{
	const struct any_value *name = find_key(w, &s->sample->attributes, KEY_THREAD_NAME);
	int err = walk_stack(w, s);

	if (err)
		return err;
	s->comm = profiles_value_text(w->p, name);
	if (!s->comm.len)
		s->comm = w->process;
	s->frames = w->frames;
	return w->fn(w->arg, s);
}

static void add_to_sums(struct walk *w, const struct stack_sample *s)
{
	struct sums *sums = &w->sums[s->sample->stack_index];

	if (!sums->sample) {
		sums->sample = s->sample;
		w->seen[w->seen_count++] = (uint32_t)s->sample->stack_index;
	}
	sums->weight += s->weight;
	sums->events += s->events;
}

static int visit_sums(struct walk *w, struct stack_sample *s)
{
	int err = 0;

	for (uint32_t i = 0; i < w->seen_count && !err; i++) {
		struct sums *sums = &w->sums[w->seen[i]];

		s->sample = sums->sample;
		s->weight = sums->weight;
		s->events = sums->events;
		*sums = (struct sums){ 0 };
		err = visit(w, s);
	}
	w->seen_count = 0;
	return err;
}

/* Visits the profile if it is @of_cpu time, or if it is not. */
static int visit_profile(struct walk *w, struct stack_sample *s, bool of_cpu)
{
	w->kind = kind_of(w->p, s->profile);
	if ((w->kind.cpu_ns > 0) != of_cpu)
		return 0;
	for (uint32_t i = 0; i < s->profile->sample_count; i++) {
		int err = 0;

		s->sample = &s->profile->samples[i];
		s->events = event_count(w, s->sample);
		s->weight = sample_weight(s->sample, s->events);
		if (w->sums)
			add_to_sums(w, s);
		else
			err = visit(w, s);
		if (err)
			return err;
	}
	return visit_sums(w, s);
}

static int visit_profiles(struct walk *w, bool of_cpu)
{
	const struct profiles *p = w->p;
	struct stack_sample s = { .profiles = p, .group = STR(""), .kind = &w->kind };
	int err = 0;

	for (uint32_t r = 0; !err && r < p->resource_count; r++) {
		const struct key_values *attributes = &p->resources[r].resource.attributes;
		const struct any_value *pid = profiles_find_key(p, attributes, "process.pid");
		const struct any_value *name = profiles_find_key(p, attributes, "process.executable.name");

		s.resource = &p->resources[r];
		s.pid = pid && pid->kind == VALUE_INT ? pid->integer : -1;
		w->process = profiles_value_text(p, name);
		for (uint32_t c = 0; !err && c < s.resource->scope_count; c++) {
			for (uint32_t i = 0; !err && i < s.resource->scopes[c].profile_count; i++) {
				s.profile = &s.resource->scopes[c].profiles[i];
				err = visit_profile(w, &s, of_cpu);
			}
		}
	}
	return err;
}

static int visit_all(struct walk *w)
{
	int err = walk_init(w);

	if (!err)
		err = visit_profiles(w, true);
	return err ? err : visit_profiles(w, false);
}

int stack_walk_each(const struct profiles *p, int (*fn)(void *arg, const struct stack_sample *s), void *arg)
{
	AUTO(walk_fini) struct walk w = { .p = p, .fn = fn, .arg = arg };

	return visit_all(&w);
}

int stack_walk_each_sum(const struct profiles *p, int (*fn)(void *arg, const struct stack_sample *s), void *arg)
{
	AUTO(walk_fini) struct walk w = { .p = p, .fn = fn, .arg = arg };

	w.sums = calloc(p->dict.stack_count, sizeof(*w.sums));
	w.seen = reallocarray(NULL, p->dict.stack_count, sizeof(*w.seen));
	return w.sums && w.seen ? visit_all(&w) : -ENOMEM;
}

/* The module is the frame's, which may be "[kernel]". */
static void print_unnamed(const struct frame *f, struct buf *out)
{
	struct unnamed u = UNNAMED_NOTHING;

	if (f->profiles)
		u = unnamed_of_location(f->profiles, &f->profiles->dict.locations[f->location]);
	u.module = f->module;
	unnamed_print(&u, out);
}

void stack_frame_print(const struct frame *f, unsigned extras, struct buf *out)
{
	struct str file = base_name(f->file);

	if (f->function.len)
		buf_append(out, f->function.data, f->function.len);
	else
		print_unnamed(f, out);
	if (extras & FRAME_PLACE && file.len) {
		buf_putc(out, ' ');
		buf_append(out, file.data, file.len);
		if (f->line > 0)
			buf_printf(out, ":%" PRId64, f->line);
	}
	if (extras & FRAME_INLINED && f->inlined)
		buf_puts(out, " (inlined)");
}

void stack_walk_put_key(struct buf *key, struct str text)
{
	buf_append(key, text.data, strnlen(text.data, text.len));
	buf_putc(key, '\0');
}

void stack_walk_put_key_name(struct buf *key, const struct frame *f, unsigned extras)
{
	size_t from = key->len;

	stack_frame_print(f, extras, key);
	for (uint8_t *nul; from < key->len && (nul = memchr(key->data + from, '\0', key->len - from));)
		*nul = '?'; /* what stands in names is anybody's */
	buf_putc(key, '\0');
}

static void keep_name(char *dst, size_t size, struct str s)
{
	size_t len = s.len < size - 1 ? s.len : size - 1;

	memcpy(dst, s.data, len);
	dst[len] = '\0';
}

static bool same_name(const char *kept, size_t size, struct str s)
{
	size_t len = s.len < size - 1 ? s.len : size - 1;

	return !memcmp(kept, s.data, len) && !kept[len];
}

bool stack_weight_add(struct weight_sum *sum, const struct stack_sample *s)
{
	const struct sample_kind *kind = s->kind;

	if (!sum->events) {
		keep_name(sum->type, sizeof(sum->type), kind->type);
		keep_name(sum->unit, sizeof(sum->unit), kind->unit);
	} else if (!same_name(sum->type, sizeof(sum->type), kind->type) ||
		   !same_name(sum->unit, sizeof(sum->unit), kind->unit)) {
		sum->other_events += s->events;
		return false;
	}
	sum->weight += s->weight;
	sum->events += s->events;
	sum->cpu_ns += s->weight * kind->cpu_ns;
	return true;
}
