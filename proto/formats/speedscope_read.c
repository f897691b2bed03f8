/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads speedscope's own files (file-format-schema.json): profiles of samples, and of events that open and close frames.
 * Each is a thread. The format has no clock, only weights, so what comes out are sums.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/formats/formats.h"
#include "proto/stack_maker.h"

enum { MAX_DEPTH = 4096 }; /* of open frames */

#define SPEC(type, unit)                                                                                               \
	{                                                                                                              \
		.scope_name = "hearth", .scope_version = HEARTH_VERSION, .sample_type = (type), .sample_unit = (unit), \
		.period_type = "", .period_unit = ""                                                                   \
	}

static const struct unit {
	const char *name;
	double scale;
	struct builder_profile_spec spec, own_spec; /* of others' files; of hearth's, whose times are CPU time */
} units[] = {
	{ "none", 1, SPEC("samples", "count"), SPEC("samples", "count") },
	{ "nanoseconds", 1, SPEC("time", "nanoseconds"), SPEC("cpu", "nanoseconds") },
	{ "microseconds", 1e3, SPEC("time", "nanoseconds"), SPEC("cpu", "nanoseconds") },
	{ "milliseconds", 1e6, SPEC("time", "nanoseconds"), SPEC("cpu", "nanoseconds") },
	{ "seconds", 1e9, SPEC("time", "nanoseconds"), SPEC("cpu", "nanoseconds") },
	{ "bytes", 1, SPEC("memory", "bytes"), SPEC("memory", "bytes") },
};

struct reader {
	struct builder *b;
	struct stack_maker maker;
	struct otlp_error *error;
	json_t *frames;	    /* borrowed */
	int32_t *locations; /* of frames, by index; 0: not made yet */
	bool is_own;
	size_t profile_number;
	uint32_t profile;
	int32_t attributes[2];
	uint32_t attribute_count;
	double scale, carried;
};

static struct str text_of(const json_t *object, const char *key)
{
	const json_t *s = json_object_get(object, key);

	return json_is_string(s) ? (struct str){ json_string_value(s), (uint32_t)json_string_length(s) } : STR("");
}

static bool add_frame(struct reader *r, const json_t *index)
{
	json_int_t i = json_is_integer(index) ? json_integer_value(index) : -1;
	const json_t *frame = i >= 0 ? json_array_get(r->frames, (size_t)i) : NULL;
	struct frame_said f = FRAME_SAID_NOTHING;

	if (!frame)
		return false;
	if (r->locations[i]) {
		stack_maker_repeat(&r->maker, r->locations[i]);
		return true;
	}
	f.function = text_of(frame, "name");
	f.file = text_of(frame, "file");
	f.line = json_integer_value(json_object_get(frame, "line"));
	f.column = json_integer_value(json_object_get(frame, "col"));
	stack_maker_add(&r->maker, &f);
	r->locations[i] = stack_maker_last(&r->maker);
	return true;
}

static void add_value(struct reader *r, double weight)
{
	double whole;

	r->carried = modf(weight * r->scale + r->carried, &whole);
	builder_value(r->b, r->profile, stack_maker_end(&r->maker), r->attributes, r->attribute_count, 0, (int64_t)whole);
}

static bool is_weight(const json_t *w)
{
	return json_is_number(w) && json_number_value(w) >= 0 && json_number_value(w) < 0x1p50;
}

static int read_sampled(struct reader *r, const json_t *profile)
{
	const json_t *samples = json_object_get(profile, "samples"), *weights = json_object_get(profile, "weights");
	const json_t *stack;
	size_t i;

	if (!json_is_array(samples) || !json_is_array(weights) || json_array_size(samples) != json_array_size(weights))
		return read_fail(r->error, "profile %zu has not as many weights as samples", r->profile_number);
	json_array_foreach(samples, i, stack)
	{
		const json_t *weight = json_array_get(weights, i);

		for (size_t k = json_array_size(stack); k > 0; k--) {
			if (!add_frame(r, json_array_get(stack, k - 1)))
				return read_fail(r->error, "profile %zu, sample %zu: a frame that is not in the table",
						 r->profile_number, i);
		}
		if (!json_is_array(stack) || !is_weight(weight))
			return read_fail(r->error, "profile %zu, sample %zu: no list of frames, or no weight",
					 r->profile_number, i);
		add_value(r, json_number_value(weight));
	}
	return 0;
}

/* Adds a sample of the frames that were open since the event before. */
static int add_span(struct reader *r, const json_t *const *open, size_t depth, double weight)
{
	for (size_t k = depth; k > 0; k--) {
		if (!add_frame(r, open[k - 1]))
			return read_fail(r->error, "profile %zu: a frame that is not in the table", r->profile_number);
	}
	add_value(r, weight);
	return 0;
}

