/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON decoder: reads OTLP/JSON into the model by the tables of the protobuf decoder, in one pass and without a tree in
 * between. Recursion follows the schema, whose only cycle, AnyValue, is bounded; unknown members are skipped with a bound of
 * their own. On failure each level adds its part of the path on the way back, so that a sound message pays nothing.
 */
#include "proto/otlp/json/json_decode.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/base64.h"
#include "base/text/hex.h"
#include "base/text/json_read.h"
#include "base/text/utf8.h"
#include "proto/otlp/forms.h"
#include "proto/otlp/json/json_value.h"

enum { PATH_BYTES = 128 };

struct json_decoder {
	struct otlp_decoder d;
	struct json_reader in;
	struct buf numbers;		      /* of the list being read */
	const struct otlp_form *const *older; /* the place in otlp_forms of the oldest form of which a name was seen */
	char path[PATH_BYTES];
	size_t path_at; /* it grows from the back */
	char what[128];
	size_t byte;
};

static bool read_message(struct json_decoder *j, const struct otlp_message *m, void *base);

/* --- failing --- */
static bool fail(struct json_decoder *j, const char *what)
{
	if (j->d.error)
		return false;
	j->d.error = -EBADMSG;
	j->byte = (size_t)(j->in.p - j->d.start);
	snprintf(j->what, sizeof(j->what), "%s", what);
	return false;
}

static bool fail_reading(struct json_decoder *j)
{
	if (j->in.text.failed)
		j->d.error = -ENOMEM;
	return fail(j, j->in.error);
}

/* Puts @part before the path so far; what does not fit is left out. */
static bool under(struct json_decoder *j, const char *part, size_t len)
{
	bool dot = j->path[j->path_at] && j->path[j->path_at] != '[';

	if (len + dot <= j->path_at) {
		if (dot)
			j->path[--j->path_at] = '.';
		j->path_at -= len;
		memcpy(j->path + j->path_at, part, len);
	}
	return false;
}

static bool under_field(struct json_decoder *j, const struct otlp_field *f)
{
	char name[OTLP_JSON_NAME_BYTES];

	return under(j, name, otlp_json_name(f->name, name));
}

static bool under_item(struct json_decoder *j, uint32_t i)
{
	char text[16];

	return under(j, text, (size_t)snprintf(text, sizeof(text), "[%u]", i));
}

/* --- values --- */
/* The number of an enum's name, when one is next. */
static bool read_name(struct json_decoder *j, const struct otlp_field *f, uint32_t *ret)
{
	struct json_reader here = j->in;
	struct json_text text;
	bool found = false;

	here.text = BUF_EMPTY;
	if (json_peek(&here) == '"' && json_read_string(&here, &text)) {
		for (uint32_t i = 0; f->names[i] && !found; i++) {
			found = strlen(f->names[i]) == text.len && !memcmp(f->names[i], text.data, text.len);
			*ret = i;
		}
	}
	if (found)
		j->in.p = here.p;
	buf_fini(&here.text);
	return found;
}

static bool read_number(struct json_decoder *j, const struct otlp_field *f, void *at)
{
	struct json_int v;
	const char *what;

	if (f->kind == KIND_UINT32 && f->names && read_name(j, f, at))
		return true;
	what = json_read_int(&j->in, &v);
	if (what)
		return fail(j, what);
	switch (f->kind) {
	case KIND_INDEX:
	case KIND_INDICES:
		if (v.magnitude > INT32_MAX || (v.negative && v.magnitude))
			return fail(j, "is out of range");
		*(int32_t *)at = (int32_t)v.magnitude;
		if (v.magnitude > j->d.max_index[f->table])
			j->d.max_index[f->table] = (uint32_t)v.magnitude;
		return true;
	case KIND_SINT32:
		if (v.magnitude > (uint64_t)INT32_MAX + v.negative)
			return fail(j, "is out of range");
		*(int32_t *)at = (int32_t)(v.negative ? -v.magnitude : v.magnitude);
		return true;
	case KIND_UINT32:
	case KIND_FIXED32:
		if (v.magnitude > UINT32_MAX || (v.negative && v.magnitude))
			return fail(j, "is out of range");
		*(uint32_t *)at = (uint32_t)v.magnitude;
		return true;
	case KIND_INT64:
	case KIND_INT64S:
	case KIND_FIXED64:
		if (f->kind == KIND_FIXED64 ? f->json == JSON_SIGNED : f->json != JSON_UNSIGNED) {
			if (v.magnitude > (uint64_t)INT64_MAX + v.negative)
				return fail(j, "is out of range");
			*(uint64_t *)at = v.negative ? -v.magnitude : v.magnitude;
			return true;
		}
		break;
	}
	if (v.negative && v.magnitude)
		return fail(j, "is out of range");
	*(uint64_t *)at = v.magnitude;
	return true;
}

