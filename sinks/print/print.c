/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints profiles as text for people: the lazy backend's forms byte for byte, or the collector distribution's typed form.
 * Nothing is sorted, merged or left out that the options do not leave out. Control bytes in strings, which a terminal would
 * obey, are escaped unless they are asked for. The model is trusted: its producers checked every index.
 */
#include "sinks/print/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/hex.h"
#include "proto/otlp/dump.h"
#include "sinks/value_text.h"

#define LINE_RESOURCE		    "--------------- New Resource Profile --------------\n"
#define LINE_SKIPPED		    "              SKIPPED (no container.id)\n"
#define LINE_RESOURCE_END	    "-------------- End Resource Profile ---------------\n\n"
#define LINE_PROFILE		    "------------------- New Profile -------------------\n"
#define LINE_PROFILE_ATTRIBUTES_END "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
#define LINE_PROFILE_END	    "------------------- End Profile -------------------\n"
#define LINE_SAMPLE		    "------------------- New Sample --------------------\n"
#define LINE_SAMPLE_ATTRIBUTES_END  "---------------------------------------------------\n"
#define LINE_SAMPLE_END		    "------------------- End Sample --------------------\n"

static void put_str(struct printer *pr, struct str s)
{
	size_t start = pr->out->len;

	buf_append(pr->out, s.data, s.len);
	print_escape(pr, start);
}

/* A NULL list holds everything. */
static bool list_has(const char *const *list, struct str s)
{
	if (!list)
		return true;
	for (; *list; list++)
		if (str_is(s, *list))
			return true;
	return false;
}

void print_time(struct buf *out, uint64_t unix_ns, bool local)
{
	int64_t ns = (int64_t)unix_ns; /* as the lazy backend: what does not fit lies before 1970 */
	int64_t second_ns = (int64_t)NSEC_PER_SEC;
	int64_t fraction = (ns % second_ns + second_ns) % second_ns;
	time_t seconds = (ns - fraction) / second_ns;
	char text[sizeof("-2147483648-12-31 23:59:60")];
	struct tm tm = { 0 };
	long minutes;

	if (local)
		localtime_r(&seconds, &tm);
	else
		gmtime_r(&seconds, &tm);
	buf_append(out, text, strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm));
	if (fraction) {
		buf_printf(out, ".%09" PRId64, fraction);
		while (!out->failed && out->data[out->len - 1] == '0')
			out->len--;
	}
	minutes = labs(tm.tm_gmtoff) / 60;
	buf_printf(out, " %c%02ld%02ld %s", tm.tm_gmtoff < 0 ? '-' : '+', minutes / 60, minutes % 60,
		   local ? tm.tm_zone : "UTC");
}

void print_attribute(struct printer *pr, struct str key, const struct any_value *v)
{
	size_t start;

	buf_puts(pr->out, "  ");
	put_str(pr, key);
	buf_puts(pr->out, ": ");
	start = pr->out->len;
	value_text(pr->p, v, pr->out);
	print_escape(pr, start);
	if (pr->options->form == PRINT_TYPED)
		buf_printf(pr->out, " (%s)", value_type_name(v));
	buf_putc(pr->out, '\n');
}

/* Whether rows of functions have file, line and column. */
static bool shows_source(const struct print_options *options)
{
	return options->form == PRINT_TYPED ? options->show_source : !options->hide_source;
}

static void print_attributes(struct printer *pr, const struct indices *indices)
{
	for (uint32_t i = 0; i < indices->count; i++) {
		const struct profile_attribute *a = &pr->p->dict.attributes[indices->items[i]];

		print_attribute(pr, profiles_string(pr->p, a->key_strindex), &a->value);
	}
}

/* Valid until the next call. */
static struct str frame_type(struct printer *pr, const struct profile_location *location)
{
	const struct any_value *v = profiles_find_attribute(pr->p, &location->attributes, "profile.frame.type");
	struct str s;

