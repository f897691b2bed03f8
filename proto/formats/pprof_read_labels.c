/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A label is an attribute of its sample, unless its key is one by which OpenTelemetry describes a process, a container or a
 * machine: then of the resource, which is how hearth wrote it. trace_id and span_id are the link. A label is parsed the
 * first time its bytes come.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/pprof/profile.pb.h"
#include "proto/formats/pprof_read.h"

static bool begins_with(struct str s, const char *begin)
{
	size_t len = strlen(begin);

	return s.len >= len && !memcmp(s.data, begin, len);
}

static bool is_of_resource(struct str key)
{
	static const char *const spaces[] = { "process.",    "container.", "service.",	 "host.",  "os.",     "k8s.",
					      "deployment.", "cloud.",	   "telemetry.", "faas.",  "device.", "aws.",
					      "gcp.",	     "azure.",	   "heroku.",	 "cgroup." };

	if (begins_with(key, "process.context."))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
		if (begins_with(key, spaces[i]))
			return true;
	}
	return false;
}

static bool is_hex(struct str s, uint32_t len)
{
	if (s.len != len)
		return false;
	for (uint32_t i = 0; i < len; i++) {
		if (!strchr("0123456789abcdef", s.data[i]) || !s.data[i])
			return false;
	}
	return true;
}

static void unhex(struct str s, uint8_t *out)
{
	static const char digits[] = "0123456789abcdef";

	for (uint32_t i = 0; i < s.len / 2; i++)
		out[i] = (uint8_t)((strchr(digits, s.data[2 * i]) - digits) << 4 |
				   (strchr(digits, s.data[2 * i + 1]) - digits));
}

static struct any_value value_of(const struct label *l)
{
	if (l->is_number)
		return (struct any_value){ .kind = VALUE_INT, .integer = l->number };
	return (struct any_value){ .kind = VALUE_STRING, .string = l->text };
}

static bool parse(struct pprof_reader *r, struct slice s, struct label *l)
{
	struct any_value value;
	struct field f;

	*l = (struct label){ .key = STR(""), .text = STR(""), .is_number = true };
	while (pprof_next(r, &s, &f)) {
		if (f.is_bytes)
			continue;
		if (f.number == pprof_Label_key_tag) {
			l->key = pprof_text(r, f.at, f.value);
		} else if (f.number == pprof_Label_str_tag) {
			l->text = pprof_text(r, f.at, f.value);
			l->is_number = !f.value;
		} else if (f.number == pprof_Label_num_tag) {
			l->number = (int64_t)f.value;
		} else if (f.number == pprof_Label_num_unit_tag) {
			l->unit = builder_string(r->b, pprof_text(r, f.at, f.value));
		}
	}
	if (r->err)
		return false;
	if (!l->key.len)
		l->place = LABEL_NOTHING;
	else if (str_is(l->key, "trace_id") && is_hex(l->text, 32))
		l->place = LABEL_TRACE;
	else if (str_is(l->key, "span_id") && is_hex(l->text, 16))
		l->place = LABEL_SPAN;
	else
		l->place = is_of_resource(l->key) ? LABEL_RESOURCE : LABEL_SAMPLE;
	value = value_of(l);
	l->attribute = builder_attribute(r->b, l->key, &value, l->unit);
	return true;
}

/* The number of the label in @r->labels; -1 after an error. */
static int64_t known(struct pprof_reader *r, struct slice s)
{
	uint32_t index;
	int is_new = intern_add(r->label_bytes, s.at, (size_t)(s.end - s.at), &index);
	struct label l;

	if (is_new < 0) {
		r->err = -ENOMEM;
		return -1;
	}
	if (is_new) {
		if (!parse(r, s, &l))
			return -1;
		buf_append(&r->labels, &l, sizeof(l));
	}
	if (r->labels.failed)
		r->err = -ENOMEM;
	return r->err ? -1 : (int64_t)index;
}