static bool keep_string(struct json_decoder *j, const void *data, size_t len, struct str *ret)
{
	char *copy = len ? profiles_alloc(j->d.profiles, len) : NULL;

	if (len && !copy) {
		j->d.error = -ENOMEM;
		return false;
	}
	if (len)
		memcpy(copy, data, len);
	*ret = (struct str){ len ? copy : "", (uint32_t)len };
	return true;
}

static bool read_text(struct json_decoder *j, struct json_text *ret)
{
	return json_read_string(&j->in, ret) || fail_reading(j);
}

static bool read_string(struct json_decoder *j, struct str *ret)
{
	struct json_text text;

	if (!read_text(j, &text))
		return false;
	if (!utf8_is_valid(text.data, text.len))
		return fail(j, "is not UTF-8");
	return keep_string(j, text.data, text.len, ret);
}

static bool read_bytes(struct json_decoder *j, const struct otlp_field *f, struct str *ret)
{
	struct json_text text;
	uint8_t *out;
	size_t len = 0;

	if (!read_text(j, &text))
		return false;
	if (!text.len)
		return keep_string(j, "", 0, ret);
	out = profiles_alloc(j->d.profiles, text.len);
	if (!out) {
		j->d.error = -ENOMEM;
		return false;
	}
	if (!(f->json == JSON_HEX && hex_decode(text.data, text.len, out, &len)) &&
	    !base64_decode(text.data, text.len, out, &len))
		return fail(j, f->json == JSON_HEX ? "is neither hex nor base64" : "is not base64");
	if (f->id_bytes && len && len != f->id_bytes)
		return fail(j, f->id_bytes == 16 ? "has not 16 bytes" : "has not 8 bytes");
	*ret = (struct str){ (const char *)out, (uint32_t)len };
	return true;
}

static bool read_double(struct json_decoder *j, double *at)
{
	const char *what = json_read_double(&j->in, at);

	return what ? fail(j, what) : true;
}

static bool read_value(struct json_decoder *j, const struct otlp_field *f, void *at)
{
	switch (f->kind) {
	case KIND_BOOL:
		return json_read_bool(&j->in, at) || fail_reading(j);
	case KIND_STRING:
		return read_string(j, at);
	case KIND_BYTES:
		return read_bytes(j, f, at);
	case KIND_MESSAGE:
		return read_message(j, f->sub, at);
	case KIND_FIXED64:
		return f->json == JSON_DOUBLE ? read_double(j, at) : read_number(j, f, at);
	default:
		return read_number(j, f, at);
	}
}

/* --- lists --- */

/* Numbers are gathered first, so that their list is as long as it need be. */
static bool read_numbers(struct json_decoder *j, const struct otlp_field *f, void *base)
{
	size_t size = f->kind == KIND_INDICES ? sizeof(int32_t) : sizeof(uint64_t);
	bool first = true;
	void *items;

	buf_reset(&j->numbers);
	while (json_next(&j->in, ']', &first)) {
		if (buf_reserve(&j->numbers, size)) {
			j->d.error = -ENOMEM;
			return false;
		}
		if (!(f->json == JSON_DOUBLE ? read_double(j, (void *)(j->numbers.data + j->numbers.len))
					     : read_number(j, f, j->numbers.data + j->numbers.len)))
			return under_item(j, (uint32_t)(j->numbers.len / size));
		j->numbers.len += size;
	}
	if (j->in.error)
		return fail_reading(j);
	if (!j->numbers.len)
		return true;
	items = otlp_decode_extend(&j->d, base, f, size, (uint32_t)(j->numbers.len / size));
	if (items)
		memcpy(items, j->numbers.data, j->numbers.len);
	return items;
}