	if (!v)
		return STR("unknown");
	if (profiles_value_string(pr->p, v, &s))
		return s;
	buf_reset(&pr->scratch);
	value_text(pr->p, v, &pr->scratch);
	return (struct str){ buf_text(&pr->scratch), pr->scratch.len };
}

static void print_line(struct printer *pr, struct str type, const struct profile_line *line)
{
	const struct profile_function *f = &pr->p->dict.functions[line->function_index];

	buf_puts(pr->out, "Instrumentation: ");
	put_str(pr, type);
	buf_puts(pr->out, ", Function: ");
	put_str(pr, profiles_string(pr->p, f->name_strindex));
	if (shows_source(pr->options)) {
		buf_puts(pr->out, ", File: ");
		put_str(pr, profiles_string(pr->p, f->filename_strindex));
		buf_printf(pr->out, ", Line: %" PRId64 ", Column: %" PRId64, line->line, line->column);
	}
	buf_putc(pr->out, '\n');
}

static void print_location(struct printer *pr, const struct profile_location *location)
{
	struct str type = frame_type(pr, location);
	struct str file = STR("<unknown>");

	if (!list_has(pr->options->frame_types, type))
		return;
	for (uint32_t i = 0; i < location->line_count; i++)
		print_line(pr, type, &location->lines[i]);
	if (location->line_count > 0)
		return;
	if (location->mapping_index > 0)
		file = profiles_string(pr->p, pr->p->dict.mappings[location->mapping_index].filename_strindex);
	buf_puts(pr->out, "Instrumentation: ");
	put_str(pr, type);
	buf_printf(pr->out, ": Function: 0x%04" PRIx64 ", File: ", location->address);
	put_str(pr, file);
	buf_putc(pr->out, '\n');
}

static void print_sample(struct printer *pr, const struct sample *sample)
{
	const struct indices *stack = &pr->p->dict.stacks[sample->stack_index];

	buf_puts(pr->out, LINE_SAMPLE);
	for (uint32_t i = 0; pr->options->form != PRINT_TYPED && i < sample->timestamp_count; i++) {
		uint64_t time_ns = sample->timestamps_unix_ns[i];

		buf_printf(pr->out, "  %cimestamp[%" PRIu32 "]: %" PRIu64 " (",
			   pr->options->form == PRINT_2025_08 ? 't' : 'T', i, time_ns);
		print_time(pr->out, time_ns, true);
		buf_puts(pr->out, ")\n");
	}
	if (!pr->options->hide_sample_attributes) {
		print_attributes(pr, &sample->attributes);
		buf_puts(pr->out, LINE_SAMPLE_ATTRIBUTES_END);
	}
	for (uint32_t i = 0; !pr->options->hide_frames && i < stack->count; i++)
		print_location(pr, &pr->p->dict.locations[stack->items[i]]);
	buf_puts(pr->out, LINE_SAMPLE_END);
}

static void print_profile_times(struct printer *pr, const struct profile *profile)
{
	static const char *const temporalities[] = { "Unspecified", "Delta", "Cumulative" };
	uint32_t temporality = profile->period_type.temporality;
	bool is_older = pr->options->form == PRINT_2025_09;

	buf_puts(pr->out, "  Time: ");
	print_time(pr->out, profile->time_unix_ns, false);
	buf_puts(pr->out, "\n  Duration: ");
	if (is_older)
		print_time(pr->out, profile->duration_ns, false);
	else
		buf_printf(pr->out, "%" PRIu64, profile->duration_ns);
	buf_puts(pr->out, "\n  PeriodType: [");
	put_str(pr, profiles_string(pr->p, profile->period_type.type_strindex));
	buf_puts(pr->out, ", ");
	put_str(pr, profiles_string(pr->p, profile->period_type.unit_strindex));
	if (is_older) /* a number that is none of the names prints as none */
		buf_printf(pr->out, ", %s", temporality < ARRAY_LEN(temporalities) ? temporalities[temporality] : "");
	buf_printf(pr->out, "]\n  Period: %" PRId64 "\n", profile->period);
}

