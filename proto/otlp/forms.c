/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes messages of profiles whose form nobody tells: by the current one first, and by the one that the bytes show when
 * that makes no sense of them.
 */
#include "proto/otlp/forms.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "proto/otlp/fields.h"

/* --- forms that are refused --- */
static const struct otlp_mark marks_1_6[] = { { "ProfilesData", "string_table", false } };
static const struct otlp_mark marks_1_4[] = { { "Profile", "string_table", false } };

/* Field 2 was the mapping table. */
static bool fits_1_6(const struct otlp_prints *s, bool doubtful)
{
	(void)doubtful;
	return otlp_prints_saw(s, NODE_DICTIONARY, 1, WIRE_VARINT) || otlp_prints_saw(s, NODE_DICTIONARY, 2, WIRE_VARINT);
}

/* Profile: 3 was the mapping table; there was no dictionary. */
static bool fits_1_4(const struct otlp_prints *s, bool doubtful)
{
	(void)doubtful;
	return otlp_prints_saw(s, NODE_PROFILE, 3, WIRE_BYTES) && !otlp_prints_saw(s, NODE_TOP, 2, WIRE_BYTES);
}

static const struct otlp_form form_1_6 = {
	.release = "1.6",
	.fits = fits_1_6,
	.marks = marks_1_6,
	.mark_count = ARRAY_LEN(marks_1_6),
};
static const struct otlp_form form_1_4 = {
	.release = "1.4 to 1.6",
	.fits = fits_1_4,
	.marks = marks_1_4,
	.mark_count = ARRAY_LEN(marks_1_4),
};

const struct otlp_form *const otlp_forms[] = {
	&form_1_6, &form_1_4, &otlp_form_1_7, &otlp_form_1_8, &otlp_form_1_9, &otlp_form_current, NULL,
};

/* The form whose fingerprints the bytes have. */
static const struct otlp_form *form_of(const uint8_t *data, size_t len, bool doubtful)
{
	const struct otlp_form *const *form = otlp_forms;
	struct otlp_prints prints;

	otlp_prints_take(data, len, &prints);
	if (!otlp_prints_saw(&prints, NODE_TOP, 1, WIRE_BYTES))
		return &otlp_form_current;
	while ((*form)->fits && !(*form)->fits(&prints, doubtful))
		form++;
	return *form;
}

/* Whether the message makes no sense as what it was decoded as. */
static bool is_doubtful(const struct otlp_decoder *d)
{
	if (!d->whole || d->has_current)
		return false;
	return (d->shapeless_samples && !d->shaped_samples) || d->twins ||
	       d->max_index[PROFILES_TAG(ProfilesDictionary, attribute_table)] >= d->profiles->dict.attribute_count;
}

/* Decodes the message again when it is of an older form, whether it made sense as 1.10 or not. False: it is
 * what it was. */
static bool try_older(struct otlp_decoder *d, const uint8_t *data, size_t len)
{
	const struct otlp_form *form = &otlp_form_current;
	struct otlp_decoder older = { .start = d->start, .len = len, .own_data = d->own_data, .text = d->text };
	bool doubtful = is_doubtful(d);
	struct otlp_error why;

	if (d->error || doubtful || d->odd)
		form = form_of(data, len, doubtful);
	if (form == &otlp_form_current)
		return false;
	profiles_put(d->profiles);
	if (form->layout.root)
		otlp_decode_root(&older, &form->layout);
	*d = older;
	if (!form->layout.root) {
		snprintf(d->text->message, sizeof(d->text->message), OTLP_TOO_OLD, form->release);
		d->error = -EBADMSG;
	} else if (d->error == -EBADMSG) {
		why = *d->text;
		snprintf(d->text->message, sizeof(d->text->message), OTLP_FAULT_IN_OLDER, form->release, why.message);
	}
	return true;
}

int otlp_decode_with(uint8_t *data, size_t len, bool own_data, const struct otlp_decode_options *options,
		     struct profiles **ret, struct otlp_error *err)
{
	struct otlp_decoder d = { .start = data, .len = len, .own_data = own_data, .text = err };
	bool is_older = false;

	err->message[0] = '\0';
	if (len > UINT32_MAX) {
		otlp_decode_fail(&d, NULL, &otlp_profiles_data, NULL, "has %zu bytes, more than a message can have", len);
		return d.error;
	}
	otlp_decode_root(&d, &otlp_form_current.layout);
	if (d.error != -ENOMEM && !options->no_guess)
		is_older = try_older(&d, data, len);
	if (d.error) {
		profiles_put(d.profiles);
		return d.error;
	}
	if (own_data)
		d.profiles->source = data;
	if (own_data && !is_older && !d.odd && !d.lacks_table)
		d.profiles->message = (struct str){ (const char *)data, (uint32_t)len };
	*ret = d.profiles;
	return 0;
}

int otlp_decode(uint8_t *data, size_t len, bool own_data, struct profiles **ret, struct otlp_error *err)
{
	return otlp_decode_with(data, len, own_data, &(struct otlp_decode_options){ 0 }, ret, err);
}

int otlp_decode_part(const uint8_t *data, size_t len, uint32_t before[OTLP_TABLES], struct profiles **ret)
{
	struct otlp_error unwanted;
	struct otlp_decoder d = { .start = data, .len = len, .own_data = true, .text = &unwanted };

	if (len > UINT32_MAX)
		return -EBADMSG;
	d.continues = before[1];
	for (unsigned t = 1; d.continues && t < OTLP_TABLES; t++)
		d.shift[t] = before[t] - 1;
	otlp_decode_root(&d, &otlp_form_current.layout);
	if (!d.error && (d.odd || is_doubtful(&d) || (d.lacks_table && !d.continues)))
		d.error = -EBADMSG;
	if (d.error) {
		profiles_put(d.profiles);
		return d.error;
	}
	for (unsigned t = 1; t < OTLP_TABLES; t++)
		before[t] += *(const uint32_t *)((const char *)&d.profiles->dict + otlp_dictionary.fields[t].count) -
			     d.continues;
	*ret = d.profiles;
	return 0;
}
