/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the tables of a pprof profile as protobuf, through nanopb's low-level writers. */
#include <errno.h>
#include <pb_encode.h>

#include "base/cleanup.h"
#include "base/pack/gzip.h"
#include "base/varint.h"
#include "proto/formats/formats.h"
#include "proto/pprof/profile.pb.h"
#include "proto/formats/pprof_tables.h"

enum { GZIP_LEVEL = 5 /* zlib's */, PIECE_BYTES = 64 << 10 };

/* One submessage is put together at a time in @part and then written with its length. */
struct writer {
	struct buf *out;
	struct gzip_stream *stream; /* where @out goes when it is a piece; NULL: it stays */
	struct buf part, list;
	bool failed;
};

static bool write_to_buf(pb_ostream_t *stream, const pb_byte_t *data, size_t len)
{
	struct buf *out = stream->state;

	buf_append(out, data, len);
	return !out->failed;
}

static pb_ostream_t stream_on(struct buf *out)
{
	return (pb_ostream_t){ .callback = write_to_buf, .state = out, .max_size = SIZE_MAX };
}

static void put_number(struct buf *out, uint32_t field, uint64_t value)
{
	pb_ostream_t stream = stream_on(out);

	if (!value)
		return;
	pb_encode_tag(&stream, PB_WT_VARINT, field);
	pb_encode_varint(&stream, value);
}

static void put_bytes(struct buf *out, uint32_t field, const void *data, size_t len)
{
	pb_ostream_t stream = stream_on(out);

	pb_encode_tag(&stream, PB_WT_STRING, field);
	pb_encode_string(&stream, data, len);
}

/* Writes what was put together, and empties it. */
static void put_part(struct buf *out, uint32_t field, struct buf *part)
{
	if (part->failed)
		out->failed = true;
	put_bytes(out, field, part->data, part->len);
	buf_reset(part);
}

/* Hands over what stands in w->out, if that is more than @most_bytes. */
static void pass_on(struct writer *w, size_t most_bytes)
{
	w->failed |= w->out->failed;
	if (!w->stream || w->out->len <= most_bytes)
		return;
	w->failed |= gzip_stream_add(w->stream, w->out->data, w->out->len) != 0;
	buf_reset(w->out);
}

static void put_type(struct writer *w, uint32_t field, const struct pprof_column *c)
{
	put_number(&w->part, pprof_ValueType_type_tag, c->type);
	put_number(&w->part, pprof_ValueType_unit_tag, c->unit);
	put_part(w->out, field, &w->part);
}

static void put_label_message(const struct pprof *pp, struct writer *w, uint32_t id)
{
	const struct pprof_label *label = intern_get(pp->labels, id - 1, NULL);

	put_number(&w->list, pprof_Label_key_tag, label->key);
	put_number(&w->list, pprof_Label_str_tag, label->text);
	put_number(&w->list, pprof_Label_num_tag, (uint64_t)label->number);
	put_number(&w->list, pprof_Label_num_unit_tag, label->unit);
	put_part(&w->part, pprof_Sample_label_tag, &w->list);
}

static void put_sample(const struct pprof *pp, struct writer *w, uint32_t index)
{
	uint32_t columns = intern_count(pp->columns);
	size_t key_len, stack_len;
	const uint32_t *key = intern_get(pp->samples, index, &key_len);
	const uint32_t *stack = intern_get(pp->stacks, key[0], &stack_len);

	for (size_t i = 0; i < stack_len / sizeof(*stack); i++)
		varint_append(&w->list, stack[i]);
	put_part(&w->part, pprof_Sample_location_id_tag, &w->list);
	for (uint32_t i = 0; i < columns && i < PPROF_MAX_COLUMNS; i++)
		varint_append(&w->list, (uint64_t)pp->rows[index].values[i]);
	put_part(&w->part, pprof_Sample_value_tag, &w->list);
	for (size_t i = 1; i < key_len / sizeof(*key); i++)
		put_label_message(pp, w, key[i]);
	put_part(w->out, pprof_Profile_sample_tag, &w->part);
}