static bool read_item(struct json_decoder *j, const struct otlp_field *f, void *base)
{
	void *item = otlp_decode_extend(&j->d, base, f, f->kind == KIND_MESSAGES ? f->sub->size : sizeof(struct str), 1);

	if (!item)
		return false;
	if (f->kind == KIND_STRINGS) {
		((struct str *)item)->data = "";
		return read_string(j, item);
	}
	if (f->sub->has_strings)
		otlp_init_strings(f->sub, item);
	return read_message(j, f->sub, item);
}

static bool read_list(struct json_decoder *j, const struct otlp_field *f, void *base)
{
	bool first = true;

	if (!json_open(&j->in, '['))
		return fail_reading(j);
	if (f->kind >= KIND_INDICES && f->kind <= KIND_FIXED64S)
		return read_numbers(j, f, base);
	for (uint32_t i = 0; json_next(&j->in, ']', &first); i++)
		if (!read_item(j, f, base))
			return under_item(j, i);
	return j->in.error ? fail_reading(j) : true;
}

/* --- messages --- */

/* Whether @key is @name, as it is or in lowerCamelCase. */
static bool is_name(struct json_text key, const char *name)
{
	size_t i = 0;

	if (key.data[0] != name[0])
		return false;
	for (const char *n = name; *n; n++, i++) {
		if (i == key.len)
			return false;
		if (key.data[i] == *n)
			continue;
		if (*n != '_' || key.data[i] != n[1] - 'a' + 'A')
			return false;
		n++;
	}
	return i == key.len;
}

/* Before 1.9 two lists had the names of one of their items. */
static bool is_old_name(struct json_text key, const struct otlp_message *m, const struct otlp_field *f)
{
	bool is_list = f->kind == KIND_MESSAGES && key.len + 1 == strlen(f->name) && !memcmp(key.data, f->name, key.len);

	return is_list && ((key.len == strlen("sample") && !strcmp(m->name, "Profile")) ||
			   (key.len == strlen("line") && !strcmp(m->name, "Location")));
}

/* The field called @key; senders write them in order, so the search begins behind the last one, @at. */
static const struct otlp_field *find_field(const struct otlp_message *m, struct json_text key, unsigned *at)
{
	if (!key.len)
		return NULL;
	for (unsigned n = 0, i = *at; n < m->field_count; n++, i++) {
		const struct otlp_field *f = &m->fields[i >= m->field_count ? i -= m->field_count : i];

		if (f->kind && (is_name(key, f->name) || is_old_name(key, m, f))) {
			*at = i + 1;
			return f;
		}
	}
	return NULL;
}

/* Notes the form that @key is a mark of: a name that the message @m lacks; or, without @m, one that has a list now. */
static void note_mark(struct json_decoder *j, const struct otlp_message *m, struct json_text key)
{
	for (const struct otlp_form *const *form = otlp_forms; key.len && *form && (!j->older || form < j->older); form++) {
		for (unsigned i = 0; i < (*form)->mark_count; i++) {
			const struct otlp_mark *mark = &(*form)->marks[i];

			if (mark->is_list == !m && (!m || !strcmp(mark->message, m->name)) && is_name(key, mark->name))
				j->older = form;
		}
	}
}

static bool read_field(struct json_decoder *j, const struct otlp_field *f, void *base)
{
	void *at = (char *)base + f->offset;

	if (json_read_null(&j->in))
		return true;
	if (f->kind == KIND_MESSAGE && !f->has && json_peek(&j->in) == '[')
		note_mark(j, NULL, (struct json_text){ f->name, strlen(f->name) });
	if (f->kind >= KIND_INDICES)
		return read_list(j, f, base);
	if (f->variant) {
		if (((struct any_value *)base)->kind)
			return fail(j, "is one value more where only one may be");
		((struct any_value *)base)->kind = f->variant;
		if (f->kind == KIND_BYTES || f->kind == KIND_STRING)
			((struct str *)at)->data = "";
	}
	if (f->has)
		*(bool *)((char *)base + f->count) = true;
	return read_value(j, f, at);
}

static bool read_member(struct json_decoder *j, const struct otlp_message *m, void *base, unsigned *at, uint64_t *seen)
{
	const struct otlp_field *f;
	struct json_text key;
	uint64_t bit;

	if (!json_read_key(&j->in, &key))
		return fail_reading(j);
	f = find_field(m, key, at);
	if (!f)
		note_mark(j, m, key);
	if (!f)
		return json_skip(&j->in) || fail_reading(j);
	bit = 1ull << (f - m->fields);
	if (*seen & bit) {
		fail(j, "is there twice");
		return under_field(j, f);
	}
	*seen |= bit;
	return read_field(j, f, base) || under_field(j, f);
}

