/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The print sink: writes a whole request with one fwrite, so that concurrent output never tears one. Used by one thread. And
 * what is printed of the other signals: the records of logs.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "proto/otlp/dump.h"
#include "proto/otlp/signals.h"
#include "sinks/print/print.h"
#include "sinks/sink_type.h"

#define LINE_LOGS	"---------------- New Resource Logs ----------------\n"
#define LINE_LOGS_END	"---------------- End Resource Logs ----------------\n\n"
#define LINE_RECORD	"------------------ New Log Record -----------------\n"
#define LINE_RECORD_END "------------------ End Log Record -----------------\n"

enum { KEEP_BYTES = 1 << 20 }; /* of the buffer between requests */

/* --- control bytes --- */

/* The length of a control character at @s: a byte of C0, DEL, or one of C1 in UTF-8; 0: it is none. */
static size_t control_at(const uint8_t *s, size_t len)
{
	if (*s < 0x20 || *s == 0x7f)
		return 1;
	return *s == 0xc2 && len > 1 && s[1] >= 0x80 && s[1] < 0xa0 ? 2 : 0;
}

void print_escape(struct printer *pr, size_t start)
{
	static const char letters[] = { ['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r' };
	struct buf *out = pr->out;
	size_t at = start, n;
	struct buf tail = BUF_EMPTY;

	if (pr->options->raw || out->failed)
		return;
	while (at < out->len && !control_at(out->data + at, out->len - at))
		at++;
	if (at == out->len)
		return;
	buf_append(&tail, out->data + at, out->len - at);
	out->len = at;
	for (size_t i = 0; i < tail.len; i += n) {
		uint8_t c = tail.data[i];

		n = control_at(tail.data + i, tail.len - i);
		if (!n)
			buf_putc(out, (char)c);
		else if (n == 2)
			buf_printf(out, "\\u%04x", tail.data[i + 1]);
		else if (c < sizeof(letters) && letters[c])
			buf_printf(out, "\\%c", letters[c]);
		else
			buf_printf(out, "\\x%02x", c);
		n = n ? n : 1;
	}
	out->failed |= tail.failed;
	buf_fini(&tail);
}

/* --- logs --- */
static void print_record(struct printer *pr, const struct log_record *r)
{
	uint64_t time_ns = r->time_unix_ns ? r->time_unix_ns : r->observed_time_unix_ns;
	const struct any_value severity = { .kind = VALUE_STRING, .string = r->severity_text };

	buf_puts(pr->out, LINE_RECORD "  Time: ");
	print_time(pr->out, time_ns, false);
	buf_printf(pr->out, "\n  SeverityNumber: %" PRIu32 "\n", r->severity_number);
	print_attribute(pr, STR("SeverityText"), &severity);
	print_attribute(pr, STR("Body"), &r->body);
	for (uint32_t i = 0; !pr->options->hide_sample_attributes && i < r->attributes.count; i++)
		print_attribute(pr, r->attributes.items[i].key, &r->attributes.items[i].value);
	buf_puts(pr->out, LINE_RECORD_END);
}

static bool is_wanted(const struct printer *pr, const struct resource *resource)
{
	struct str id = profiles_value_text(pr->p, profiles_find_key(pr->p, &resource->attributes, "container.id"));

	return pr->options->container_id ? str_is(id, pr->options->container_id)
					 : !pr->options->skip_without_container_id || id.len;
}

void print_other(const struct otlp_other *o, const struct print_options *options, struct buf *out)
{
	static const struct print_options defaults = { .form = PRINT_PLAIN };
	struct printer pr = { .p = o->memory, .options = options ? options : &defaults, .out = out };
	const struct logs *logs = o->root;

	if (pr.options->form == PRINT_DEBUG)
		otlp_dump_other(o, out);
	if (pr.options->form == PRINT_DEBUG || o->signal != OTLP_LOGS)
		return;
	for (uint32_t i = 0; i < logs->resource_count; i++) {
		const struct resource_logs *rl = &logs->resources[i];
		const struct key_values *attributes = &rl->resource.attributes;

		if (!is_wanted(&pr, &rl->resource))
			continue;
		buf_puts(out, LINE_LOGS);
		for (uint32_t k = 0; !pr.options->hide_resource_attributes && k < attributes->count; k++)
			print_attribute(&pr, attributes->items[k].key, &attributes->items[k].value);
		for (uint32_t k = 0; k < rl->scope_count; k++)
			for (uint32_t n = 0; n < rl->scopes[k].record_count; n++)
				print_record(&pr, &rl->scopes[k].records[n]);
		buf_puts(out, LINE_LOGS_END);
	}
}

/* --- the sink --- */
struct sink_print {
	struct sink sink;
	FILE *out; /* borrowed */
	struct print_options options;
	struct buf text;
};

static int write_text(struct sink_print *s)
{
	int error = 0;

	if (s->text.failed) {
		error = -ENOMEM;
	} else {
		errno = 0;
		if ((s->text.len > 0 && fwrite(s->text.data, 1, s->text.len, s->out) != s->text.len) ||
		    fflush(s->out) != 0) {
			clearerr(s->out);
			error = errno ? -errno : -EIO;
		}
	}
	if (s->text.cap > KEEP_BYTES)
		buf_fini(&s->text);
	return error;
}

static int print_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct sink_print *s = (struct sink_print *)sink;

	(void)ack;
	buf_reset(&s->text);
	print_profiles(p, &s->options, &s->text);
	return write_text(s);
}

static int print_consume_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	struct sink_print *s = (struct sink_print *)sink;
	struct otlp_other other;
	struct otlp_error err;
	int error;

	(void)ack;
	if (signal != OTLP_LOGS && s->options.form != PRINT_DEBUG)
		return -EOPNOTSUPP;
	error = otlp_other_decode(signal, false, data, len, &other, &err);
	if (error)
		return error;
	buf_reset(&s->text);
	print_other(&other, &s->options, &s->text);
	otlp_other_fini(&other);
	return write_text(s);
}

static void print_free(struct sink *sink)
{
	struct sink_print *s = (struct sink_print *)sink;

	buf_fini(&s->text);
	free(s);
}

static const struct sink_ops print_ops = {
	.name = "print",
	.consume = print_consume,
	.consume_other = print_consume_other,
	.free = print_free,
};

int sink_print_new(FILE *out, const struct print_options *options, struct sink **ret)
{
	struct sink_print *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->sink.ops = &print_ops;
	s->out = out;
	if (options)
		s->options = *options;
	*ret = &s->sink;
	return 0;
}

static int make_print(const struct sink_settings *settings, const char *value, struct sink **ret, struct buf *error)
{
	(void)value, (void)error;
	return sink_print_new(settings->out, &settings->print, ret);
}

const struct sink_type sink_type_print = { .name = "print", .is_slow = true, .make = make_print };
