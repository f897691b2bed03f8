/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hearth diff`: what changed between captures of two programs, or of two states of one. The status says whether what was
 * asked for holds, so that a script can stand on it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/diff_check.h"
#include "cmd/files/capture.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/files/formats.h"
#include "cmd/terminal/pager.h"
#include "cmd/setup/view_of.h"
#include "proto/report/diff_table.h"

enum { MAX_FAILURES = 15 }; /* one screen */

/* How many of the operands are A. 0 after a message. */
static size_t count_a(const struct config *config)
{
	if (config->operands_after_dashes && config->operands_after_dashes < config->operand_count)
		return config->operand_count - config->operands_after_dashes;
	if (!config->operands_after_dashes && config->operand_count == 2)
		return 1;
	log_error("which captures are the first side, and which the second? Say: hearth diff A1 A2 -- B1 B2");
	return 0;
}

static int add_file(struct diff *d, enum diff_side side, const char *path, const struct config *config)
{
	struct capture capture;
	int err = capture_load(path, &capture);

	if (err)
		return err;
	err = capture_demangle(capture.profiles, NULL);
	if (config->no_inline)
		capture_drop_inlined(capture.profiles);
	if (!err)
		err = diff_add_run(d, side, capture.profiles);
	profiles_put(capture.profiles);
	if (err == -EINVAL)
		log_error("%s counts something else than the captures before it; compare like with like",
			  capture_name(path));
	else if (err)
		log_error("cannot compare %s: %s", capture_name(path), strerror(-err));
	return err;
}

/* "2%", "2", "0.5 %" into a part of 1. */
static int parse_percent(const char *text, double *ret)
{
	char *end;
	double value = strtod(text, &end);
	bool is_number = end != text;

	end += *end == ' ';
	end += *end == '%';
	if (!is_number || *end || !(value >= 0) || value > 100) {
		log_error("--fail-above: '%s' is no part of the whole; give one such as 2%%", text);
		return -EINVAL;
	}
	*ret = value / 100;
	return 0;
}

static int write_result(const struct diff_result *result, const struct config *config, struct buf *out)
{
	struct report_style style = view_style_of(config);
	const char *format = config->markdown ? "markdown" : config->diff_format;

	if (!strcmp(format, "markdown"))
		return report_diff_markdown(result, &style, out);
	if (!strcmp(format, "csv"))
		return report_diff_csv(result, out);
	if (!strcmp(format, "json"))
		return report_diff_json(result, out);
	return report_diff(result, &style, out);
}

/* The function that writes the picture @path, by its suffix. NULL: none does. */
typedef int picture_fn(const struct diff *d, const struct diff_result *result, struct buf *out);
static picture_fn *picture_of(const char *path)
{
	const struct format *format = format_by_path(path);

	if (format && !strcmp(format->name, "svg"))
		return report_diff_svg;
	return format && !strcmp(format->name, "html") ? report_diff_html : NULL;
}

static bool is_picture(const char *path)
{
	if (!path || picture_of(path))
		return true;
	log_error("-o: '%s' is no name of a picture; end it in .svg or .html (--format has the texts, on standard output)",
		  path);
	return false;
}

static int write_picture(const struct diff *d, const struct diff_result *result, const char *path)
{
	AUTO(buf_fini) struct buf picture = BUF_EMPTY;
	int err = picture_of(path)(d, result, &picture);

	if (!err)
		err = format_replace_file(path, &picture);
	if (err)
		log_error("cannot write %s: %s", path, strerror(-err));
	return err;
}

/* The status of --fail-above. */
static int check(const struct diff_result *result, const struct config *config, double limit)
{
	AUTO(buf_fini) struct buf why = BUF_EMPTY;
	uint32_t count = diff_check(result, limit, MAX_FAILURES, &why);

	if (!count)
		return STATUS_DONE;
	log_error("failed: more than noise, and more than %s of the whole (--fail-above), was added by", config->fail_above);
	fputs(buf_text(&why), stderr);
	fputs("  To see where: the same command with -o diff.html, or hearth report --format tree --focus NAME on both "
	      "sides.\n"
	      "  If it is meant, and the first side is a kept baseline: record that anew.\n",
	      stderr);
	return STATUS_CHANGED;
}

static int load(struct diff *d, const struct config *config, size_t a)
{
	int err = 0;

	for (size_t i = 0; i < config->operand_count && !err; i++)
		err = add_file(d, i < a ? DIFF_A : DIFF_B, config->operands[i], config);
	return err;
}

static int judge(struct diff *d, const struct config *config, const struct diff_result **ret)
{
	bool is_auto = !strcmp(config->measure, "auto"), is_time = !strcmp(config->measure, "time");
	int err = diff_judge(d, is_auto ? DIFF_AUTO : is_time ? DIFF_TIMES : DIFF_SHARES, config->least_change / 100, ret);

	if (err == -EINVAL && is_time)
		log_error("--measure time needs two captures a side at least, each with samples of CPU time");
	else if (err == -EINVAL)
		log_error("one of the captures holds no samples that are asked for; there is nothing to compare");
	else if (err)
		log_error("cannot compare: %s", strerror(-err));
	return err;
}

static int run_diff(const struct config *config)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	const struct diff_result *result;
	struct view *view;
	struct diff *d;
	double limit = 0;
	size_t a = count_a(config);
	int status = STATUS_FAILED, written;

	if (!a || !is_picture(config->picture) || (config->fail_above && parse_percent(config->fail_above, &limit)))
		return STATUS_USAGE;
	view = view_of(config, &status);
	if (!view)
		return status;
	d = diff_new(view);
	if (!d)
		log_error("cannot compare: %s", strerror(ENOMEM));
	if (d && !load(d, config, a) && view_is_decided(view, config) && !judge(d, config, &result)) {
		written = config->picture && write_picture(d, result, config->picture) ? STATUS_FAILED : STATUS_DONE;
		if (written == STATUS_DONE)
			written = write_result(result, config, &out) ? STATUS_FAILED : pager_write(&out, config->no_pager);
		status = written == STATUS_DONE && config->fail_above ? check(result, config, limit) : written;
	}
	diff_free(d);
	view_free(view);
	return status;
}

const struct cmd cmd_diff = {
	.name = "diff",
	.bit = ON_DIFF,
	.summary = "what changed between captures, told apart from noise; fails a check on request",
	.operands = "A B | A... -- B...",
	.description =
		"Compares captures A and B, or several runs of each, which makes it sharper: the more runs, the smaller a "
		"change is seen. Functions, in themselves and with what they call, and stacks are compared. "
		"Only what differs by more than its noise counts as changed; of twenty comparisons "
		"of equal programs, one may show something.\n"
		"\n"
		"Exit status: 0, or 3 when --fail-above says so.",
	.example = "hearth diff --fail-above 2% old1.otlp old2.otlp old3.otlp -- new1.otlp new2.otlp new3.otlp",
	.min_operands = 2,
	.max_operands = SIZE_MAX,
	.run = run_diff,
};