static void put_mapping(const struct pprof *pp, struct writer *w, uint32_t index)
{
	struct buf *part = &w->part;
	const struct pprof_mapping *m = intern_get(pp->mappings, index, NULL);

	put_number(part, pprof_Mapping_id_tag, index + 1);
	put_number(part, pprof_Mapping_memory_start_tag, m->start);
	put_number(part, pprof_Mapping_memory_limit_tag, m->limit);
	put_number(part, pprof_Mapping_file_offset_tag, m->offset);
	put_number(part, pprof_Mapping_filename_tag, m->filename);
	put_number(part, pprof_Mapping_build_id_tag, m->build_id);
	/* These flags keep pprof from looking for more symbols. */
	put_number(part, pprof_Mapping_has_functions_tag, 1);
	put_number(part, pprof_Mapping_has_filenames_tag, 1);
	put_number(part, pprof_Mapping_has_line_numbers_tag, 1);
	put_number(part, pprof_Mapping_has_inline_frames_tag, 1);
	put_part(w->out, pprof_Profile_mapping_tag, part);
}

/* The rank of @m in the order of mappings: the first counts as the program, and one without a file (the kernel) is none. */
static int rank_of(const struct pprof *pp, const struct pprof_mapping *m)
{
	size_t len;
	const char *path = intern_get(pp->strings, m->filename, &len);

	if (m->filename && m->filename == pp->program)
		return 0;
	return len > 1 && path[0] == '/' && path[1] != '/' ? 1 : 2;
}

/* pprof shows the first mapping's file as that of the profile. If samples are of several programs, an empty mapping stands
 * first: it has a number of its own, and no location. */
static void put_no_program(const struct pprof *pp, struct writer *w)
{
	put_number(&w->part, pprof_Mapping_id_tag, intern_count(pp->mappings) + 1);
	put_number(&w->part, pprof_Mapping_has_functions_tag, 1);
	put_number(&w->part, pprof_Mapping_has_filenames_tag, 1);
	put_number(&w->part, pprof_Mapping_has_line_numbers_tag, 1);
	put_number(&w->part, pprof_Mapping_has_inline_frames_tag, 1);
	put_part(w->out, pprof_Profile_mapping_tag, &w->part);
}

static void put_mappings(const struct pprof *pp, struct writer *w)
{
	if (pp->has_several)
		put_no_program(pp, w);
	for (int rank = 0; rank <= 2; rank++)
		for (uint32_t i = 0; i < intern_count(pp->mappings); i++)
			if (rank_of(pp, intern_get(pp->mappings, i, NULL)) == rank)
				put_mapping(pp, w, i);
}

static void put_location(const struct pprof *pp, struct writer *w, uint32_t index)
{
	const struct pprof_location *l = intern_get(pp->locations, index, NULL);
	const struct pprof_line *line = (const void *)(l + 1);

	put_number(&w->part, pprof_Location_id_tag, index + 1);
	put_number(&w->part, pprof_Location_mapping_id_tag, l->mapping);
	put_number(&w->part, pprof_Location_address_tag, l->address);
	for (uint32_t i = 0; i < l->line_count; i++, line++) {
		put_number(&w->list, pprof_Line_function_id_tag, line->function);
		put_number(&w->list, pprof_Line_line_tag, (uint64_t)line->line);
		put_number(&w->list, pprof_Line_column_tag, (uint64_t)line->column);
		put_part(&w->part, pprof_Location_line_tag, &w->list);
	}
	put_number(&w->part, pprof_Location_is_folded_tag, l->is_folded);
	put_part(w->out, pprof_Profile_location_tag, &w->part);
}

static void put_function(const struct pprof *pp, struct writer *w, uint32_t index)
{
	const struct pprof_function *f = intern_get(pp->functions, index, NULL);

	put_number(&w->part, pprof_Function_id_tag, index + 1);
	put_number(&w->part, pprof_Function_name_tag, f->name);
	put_number(&w->part, pprof_Function_system_name_tag, f->system_name);
	put_number(&w->part, pprof_Function_filename_tag, f->filename);
	put_number(&w->part, pprof_Function_start_line_tag, (uint64_t)f->start_line);
	put_part(w->out, pprof_Profile_function_tag, &w->part);
}

/* The kind of sample that is shown when nobody chooses: CPU time where there is any, else the first. pprof would show the
 * last. */
static uint32_t default_type(const struct pprof *pp)
{
	for (uint32_t i = 0; i < intern_count(pp->columns) && i < PPROF_MAX_COLUMNS; i++) {
		const struct pprof_column *c = intern_get(pp->columns, i, NULL);
		size_t len;
		const char *name = intern_get(pp->strings, c->type, &len);

		if (str_is((struct str){ name, (uint32_t)len }, "cpu"))
			return c->type;
	}
	return intern_count(pp->columns) ? ((const struct pprof_column *)intern_get(pp->columns, 0, NULL))->type : 0;
}

