/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth convert`: writes a profile in another format. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/files/formats.h"

/* --format, or what the name of the output says. NULL after a message. */
static const struct format *choose_format(const struct config *config, const char *output)
{
	AUTO(buf_fini) struct buf suffixes = BUF_EMPTY;
	const struct format *format = config->convert_format ? format_by_name(config->convert_format)
							     : format_by_path(output);

	if (format)
		return format;
	format_list_suffixes(&suffixes);
	if (strcmp(output, "-"))
		log_error("'%s' does not say which format to write; end the name in one of %s, or say --format", output,
			  buf_text(&suffixes));
	else
		log_error("say which format to write to standard output: --format otlp, pprof, folded, ...");
	return NULL;
}

static int run_convert(const struct config *config)
{
	AUTO(buf_fini) struct buf left_out = BUF_EMPTY;
	const char *input = config->operands[0], *output = config->operands[1];
	const struct format *format = choose_format(config, output);
	int err;

	if (!format)
		return STATUS_USAGE;
	err = format_convert(input, format, output, &left_out);
	if (!err && left_out.len)
		log_info("%s has no place for: %s", format->name, buf_text(&left_out));
	return err ? STATUS_FAILED : STATUS_DONE;
}

const struct cmd cmd_convert = {
	.name = "convert",
	.bit = ON_CONVERT,
	.summary = "write a capture in another format: pprof, folded stacks, compressed",
	.operands = "IN OUT",
	.description =
		"Reads a profile (IN, or - for standard input) and writes it as OUT (- for standard output). What is read "
		"is known by its content: OTLP in every framing, protobuf or JSON; {readers}; perf.data by way of perf; "
		"gzip, zstd or xz around them. What is written is what OUT's name ends in, or what --format says. What a "
		"format has no place for is told once. Needs no root.",
	.example = "hearth convert x.otlp x.pb.gz",
	.min_operands = 2,
	.max_operands = 2,
	.run = run_convert,
};
