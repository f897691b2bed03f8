/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hearth report`: prints captures as text. Each format is made of aggregates, which read one capture after another, and a
 * writer of what they hold in the end.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text/pattern.h"
#include "cmd/setup/advice.h"
#include "cmd/files/capture.h"
#include "cmd/files/source_file.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/terminal/pager.h"
#include "cmd/setup/print_of.h"
#include "cmd/setup/view_of.h"
#include "proto/sums/modules.h"
#include "proto/report/report.h"
#include "proto/sums/truth.h"
#include "sinks/sinks.h"

/* The aggregates of the samples that a format needs. */
enum need {
	NEED_TOP = 1,
	NEED_LINES = 2,
	NEED_TREE = 4,
	NEED_ACTIVITY = 8,
	NEED_MODULES = 16,
	NEED_TRUTH = 32,
	NEED_ALL = 64,
	NEED_LOCKS = 128
};

struct report {
	const struct config *config;
	const struct report_format *format;
	struct report_style style;
	struct view *view;
	const char *path; /* of the capture that is read */
	uint64_t events;  /* in it */
	struct capture_names *names;
	/* The aggregates that the format needs. */
	struct top *top, *lines;
	struct tree *tree;
	struct activity *activity;
	struct modules *modules;
	struct truth *truth;
	struct locks *locks;
	struct buf out;
};

struct report_format {
	const char *name; /* as in --format */
	unsigned needs;	  /* enum need */
	int (*write)(struct report *r);
	unsigned extras;	 /* enum frame_extra, in a tree */
	enum activity_rows rows; /* of NEED_ACTIVITY */
};

/* The table of functions, by line if that was asked for. */
static struct top *table(struct report *r)
{
	return r->top ? r->top : r->lines;
}

static int write_top(struct report *r)
{
	return report_top(table(r), &r->style, &r->out);
}

static int write_csv(struct report *r)
{
	return report_csv(table(r), &r->out);
}

static int write_lines(struct report *r)
{
	struct pattern *pattern = NULL;
	struct pattern_error why;
	int err = r->config->function ? pattern_new(r->config->function, 0, &pattern, &why) : 0;

	if (err == -EINVAL)
		log_error("--function: '%s' is no regular expression: %s", r->config->function, why.message);
	if (!err)
		err = report_lines(r->top, r->lines, pattern, source_file_read, &r->style, &r->out);
	if (!err && pattern && pattern_gave_up(pattern)) {
		log_error("--function: '%s' takes too many steps to tell whether it matches; write a simpler expression",
			  r->config->function);
		err = -EINVAL;
	}
	pattern_free(pattern);
	return err;
}

static int write_tree(struct report *r)
{
	return report_tree(r->tree, &r->style, &r->out);
}

static int write_folded(struct report *r)
{
	return report_folded(r->tree, &r->out);
}

static int write_activity(struct report *r)
{
	bool is_timeline = !strcmp(r->format->name, "timeline");

	return report_activity(r->activity, is_timeline, &r->style, &r->out);
}

static int write_json(struct report *r)
{
	return report_json(table(r), r->activity, r->tree, &r->out);
}

static int write_truth(struct report *r)
{
	return truth_report(r->truth, &r->out);
}

static int write_modules(struct report *r)
{
	return modules_report(r->modules, advice_debug_files, NULL, &r->out);
}

static int write_locks(struct report *r)
{
	return report_locks(r->locks, &r->style, &r->out);
}

/* The text is in r->out already. */
static int write_nothing(struct report *r)
{
	(void)r;
	return 0;
}

static const struct report_format formats[] = {
	{ .name = "top", .needs = NEED_TOP, .write = write_top },
	{ .name = "tree", .needs = NEED_TREE, .write = write_tree, .extras = FRAME_INLINED },
	{ .name = "folded", .needs = NEED_TREE, .write = write_folded },
	{ .name = "lines", .needs = NEED_TOP | NEED_LINES, .write = write_lines },
	{ .name = "processes", .needs = NEED_ACTIVITY, .write = write_activity, .rows = ACTIVITY_PROCESSES },
	{ .name = "threads", .needs = NEED_ACTIVITY, .write = write_activity, .rows = ACTIVITY_THREADS },
	{ .name = "timeline", .needs = NEED_ACTIVITY, .write = write_activity, .rows = ACTIVITY_PROCESSES },
	{ .name = "locks", .needs = NEED_LOCKS, .write = write_locks },
	{ .name = "csv", .needs = NEED_TOP, .write = write_csv },
	{ .name = "json", .needs = NEED_TOP | NEED_TREE | NEED_ACTIVITY, .write = write_json, .rows = ACTIVITY_PROCESSES },
	{ .name = "truth", .needs = NEED_TRUTH, .write = write_truth },
	{ .name = "modules", .needs = NEED_MODULES, .write = write_modules },
	{ .name = "print", .needs = NEED_ALL, .write = write_nothing },
};

static void report_fini(struct report *r)
{
	view_free(r->view);
	capture_names_free(r->names);
	top_free(r->top);
	top_free(r->lines);
	tree_free(r->tree);
	activity_free(r->activity);
	modules_free(r->modules);
	truth_free(r->truth);
	locks_free(r->locks);
	buf_fini(&r->out);
}

/* A timeline is by process, by thread, or by whatever else samples can be grouped by. */
static enum activity_rows rows_of(const struct report *r)
{
	const char *by = r->config->by;

	if (strcmp(r->format->name, "timeline") || !by)
		return r->format->rows;
	return !strcmp(by, "process") ? ACTIVITY_PROCESSES : !strcmp(by, "thread") ? ACTIVITY_THREADS : ACTIVITY_GROUPS;
}

static int make_aggregates(struct report *r)
{
	unsigned needs = r->format->needs;

	if (r->config->lines && needs & NEED_TOP && !(needs & NEED_LINES))
		needs = (needs & ~(unsigned)NEED_TOP) | NEED_LINES;
	if ((needs & NEED_TOP && !(r->top = top_new())) || (needs & NEED_LINES && !(r->lines = top_new())) ||
	    (needs & NEED_TREE && !(r->tree = tree_new())) ||
	    (needs & NEED_ACTIVITY && !(r->activity = activity_new(rows_of(r), r->view))) ||
	    (needs & NEED_MODULES && !(r->modules = modules_new())) || (needs & NEED_TRUTH && !(r->truth = truth_new())) ||
	    (needs & NEED_LOCKS && !(r->locks = locks_new(r->view))))
		return -ENOMEM;
	if (r->top)
		top_view(r->top, r->view);
	if (r->lines) {
		top_view(r->lines, r->view);
		top_split_lines(r->lines);
	}
	if (r->tree) {
		tree_view(r->tree, r->view);
		tree_show(r->tree, r->format->extras | (r->config->lines ? FRAME_PLACE : 0));
		if (r->config->invert)
			tree_invert(r->tree);
	}
	return 0;
}

static int add(struct report *r, const struct profiles *p)
{
	int err = 0;

	if (r->top)
		err = top_add(r->top, p);
	if (!err && r->lines)
		err = top_add(r->lines, p);
	if (!err && r->tree)
		err = tree_add(r->tree, p);
	if (!err && r->activity)
		err = activity_add(r->activity, p);
	if (!err && r->modules)
		err = modules_add(r->modules, p);
	if (!err && r->truth)
		err = truth_add(r->truth, p);
	if (!err && r->locks)
		err = locks_add(r->locks, p);
	if (!err && r->format->needs & NEED_ALL) {
		struct print_options options = print_options_of(r->config);

		print_profiles(p, &options, &r->out);
		err = r->out.failed ? -ENOMEM : 0;
	}
	return err;
}

static int add_part(void *arg, struct profiles *p)
{
	struct report *r = arg;
	int err = capture_demangle(p, r->names);

	r->events += p->sample_events;
	if (r->config->no_inline)
		capture_drop_inlined(p);
	if (!err)
		err = add(r, p);
	if (err)
		log_error("cannot report on %s: %s", capture_name(r->path), strerror(-err));
	return err;
}

static int add_file(struct report *r, const char *path)
{
	int err;

	r->path = path;
	r->events = 0;
	err = capture_each(path, add_part, r);
	if (!err && !r->events)
		log_warn("%s holds no samples", capture_name(path));
	return err;
}

/* Options that say nothing about this format would be believed to have had an effect. */
static const char *useless_option(const struct report *r)
{
	const struct config *config = r->config;
	unsigned needs = r->format->needs;

	if (needs & (NEED_MODULES | NEED_TRUTH | NEED_ALL) && view_option_given(config))
		return view_option_given(config);
	if (config->by && needs & NEED_ACTIVITY && !(needs & NEED_TREE) && strcmp(r->format->name, "timeline"))
		return "--by";
	if (needs & NEED_LOCKS && (config->by || config->only_kind))
		return config->by ? "--by" : "--kind";
	if (config->invert && !(needs & NEED_TREE))
		return "--invert";
	if (config->depth && r->format->write != write_tree)
		return "--depth";
	if (config->function && !(needs & NEED_LINES))
		return "--function";
	return NULL;
}

static int run_report(const struct config *config)
{
	AUTO(report_fini) struct report r = { .config = config, .style = view_style_of(config), .out = BUF_EMPTY };
	int err, status = STATUS_FAILED;

	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (!strcmp(formats[i].name, config->format))
			r.format = &formats[i];
	if (useless_option(&r)) {
		log_error("%s has no meaning with --format %s", useless_option(&r), config->format);
		return STATUS_USAGE;
	}
	r.view = view_of(config, &status);
	if (!r.view)
		return status;
	r.names = capture_names_new();
	if (!r.names || make_aggregates(&r)) {
		log_error("cannot report: %s", strerror(ENOMEM));
		return STATUS_FAILED;
	}
	for (size_t i = 0; i < config->operand_count; i++)
		if (add_file(&r, config->operands[i]))
			return STATUS_FAILED;
	err = view_is_decided(r.view, config) ? r.format->write(&r) : -EINVAL;
	if (err == -EINVAL)
		return STATUS_USAGE;
	if (err) {
		log_error("cannot put the report together: %s", strerror(-err));
		return STATUS_FAILED;
	}
	return pager_write(&r.out, config->no_pager);
}

const struct cmd cmd_report = {
	.name = "report",
	.bit = ON_REPORT,
	.summary = "read captures again: table, call tree, source lines, processes, timeline, truth of the stacks, text, "
		   "CSV or JSON",
	.operands = "FILE...",
	.description =
		"Reads captures (FILE, - for standard input, or the folder of a store) and prints them as one. A capture "
		"that is cut in the "
		"middle, such as the FILE.part of a recording under way, is read as far as it goes. Needs no root.\n"
		"\n"
		"RE is a regular expression (Perl's) that may match anywhere in a name. On a terminal, what is longer "
		"than it goes through $PAGER, or less; elsewhere the text is plain and the same for the same input.",
	.example = "hearth report x.otlp --format tree --focus malloc",
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run_report,
};
