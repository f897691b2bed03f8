/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the names of a capture anew from the mangled ones that it keeps beside them, or without those of inlined calls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/intern.h"
#include "cmd/files/capture.h"
#include "proto/profiles.h"
#include "symbols/demangle.h"

/* The name of @f as in its file; a capture has it once where it is the name shown. */
static struct str mangled_name(const struct profiles *p, const struct profile_function *f)
{
	return profiles_string(p, f->system_name_strindex ? f->system_name_strindex : f->name_strindex);
}

/* Makes @text the name of @f; @strings has room for one more. */
static int rename_function(struct profiles *p, struct profile_function *f, struct str text)
{
	struct dictionary *d = &p->dict;
	char *copy = profiles_alloc(p, text.len);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text.data, text.len);
	f->name_strindex = (int32_t)d->string_count;
	d->strings[d->string_count++] = (struct str){ copy, text.len };
	return 0;
}

struct capture_names {
	struct intern *mangled;
	struct buf texts; /* what they stand for, by their index */
	struct buf ends;  /* size_t, in @texts */
};

struct capture_names *capture_names_new(void)
{
	struct capture_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->mangled = intern_new();
	if (!names->mangled) {
		free(names);
		return NULL;
	}
	return names;
}

void capture_names_free(struct capture_names *names)
{
	if (!names)
		return;
	intern_free(names->mangled);
	buf_fini(&names->texts);
	buf_fini(&names->ends);
	free(names);
}

/* The name that @mangled stands for, valid until the next call; "" when @mangled is no mangled name. 0 or -ENOMEM. */
static int demangle(struct capture_names *names, struct str mangled, struct str *ret)
{
	const size_t *ends;
	uint32_t index;
	int is_new = intern_add(names->mangled, mangled.data, mangled.len, &index);

	if (is_new < 0)
		return is_new;
	if (is_new) {
		symbols_demangle(mangled.data, mangled.len, &names->texts);
		buf_append(&names->ends, &names->texts.len, sizeof(names->texts.len));
	}
	if (names->texts.failed || names->ends.failed)
		return -ENOMEM;
	ends = (const size_t *)(const void *)names->ends.data;
	ret->data = buf_text(&names->texts) + (index ? ends[index - 1] : 0);
	ret->len = (uint32_t)(ends[index] - (index ? ends[index - 1] : 0));
	return 0;
}

static int demangle_all(struct profiles *p, struct capture_names *names)
{
	struct dictionary *d = &p->dict;
	struct str *strings = profiles_alloc(p, ((size_t)d->string_count + d->function_count) * sizeof(*strings));
	int err = 0;

	if (!strings)
		return -ENOMEM;
	memcpy(strings, d->strings, d->string_count * sizeof(*strings));
	d->strings = strings;
	for (uint32_t i = 0; i < d->function_count && !err; i++) {
		struct str name = profiles_string(p, d->functions[i].name_strindex);
		struct str mangled = mangled_name(p, &d->functions[i]), text;

		if (!symbols_is_mangled(mangled.data, mangled.len))
			continue;
		err = demangle(names, mangled, &text);
		if (!err && text.len && (text.len != name.len || memcmp(text.data, name.data, name.len) != 0))
			err = rename_function(p, &d->functions[i], text);
	}
	return err;
}

int capture_demangle(struct profiles *p, struct capture_names *known)
{
	struct capture_names *names = known ? known : capture_names_new();
	int err = names ? demangle_all(p, names) : -ENOMEM;

	if (!known)
		capture_names_free(names);
	return err;
}

void capture_drop_inlined(struct profiles *p)
{
	for (uint32_t i = 0; i < p->dict.location_count; i++) {
		struct profile_location *l = &p->dict.locations[i];

		if (l->line_count < 2)
			continue;
		l->lines += l->line_count - 1;
		l->line_count = 1;
	}
}
