/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth report`: a capture file as text. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/capture.h"
#include "cmd/cmd.h"
#include "cmd/advice.h"
#include "cmd/config.h"
#include "cmd/output.h"
#include "proto/modules.h"
#include "proto/report.h"
#include "proto/truth.h"
#include "sinks/sinks.h"

/* Names are cut to the terminal's width, never in a file or a pipe. */
static unsigned terminal_columns(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

static unsigned place(const struct config *config)
{
	return config->lines ? FRAME_PLACE : 0;
}

static int write_top(const struct profiles *p, const struct config *config, struct buf *out)
{
	struct top *top = top_new();
	int err = -ENOMEM;

	if (top) {
		top_show(top, place(config));
		err = top_add(top, p);
	}
	if (!err)
		err = report_top(top, (uint32_t)config->rows, terminal_columns(), out);
	top_free(top);
	return err;
}

static int write_tree(const struct profiles *p, const struct config *config, struct buf *out)
{
	struct tree *tree = tree_new();
	int err = -ENOMEM;

	if (tree) {
		tree_show(tree, FRAME_INLINED | place(config));
		err = tree_add(tree, p);
	}
	if (!err)
		err = report_tree(tree, config->min_percent, terminal_columns(), out);
	tree_free(tree);
	return err;
}

static int write_folded(const struct profiles *p, const struct config *config, struct buf *out)
{
	struct tree *tree = tree_new();
	int err = -ENOMEM;

	if (tree) {
		tree_show(tree, place(config));
		err = tree_add(tree, p);
	}
	if (!err)
		err = report_folded(tree, out);
	tree_free(tree);
	return err;
}

static int write_print(const struct profiles *p, const struct config *config, struct buf *out)
{
	(void)config;
	print_profiles(p, NULL, out);
	return out->failed ? -ENOMEM : 0;
}

static int write_json(const struct profiles *p, const struct config *config, struct buf *out)
{
	struct top *top = top_new();
	struct tree *tree = tree_new();
	int err = top && tree ? top_add(top, p) : -ENOMEM;

	(void)config;
	if (!err)
		err = tree_add(tree, p);
	if (!err)
		err = report_json(top, tree, out);
	top_free(top);
	tree_free(tree);
	return err;
}

static int write_truth(const struct profiles *p, const struct config *config, struct buf *out)
{
	struct truth *truth = truth_new();
	int err = truth ? truth_add(truth, p) : -ENOMEM;

	(void)config;
	if (!err)
		err = truth_report(truth, out);
	truth_free(truth);
	return err;
}

static int write_modules(const struct profiles *p, const struct config *config, struct buf *out)
{
	struct modules *modules = modules_new();
	int err = modules ? modules_add(modules, p) : -ENOMEM;

	(void)config;
	if (!err)
		err = modules_report(modules, advise_debug_files, NULL, out);
	modules_free(modules);
	return err;
}

static const struct {
	const char *name; /* as in --format */
	int (*write)(const struct profiles *p, const struct config *config, struct buf *out);
} formats[] = {
	{ "top", write_top },	{ "tree", write_tree },	  { "folded", write_folded },	{ "print", write_print },
	{ "json", write_json }, { "truth", write_truth }, { "modules", write_modules },
};

static int write_format(const struct profiles *p, const struct config *config, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (!strcmp(formats[i].name, config->format))
			return formats[i].write(p, config, out);
	}
	return -EINVAL;
}

static int run_report(const struct config *config)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	const char *name = capture_name(config->operands[0]);
	struct capture capture;
	int err = capture_load(config->operands[0], &capture);

	if (err)
		return STATUS_FAILED;
	if (!capture.profiles->sample_events)
		log_warn("%s holds no samples", name);
	err = capture_demangle(capture.profiles);
	if (config->no_inline)
		capture_drop_inlined(capture.profiles);
	if (!err)
		err = write_format(capture.profiles, config, &text);
	profiles_put(capture.profiles);
	if (err) {
		log_error("cannot report on %s: %s", name, strerror(-err));
		return STATUS_FAILED;
	}
	return output_write(&text);
}

const struct cmd cmd_report = {
	.name = "report",
	.bit = ON_REPORT,
	.summary = "read a capture again: table, call tree, folded stacks, truth of the stacks, where names are from, "
		   "text or JSON",
	.operands = "FILE",
	.description = "Reads a capture (FILE, or - for standard input) and prints it. A capture that is cut in the middle, "
		       "such as the "
		       "FILE.part of a recording under way, is read as far as it goes. Needs no root.",
	.example = "hearth report x.otlp --format tree",
	.min_operands = 1,
	.max_operands = 1,
	.run = run_report,
};
