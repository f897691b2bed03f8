/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a capture made anew out of the mangled ones that it keeps beside them, or without those of inlined calls. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/capture.h"
#include "proto/profiles.h"
#include "symbols/demangle.h"

/* The name of @f as in its file; a capture has it once where it is the name shown. */
static struct str mangled_name(const struct profiles *p, const struct profile_function *f)
{
	return profiles_string(p, f->system_name_strindex ? f->system_name_strindex : f->name_strindex);
}

/* Makes @text the name of @f; @strings has room for one more. */
static int rename_function(struct profiles *p, struct profile_function *f, const struct buf *text)
{
	struct dictionary *d = &p->dict;
	char *copy = profiles_alloc(p, text->len);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text->data, text->len);
	f->name_strindex = (int32_t)d->string_count;
	d->strings[d->string_count++] = (struct str){ copy, (uint32_t)text->len };
	return 0;
}

int capture_demangle(struct profiles *p)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct dictionary *d = &p->dict;
	struct str *strings = profiles_alloc(p, ((size_t)d->string_count + d->function_count) * sizeof(*strings));
	int err = 0;

	if (!strings)
		return -ENOMEM;
	memcpy(strings, d->strings, d->string_count * sizeof(*strings));
	d->strings = strings;
	for (uint32_t i = 0; i < d->function_count && !err; i++) {
		struct str name = profiles_string(p, d->functions[i].name_strindex);
		struct str mangled = mangled_name(p, &d->functions[i]);

		if (!symbols_is_mangled(mangled.data, mangled.len))
			continue;
		buf_reset(&text);
		symbols_demangle(mangled.data, mangled.len, &text);
		if (text.failed)
			return -ENOMEM;
		if (text.len && (text.len != name.len || memcmp(text.data, name.data, name.len) != 0))
			err = rename_function(p, &d->functions[i], &text);
	}
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
