/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the tables of a pprof profile as protobuf. */
#include <errno.h>

#include "base/cleanup.h"
#include "base/pack/gzip.h"
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
	pprof_put_number(&w->part, pprof_ValueType_type_tag, c->type);
	pprof_put_number(&w->part, pprof_ValueType_unit_tag, c->unit);
	pprof_put_part(w->out, field, &w->part);
}

/* Appends row @index of @table as it stands there; as a submessage, if @field is not 0. */
static void put_row(struct buf *out, uint32_t field, const struct intern *table, uint32_t index)
{
	size_t len;
	const void *row = intern_get(table, index, &len);

	if (field)
		pprof_put_bytes(out, field, row, len);
	else
		buf_append(out, row, len);
}

static void put_sample(const struct pprof *pp, struct writer *w, uint32_t index)
{
	uint32_t columns = intern_count(pp->columns);
	size_t len;
	const uint8_t *at = intern_get(pp->samples, index, &len), *end = at + len;
	uint64_t stack = 0, label = 0;

	at = varint_read(at, end, &stack);
	put_row(&w->part, pprof_Sample_location_id_tag, pp->stacks, (uint32_t)stack);
	for (uint32_t i = 0; i < columns && i < PPROF_MAX_COLUMNS; i++)
		varint_append(&w->list, index < pp->values[i].cap ? (uint64_t)pp->values[i].items[index] : 0);
	pprof_put_part(&w->part, pprof_Sample_value_tag, &w->list);
	while ((at = varint_read(at, end, &label)))
		put_row(&w->part, pprof_Sample_label_tag, pp->labels, (uint32_t)label - 1);
	pprof_put_part(w->out, pprof_Profile_sample_tag, &w->part);
}

static void put_mapping(const struct pprof *pp, struct writer *w, uint32_t index)
{
	struct buf *part = &w->part;
	const struct pprof_mapping *m = intern_get(pp->mappings, index, NULL);

	pprof_put_number(part, pprof_Mapping_id_tag, index + 1);
	pprof_put_number(part, pprof_Mapping_memory_start_tag, m->start);
	pprof_put_number(part, pprof_Mapping_memory_limit_tag, m->limit);
	pprof_put_number(part, pprof_Mapping_file_offset_tag, m->offset);
	pprof_put_number(part, pprof_Mapping_filename_tag, m->filename);
	pprof_put_number(part, pprof_Mapping_build_id_tag, m->build_id);
	/* These flags keep pprof from looking for more symbols. */
	pprof_put_number(part, pprof_Mapping_has_functions_tag, 1);
	pprof_put_number(part, pprof_Mapping_has_filenames_tag, 1);
	pprof_put_number(part, pprof_Mapping_has_line_numbers_tag, 1);
	pprof_put_number(part, pprof_Mapping_has_inline_frames_tag, 1);
	pprof_put_part(w->out, pprof_Profile_mapping_tag, part);
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
	pprof_put_number(&w->part, pprof_Mapping_id_tag, intern_count(pp->mappings) + 1);
	pprof_put_number(&w->part, pprof_Mapping_has_functions_tag, 1);
	pprof_put_number(&w->part, pprof_Mapping_has_filenames_tag, 1);
	pprof_put_number(&w->part, pprof_Mapping_has_line_numbers_tag, 1);
	pprof_put_number(&w->part, pprof_Mapping_has_inline_frames_tag, 1);
	pprof_put_part(w->out, pprof_Profile_mapping_tag, &w->part);
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

/* A location or a function: the id is the first field of each. */
static void put_with_id(struct writer *w, uint32_t field, const struct intern *table, uint32_t index)
{
	_Static_assert((int)pprof_Location_id_tag == (int)pprof_Function_id_tag, "one field for both");
	pprof_put_number(&w->part, pprof_Location_id_tag, index + 1);
	put_row(&w->part, 0, table, index);
	pprof_put_part(w->out, field, &w->part);
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

	pprof_put_number(out, pprof_Profile_drop_frames_tag, pp->drop_frames);
	pprof_put_number(out, pprof_Profile_keep_frames_tag, pp->keep_frames);
	if (pp->start_ns != UINT64_MAX) {
		pprof_put_number(out, pprof_Profile_time_nanos_tag, pp->start_ns);
		pprof_put_number(out, pprof_Profile_duration_nanos_tag, pp->end_ns - pp->start_ns);
	}
	if (pp->period)
		put_type(w, pprof_Profile_period_type_tag, &pp->period_type);
	pprof_put_number(out, pprof_Profile_period_tag, (uint64_t)pp->period);
	for (uint32_t i = 0; i < intern_count(pp->comments); i++)
		varint_append(&w->list, *(const uint32_t *)intern_get(pp->comments, i, NULL));
	if (w->list.len)
		pprof_put_part(out, pprof_Profile_comment_tag, &w->list);
	pprof_put_number(out, pprof_Profile_default_sample_type_tag, default_type(pp));
	pprof_put_number(out, pprof_Profile_doc_url_tag, pp->doc_url);
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
		put_with_id(w, pprof_Profile_location_tag, pp->locations, i);
	for (uint32_t i = 0; i < intern_count(pp->functions); i++, pass_on(w, PIECE_BYTES))
		put_with_id(w, pprof_Profile_function_tag, pp->functions, i);
	for (uint32_t i = 0; i < intern_count(pp->strings); i++, pass_on(w, PIECE_BYTES))
		put_row(w->out, pprof_Profile_string_table_tag, pp->strings, i);
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