static int read_evented(struct reader *r, const json_t *profile)
{
	AUTO_FREE const json_t **open = calloc(MAX_DEPTH, sizeof(*open));
	const json_t *events = json_object_get(profile, "events"), *event;
	double last = json_number_value(json_object_get(profile, "startValue"));
	size_t depth = 0, i;

	if (!open)
		return -ENOMEM;
	if (!json_is_array(events))
		return read_fail(r->error, "profile %zu has no events", r->profile_number);
	json_array_foreach(events, i, event)
	{
		const json_t *at = json_object_get(event, "at"), *frame = json_object_get(event, "frame");
		bool opens = str_is(text_of(event, "type"), "O");
		double now = json_number_value(at);

		if (!json_is_number(at) || now < last || now - last >= 0x1p50 || !json_is_integer(frame))
			return read_fail(r->error,
					 "profile %zu, event %zu: no place in time after the event before it, or no frame",
					 r->profile_number, i);
		if (opens ? depth == MAX_DEPTH : !depth || !json_equal(open[depth - 1], frame))
			return read_fail(r->error, "profile %zu, event %zu: %s", r->profile_number, i,
					 opens ? "more than 4096 open frames"
					       : "closes what is not the innermost open frame");
		if (now > last && depth && add_span(r, open, depth, now - last))
			return -EBADMSG;
		last = now;
		if (opens)
			open[depth++] = frame;
		else
			depth--;
	}
	return 0;
}

/* "name (pid 12, tid 34)" as hearth writes it, or any name. */
static struct str read_name(struct str name, long long *pid, long long *tid)
{
	const char *open = name.len ? memrchr(name.data, '(', name.len) : NULL;
	char end[64];
	size_t len;

	*pid = *tid = -1;
	if (!open || open < name.data + 1 || open[-1] != ' ')
		return name;
	len = (size_t)(name.data + name.len - open);
	if (len >= sizeof(end))
		return name;
	memcpy(end, open, len);
	end[len] = '\0';
	if (sscanf(end, "(pid %lld, tid %lld)", pid, tid) < 1)
		return name;
	if (*tid < 0)
		*tid = *pid;
	return (struct str){ name.data, (uint32_t)(open - 1 - name.data) };
}

static int read_profile(struct reader *r, const json_t *profile)
{
	struct str type = text_of(profile, "type"), unit = text_of(profile, "unit"), name;
	struct key_value resource = { .key = STR("process.pid"), .value = { .kind = VALUE_INT } };
	const struct unit *u = NULL;
	long long pid, tid;

	for (size_t i = 0; i < ARRAY_LEN(units) && !u; i++) {
		if (str_is(unit, units[i].name))
			u = &units[i];
	}
	if (!u || (!str_is(type, "sampled") && !str_is(type, "evented")))
		return read_fail(r->error, "profile %zu is of an unknown type or unit", r->profile_number);
	name = read_name(text_of(profile, "name"), &pid, &tid);
	resource.value.integer = pid;
	r->profile = builder_profile(r->b, builder_resource(r->b, &resource, pid >= 0), r->is_own ? &u->own_spec : &u->spec);
	r->scale = u->scale;
	r->carried = 1e-6;
	r->attribute_count = 0;
	if (name.len)
		r->attributes[r->attribute_count++] = builder_attribute_string(r->b, "thread.name", name);
	if (tid >= 0)
		r->attributes[r->attribute_count++] = builder_attribute_int(r->b, "thread.id", tid);
	return str_is(type, "sampled") ? read_sampled(r, profile) : read_evented(r, profile);
}

static int read_profiles(struct reader *r, const json_t *root)
{
	const json_t *profiles = json_object_get(root, "profiles"), *profile;
	size_t i;
	int err = 0;

	r->frames = json_object_get(json_object_get(root, "shared"), "frames");
	if (!json_is_array(r->frames) || !json_is_array(profiles))
		return read_fail(r->error, "no \"shared\" frames or no \"profiles\"");
	r->locations = calloc(json_array_size(r->frames) + 1, sizeof(*r->locations));
	if (!r->locations)
		return -ENOMEM;
	json_array_foreach(profiles, i, profile)
	{
		r->profile_number = i;
		err = read_profile(r, profile);
		if (err)
			break;
	}
	return err;
}

bool speedscope_fits(const uint8_t *data, size_t len)
{
	static const char *const keys[] = { "shared", "$schema", "resourceProfiles", "dictionary", NULL };
	int key = read_json_key(data, len, keys);

	return key == 0 || (key == 1 && memmem(data, len, "speedscope.app", strlen("speedscope.app")));
}

int speedscope_read(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *error)
{
	struct reader r = { .error = error };
	json_error_t why;
	json_t *root = json_loadb((const char *)data, len, 0, &why);
	int err;

	if (!root)
		return json_error_code(&why) == json_error_out_of_memory
			       ? -ENOMEM
			       : read_fail(error, "line %d, column %d: %s", why.line, why.column, why.text);
	r.b = builder_new();
	stack_maker_init(&r.maker, r.b);
	r.is_own = !strncmp(text_of(root, "exporter").data, "hearth ", strlen("hearth "));
	err = r.b ? read_profiles(&r, root) : -ENOMEM;
	if (!err && stack_maker_failed(&r.maker))
		err = -ENOMEM;
	stack_maker_fini(&r.maker);
	free(r.locations);
	if (err)
		builder_free(r.b);
	else
		err = read_freeze(r.b, false, 0, 0, ret);
	json_decref(root);
	return err;
}