static const struct label *label_at(const struct pprof_reader *r, uint32_t i)
{
	const int64_t *which = (const void *)r->items.data;

	return &((const struct label *)(const void *)r->labels.data)[which[i]];
}

static bool same_key(const struct label *a, const struct label *b)
{
	return a->place == b->place && a->key.len == b->key.len && !memcmp(a->key.data, b->key.data, a->key.len);
}

/* The values of a key that stands @count times among the labels from @first on, in one list of texts. */
static int32_t list_of(struct pprof_reader *r, uint32_t first, uint32_t labels)
{
	struct any_value items[PPROF_MAX_LABELS], list = { .kind = VALUE_ARRAY, .array = { items, 0 } };
	const struct label *key = label_at(r, first);
	char numbers[PPROF_MAX_LABELS][24];

	for (uint32_t i = first; i < labels; i++) {
		const struct label *l = label_at(r, i);
		uint32_t n = list.array.count;

		if (!same_key(l, key))
			continue;
		items[n] = value_of(l);
		if (l->is_number) {
			snprintf(numbers[n], sizeof(numbers[n]), "%" PRId64, l->number);
			items[n] = (struct any_value){ .kind = VALUE_STRING,
						       .string = { numbers[n], (uint32_t)strlen(numbers[n]) } };
		}
		list.array.count++;
	}
	return builder_attribute(r->b, key->key, &list, 0);
}

/* 0: an earlier one has the key; else how often it stands from @i on. */
static uint32_t times(const struct pprof_reader *r, uint32_t i, uint32_t labels)
{
	uint32_t n = 1;

	for (uint32_t j = 0; j < i; j++) {
		if (same_key(label_at(r, j), label_at(r, i)))
			return 0;
	}
	for (uint32_t j = i + 1; j < labels; j++)
		n += same_key(label_at(r, j), label_at(r, i));
	return n;
}

static void place_label(struct pprof_reader *r, uint32_t i, uint32_t labels)
{
	const struct label *l = label_at(r, i);
	uint32_t n = times(r, i, labels);

	if (n && l->place == LABEL_RESOURCE) {
		struct key_value kv = { .key = l->key, .value = value_of(l) };

		buf_append(&r->key_values, &kv, sizeof(kv));
	} else if (n && l->place == LABEL_SAMPLE) {
		int32_t attribute = n > 1 ? list_of(r, i, labels) : l->attribute;

		buf_append(&r->attributes, &attribute, sizeof(attribute));
	}
}

bool pprof_read_labels(struct pprof_reader *r, const struct slices *labels, uint32_t *resource, int32_t *link)
{
	uint8_t trace_id[16] = { 0 }, span_id[8] = { 0 };
	uint32_t count = slice_count(labels);
	bool has_link = false;

	buf_reset(&r->items);
	buf_reset(&r->attributes);
	buf_reset(&r->key_values);
	if (count > PPROF_MAX_LABELS)
		return pprof_bad(r, slice_at(labels, 0).at, "a sample with more than 256 labels");
	for (uint32_t i = 0; i < count; i++) {
		int64_t which = known(r, slice_at(labels, i));

		if (which < 0)
			return false;
		buf_append(&r->items, &which, sizeof(which));
	}
	if (r->items.failed) {
		r->err = -ENOMEM;
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct label *l = label_at(r, i);

		if (l->place == LABEL_TRACE)
			unhex(l->text, trace_id);
		else if (l->place == LABEL_SPAN)
			unhex(l->text, span_id);
		else
			place_label(r, i, count);
		has_link |= l->place == LABEL_TRACE || l->place == LABEL_SPAN;
	}
	if (r->key_values.failed || r->attributes.failed)
		r->err = -ENOMEM;
	*link = has_link ? builder_link(r->b, trace_id, span_id) : 0;
	*resource = r->err ? 0
			   : builder_resource(r->b, (const void *)r->key_values.data,
					      (uint32_t)(r->key_values.len / sizeof(struct key_value)));
	return !r->err;
}