static void put_whole(const struct pprof *pp, struct writer *w)
{
	struct buf *out = w->out;

	put_number(out, pprof_Profile_drop_frames_tag, pp->drop_frames);
	put_number(out, pprof_Profile_keep_frames_tag, pp->keep_frames);
	if (pp->start_ns != UINT64_MAX) {
		put_number(out, pprof_Profile_time_nanos_tag, pp->start_ns);
		put_number(out, pprof_Profile_duration_nanos_tag, pp->end_ns - pp->start_ns);
	}
	if (pp->period)
		put_type(w, pprof_Profile_period_type_tag, &pp->period_type);
	put_number(out, pprof_Profile_period_tag, (uint64_t)pp->period);
	for (uint32_t i = 0; i < intern_count(pp->comments); i++)
		varint_append(&w->list, *(const uint32_t *)intern_get(pp->comments, i, NULL));
	if (w->list.len)
		put_part(out, pprof_Profile_comment_tag, &w->list);
	put_number(out, pprof_Profile_default_sample_type_tag, default_type(pp));
	put_number(out, pprof_Profile_doc_url_tag, pp->doc_url);
}

/* Writes the message, and frees the writer's parts. 0 or -ENOMEM. */
static int write_message(const struct pprof *pp, struct writer *w)
{
	for (uint32_t i = 0; i < intern_count(pp->columns) && i < PPROF_MAX_COLUMNS; i++)
		put_type(w, pprof_Profile_sample_type_tag, intern_get(pp->columns, i, NULL));
	for (uint32_t i = 0; i < intern_count(pp->samples); i++, pass_on(w, PIECE_BYTES))
		put_sample(pp, w, i);
	put_mappings(pp, w);
	for (uint32_t i = 0; i < intern_count(pp->locations); i++, pass_on(w, PIECE_BYTES))
		put_location(pp, w, i);
	for (uint32_t i = 0; i < intern_count(pp->functions); i++, pass_on(w, PIECE_BYTES))
		put_function(pp, w, i);
	for (uint32_t i = 0; i < intern_count(pp->strings); i++, pass_on(w, PIECE_BYTES)) {
		size_t len;
		const void *text = intern_get(pp->strings, i, &len);

		put_bytes(w->out, pprof_Profile_string_table_tag, text, len);
	}
	put_whole(pp, w);
	pass_on(w, 0);
	w->failed |= w->part.failed || w->list.failed;
	buf_fini(&w->part);
	buf_fini(&w->list);
	return w->failed ? -ENOMEM : 0;
}

int pprof_write(const struct pprof *pp, struct buf *out)
{
	struct writer w = { .out = out };

	return write_message(pp, &w);
}

int pprof_write_packed(const struct pprof *pp, struct buf *out)
{
	AUTO(buf_fini) struct buf piece = BUF_EMPTY;
	struct writer w = { .out = &piece, .stream = gzip_stream_new(GZIP_LEVEL, out) };
	int err = w.stream ? write_message(pp, &w) : -ENOMEM;

	err = err ? err : gzip_stream_end(w.stream);
	gzip_stream_free(w.stream);
	return err;
}

/* --- the format --- */

static void *make_sum(void)
{
	return pprof_new();
}

static void free_sum(void *sum)
{
	pprof_free(sum);
}

static int add_to_sum(void *sum, const struct profiles *p)
{
	return pprof_add(sum, p);
}

static size_t sum_bytes(const void *sum)
{
	return pprof_memory_bytes(sum);
}

static int write_sum(void *sum, const struct format *format, struct buf *out, struct buf *left_out)
{
	const struct pprof_losses *lost = pprof_losses(sum);

	(void)format;
	format_tell(left_out, lost->timestamps, "times of samples");
	format_tell(left_out, lost->frame_attributes, "types of frames");
	format_tell(left_out, lost->other_attributes, "further attributes");
	format_tell(left_out, lost->events, "samples of further kinds");
	return pprof_write_packed(sum, out);
}

static const struct format_sum pprof_sum = {
	.make = make_sum,
	.free = free_sum,
	.add = add_to_sum,
	.memory_bytes = sum_bytes,
	.write = write_sum,
};

const struct format format_pprof = {
	.name = "pprof",
	.suffixes = { ".pb.gz", ".pprof" },
	.is_binary = true,
	.title = "pprof",
	.sign = SIGN_FIELDS,
	.fits = pprof_fits,
	.read = pprof_read,
	.sum = &pprof_sum,
};