static bool read_message(struct json_decoder *j, const struct otlp_message *m, void *base)
{
	bool first = true;
	uint64_t seen = 0;
	unsigned at = 0;

	if (m->nests && ++j->d.nesting > OTLP_MAX_NESTING)
		return fail(j, "is nested too deep");
	if (!json_open(&j->in, '{'))
		return fail_reading(j);
	while (json_next(&j->in, '}', &first))
		if (!read_member(j, m, base, &at, &seen))
			return false;
	if (j->in.error)
		return fail_reading(j);
	j->d.nesting -= m->nests;
	if (!m->done || m->done(&j->d, base))
		return true;
	/* The hook has said what, and that it is the message as a whole. */
	j->byte = (size_t)(j->in.p - j->d.start);
	snprintf(j->what, sizeof(j->what), "%.*s", (int)sizeof(j->what) - 1, j->d.text->message);
	return false;
}

/* --- the whole --- */
static void report(struct json_decoder *j)
{
	const char *path = j->path + j->path_at;

	snprintf(j->d.text->message, sizeof(j->d.text->message), "byte %zu: %s%s%s", j->byte, *path ? path : "the JSON text",
		 strstr(j->what, "has both") ? ": " : " ", j->what);
}

static void *decode(struct json_decoder *j, const struct otlp_layout *layout)
{
	void *root;

	j->d.profiles = profiles_new();
	root = j->d.profiles && layout->size_bytes ? profiles_alloc(j->d.profiles, layout->size_bytes) : j->d.profiles;
	if (!root) {
		j->d.error = -ENOMEM;
		return NULL;
	}
	if (read_message(j, layout->root, root) && !json_at_end(&j->in))
		fail(j, "goes on behind its end");
	if (j->d.error == -EBADMSG)
		report(j);
	if (j->d.error || (layout->convert && !layout->convert(&j->d, root)))
		return NULL;
	return otlp_decode_finish(&j->d) ? NULL : root;
}

void *otlp_json_decode_root(struct otlp_decoder *d, const struct otlp_layout *layout, const struct otlp_form **older_ret)
{
	struct json_decoder j = { .d = *d, .path_at = PATH_BYTES - 1 };
	void *root;

	j.d.is_json = true;
	json_reader_init(&j.in, d->start, d->len);
	root = decode(&j, layout);
	json_reader_fini(&j.in);
	buf_fini(&j.numbers);
	*d = j.d;
	*older_ret = j.older ? *j.older : NULL;
	return root;
}

/* One pass, in one layout. */
static int decode_in(const struct otlp_layout *layout, const uint8_t *data, size_t len, struct profiles **ret,
		     struct otlp_error *err, const struct otlp_form **older_ret)
{
	struct otlp_decoder d = { .start = data, .len = len, .text = err };

	if (otlp_json_decode_root(&d, layout, older_ret))
		*ret = d.profiles;
	else
		profiles_put(d.profiles);
	return d.error;
}

int otlp_json_decode_with(const uint8_t *data, size_t len, const struct otlp_decode_options *options, struct profiles **ret,
			  struct otlp_error *err)
{
	const struct otlp_form *older, *ignored;
	struct profiles *p = NULL;
	struct otlp_error why;
	int r;

	err->message[0] = '\0';
	if (len > UINT32_MAX) {
		snprintf(err->message, sizeof(err->message), "%zu bytes are more than a message can have", len);
		return -EBADMSG;
	}
	r = decode_in(&otlp_form_current.layout, data, len, &p, err, &older);
	if (r == -ENOMEM || !older || options->no_guess) {
		*ret = r ? *ret : p;
		return r;
	}
	profiles_put(p);
	if (!older->layout.root) {
		snprintf(err->message, sizeof(err->message), OTLP_TOO_OLD, older->release);
		return -EBADMSG;
	}
	err->message[0] = '\0';
	r = decode_in(&older->layout, data, len, ret, err, &ignored);
	why = *err;
	if (r == -EBADMSG)
		snprintf(err->message, sizeof(err->message), OTLP_FAULT_IN_OLDER, older->release, why.message);
	return r;
}

int otlp_json_decode(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *err)
{
	return otlp_json_decode_with(data, len, &(struct otlp_decode_options){ 0 }, ret, err);
}