static void print_profile(struct printer *pr, const struct profile *profile)
{
	struct str type = profiles_string(pr->p, profile->sample_type.type_strindex);
	uint8_t id[16] = { 0 };
	char hex[2 * sizeof(id) + 1];

	if (!list_has(pr->options->sample_types, type))
		return;
	if (profile->profile_id.len == sizeof(id))
		memcpy(id, profile->profile_id.data, sizeof(id));
	hex_encode(hex, id, sizeof(id));
	buf_printf(pr->out, LINE_PROFILE "  ProfileID: %s\n", hex);
	if (pr->options->form == PRINT_PLAIN || pr->options->form == PRINT_2025_09)
		print_profile_times(pr, profile);
	buf_printf(pr->out, "  Dropped attributes count: %" PRIu32 "\n", profile->dropped_attributes_count);
	/* A profile then had a list of types, which could be empty. */
	if (pr->options->form != PRINT_2025_08 || profile->sample_type.type_strindex || profile->sample_type.unit_strindex) {
		buf_puts(pr->out, "  SampleType: ");
		put_str(pr, type);
		buf_putc(pr->out, '\n');
	}
	if (profile->attributes.count > 0 && !pr->options->hide_profile_attributes) {
		print_attributes(pr, &profile->attributes);
		buf_puts(pr->out, LINE_PROFILE_ATTRIBUTES_END);
	}
	for (uint32_t i = 0; i < profile->sample_count; i++)
		print_sample(pr, &profile->samples[i]);
	buf_puts(pr->out, LINE_PROFILE_END);
}

static bool has_container_id(const struct profiles *p, const struct resource *resource)
{
	const struct any_value *v = profiles_find_key(p, &resource->attributes, "container.id");
	struct str s;

	return v && v->kind != VALUE_NONE && !(profiles_value_string(p, v, &s) && s.len == 0);
}

static bool is_of_container(const struct printer *pr, const struct resource *resource)
{
	const struct any_value *v = profiles_find_key(pr->p, &resource->attributes, "container.id");
	struct str s;

	return v && profiles_value_string(pr->p, v, &s) && str_is(s, pr->options->container_id);
}

static void print_resource(struct printer *pr, const struct resource_profiles *rp)
{
	const struct key_values *attributes = &rp->resource.attributes;

	if (pr->options->container_id && !is_of_container(pr, &rp->resource))
		return;
	buf_puts(pr->out, LINE_RESOURCE);
	if (pr->options->skip_without_container_id && !has_container_id(pr->p, &rp->resource)) {
		buf_puts(pr->out, LINE_SKIPPED LINE_RESOURCE_END);
		return;
	}
	for (uint32_t i = 0; !pr->options->hide_resource_attributes && i < attributes->count; i++)
		print_attribute(pr, profiles_key(pr->p, &attributes->items[i]), &attributes->items[i].value);
	for (uint32_t i = 0; i < rp->scope_count; i++)
		for (uint32_t k = 0; k < rp->scopes[i].profile_count; k++)
			print_profile(pr, &rp->scopes[i].profiles[k]);
	buf_puts(pr->out, LINE_RESOURCE_END);
}

void print_profiles(const struct profiles *p, const struct print_options *options, struct buf *out)
{
	static const struct print_options defaults = { .form = PRINT_PLAIN };
	struct printer pr = { .p = p, .options = options ? options : &defaults, .out = out, .scratch = BUF_EMPTY };

	if (pr.options->form == PRINT_DEBUG) {
		otlp_dump(p, out);
		return;
	}
	for (uint32_t i = 0; i < p->resource_count; i++)
		print_resource(&pr, &p->resources[i]);
	out->failed |= pr.scratch.failed;
	buf_fini(&pr.scratch);
}
