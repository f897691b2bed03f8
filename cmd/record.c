/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hearth record`: writes one capture into a file, of the machine or of a command. The order matters: fork the command (it
 * waits), load the programs, put its pid into their filter, start sampling, let it go. The file sink is used without a
 * queue: a record is appended once an interval, and an error to write it is known at once and ends the recording.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "cmd/files/capture.h"
#include "cmd/setup/child.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/files/formats.h"
#include "cmd/setup/no_samples.h"
#include "cmd/files/output.h"
#include "cmd/setup/session.h"
#include "cmd/setup/sinks_of.h"
#include "cmd/setup/targets.h"
#include "cmd/setup/user.h"
#include "cmd/view.h"
#include "proto/report/report.h"
#include "sinks/sinks.h"

enum { SUMMARY_ROWS = 15 };

/* The file, and the end of the recording when it cannot be written. finish() tells the error, nobody else. */
struct output_sink {
	struct sink base;
	struct sink *file; /* owned */
	struct loop *loop;
	int err; /* the first one */
};

static int output_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct output_sink *o = (struct output_sink *)sink;
	int err = sink_consume(o->file, p, ack);

	if (err && !o->err) {
		o->err = err;
		loop_stop(o->loop);
	}
	return err;
}

static int output_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct output_sink *o = (struct output_sink *)sink;
	int err = sink_flush(o->file, deadline_ns);

	if (!o->err)
		o->err = err;
	return err;
}

static void output_free(struct sink *sink)
{
	sink_free(MOVE(((struct output_sink *)sink)->file));
}

static const struct sink_ops output_ops = {
	.name = "file",
	.consume = output_consume,
	.flush = output_flush,
	.free = output_free,
};

struct recording {
	struct session session;
	struct child child;
	struct targets targets;
	struct output_sink output;
	struct buf path; /* "-": standard output */
	const struct format *format;
	struct buf
		capture_path; /* what is recorded grows here, and is made into @path at the end if that has another format */
	bool is_stream;	      /* standard output, a pipe, a device: nothing to rename or to measure */
	struct buf folder;    /* that the capture of a stream lies in; empty when there is none */
	bool shows_progress;
	bool summarises; /* the capture on the terminal in the end */
	struct viewer viewer;
	bool has_recorded; /* into @path, until the end */
};

/* --format, or what the name says; a stream without either is a capture. NULL after a message. */
static const struct format *choose_format(const struct config *config, const char *output, bool is_stream)
{
	AUTO(buf_fini) struct buf suffixes = BUF_EMPTY;
	const struct format *format;

	if (config->convert_format)
		format = format_by_name(config->convert_format);
	else
		format = is_stream ? format_by_name("otlp") : format_by_path(output);
	if (format)
		return format;
	format_list_suffixes(&suffixes);
	log_error("--output: '%s' does not say which format to write; end the name in one of %s, or say --format", output,
		  buf_text(&suffixes));
	return NULL;
}

/* The path of the capture that becomes @output in the end: beside it, or in a folder of its own when @output is a stream. */
static int choose_capture_path(struct recording *r, const char *output)
{
	const char *parent = getenv("TMPDIR");

	if (r->format->is_capture || !r->is_stream) {
		buf_printf(&r->capture_path, "%s%s", output, r->format->is_capture ? "" : ".otlp");
		return 0;
	}
	buf_printf(&r->folder, "%s/hearth-XXXXXX", parent && *parent ? parent : "/tmp");
	if (!mkdtemp((char *)(uintptr_t)buf_text(&r->folder))) {
		log_error("cannot make a folder for the capture, %s: %s; set TMPDIR to a place that can be written to",
			  buf_text(&r->folder), strerror(errno));
		buf_reset(&r->folder);
		return -errno;
	}
	buf_printf(&r->capture_path, "%s/capture.otlp", buf_text(&r->folder));
	return 0;
}

/* --output, or a name with the date. */
static int choose_path(struct recording *r, const struct config *config)
{
	const char *output = config->output;
	char name[64];
	struct stat st;
	struct tm tm;
	time_t now;

	if (!output) {
		now = time(NULL);
		strftime(name, sizeof(name), "hearth-%Y%m%d-%H%M%S.otlp", localtime_r(&now, &tm));
		output = name;
	}
	r->is_stream = !strcmp(output, "-") || (!stat(output, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
	if (!strcmp(output, "-") && config->operand_count) {
		log_error("--output -: the command writes to standard output too; name a file");
		return -EINVAL;
	}
	r->format = choose_format(config, output, r->is_stream);
	if (!r->format)
		return -EINVAL;
	if (!strcmp(output, "-") && r->format->is_binary && isatty(STDOUT_FILENO)) {
		log_error(
			"--output -: the format %s is binary and standard output is a terminal; redirect it or name a file",
			r->format->name);
		return -EINVAL;
	}
	buf_puts(&r->path, output);
	r->summarises = !config->output && isatty(STDOUT_FILENO) && !config->quiet;
	return choose_capture_path(r, output);
}

static const char *output_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard output";
}

static int open_file(struct recording *r)
{
	AUTO(buf_fini) struct buf part = BUF_EMPTY;
	const char *path = buf_text(&r->capture_path);
	struct user user;
	bool is_otlp = !strncmp(r->format->name, "otlp", 4); /* also packed, or as JSON */
	int err = sink_file_new(path, is_otlp ? FILE_END_MERGED : FILE_END_AS_IT_IS, &r->output.file);

	if (err) {
		log_error("cannot write %s: %s", path, sink_file_error(err));
		return err;
	}
	r->output.base.ops = &output_ops;
	r->output.loop = r->session.loop;
	r->session.sink = &r->output.base;
	if (!r->is_stream && user_invoking(&user)) { /* a stream's capture is root's, and nobody else's */
		buf_printf(&part, "%s.part", path);
		user_give_file(&user, buf_text(&part));
	}
	return 0;
}

/* --- while it runs --- */
static void on_time(void *arg)
{
	loop_stop(((struct recording *)arg)->session.loop);
}

static void on_progress(void *arg)
{
	struct recording *r = arg;
	struct agent_stats stats;
	uint64_t now_ns = clock_mono_ns(), start_ns = r->session.start_ns;
	double seconds = now_ns > start_ns ? (double)(now_ns - start_ns) / (double)NSEC_PER_SEC : 0;

	if (now_ns < start_ns) {
		fprintf(stderr, "\r\033[Kbegins in %.0f s", (double)(start_ns - now_ns) / (double)NSEC_PER_SEC);
		return;
	}
	agent_stats_read(r->session.agent, &stats);
	fprintf(stderr, "\r\033[K%.0f s  %" PRIu64 " samples  %" PRIu64 " lost", seconds, stats.taken, stats.lost);
}

/* Called at the end of the command, or at a signal after it. */
static void on_command_end(void *arg)
{
	struct recording *r = arg;

	if (!r->session.config->until_signal || r->child.is_signalled) {
		loop_stop(r->session.loop);
		return;
	}
	log_info("the command has ended; recording goes on until Ctrl-C (--until-signal)");
}

static void on_target_end(void *arg)
{
	struct recording *r = arg;

	log_info("the processes of --pid and the threads of --tid have ended");
	loop_stop(r->session.loop);
}

/* Recording ends with the processes, as perf's does: only their children would be left to record. */
static int watch_targets(struct recording *r)
{
	const struct config *config = r->session.config;

	if (r->child.pid || config->until_signal)
		return 0;
	return targets_watch(&r->targets, config, r->session.loop, on_target_end, r);
}

static int start_timers(struct recording *r)
{
	uint64_t duration_ns = r->session.config->duration_ns;
	struct loop_watch *timer;
	int err = 0;

	if (duration_ns) {
		err = loop_add_timer(r->session.loop, on_time, r, &timer);
		if (!err)
			err = loop_set_timer(timer, r->session.config->delay_ns + duration_ns, 0);
	}
	if (!err && r->shows_progress) {
		err = loop_add_timer(r->session.loop, on_progress, r, &timer);
		if (!err)
			err = loop_set_timer(timer, NSEC_PER_SEC, NSEC_PER_SEC);
	}
	if (err)
		log_error("cannot set a timer: %s", strerror(-err));
	return err;
}

/* Says where profiles go, and that a signal ends the recording when nothing else does. */
static void describe_target(struct recording *r, struct buf *out)
{
	const struct config *config = r->session.config;
	bool has_end = config->duration_ns ||
		       ((r->child.pid || config->pids.count || config->tids.count) && !config->until_signal);

	buf_printf(out, "%s%s", output_name(buf_text(&r->path)), has_end ? "" : "; Ctrl-C ends it");
}

static int start(struct recording *r)
{
	AUTO(buf_fini) struct buf target = BUF_EMPTY;
	struct session *s = &r->session;
	int err = r->child.pid ? child_watch(&r->child, s->loop, on_command_end, r) : session_end_on_signals(s);

	if (!err && r->child.is_stopped)
		err = session_add_malloc(s, r->child.pid);
	if (!err)
		err = session_confine(s, true, r->child.pid);
	if (!err)
		err = open_file(r);
	if (!err && !strcmp(buf_text(&r->path), "-"))
		session_end_on_closed_stdout(s);
	s->setup.agent.heap_at_end = true; /* what is in use is of a moment: a file adds up what it has */
	if (!err)
		err = session_load_agent(s, s->config->all_cpus ? 0 : (uint32_t)r->child.pid);
	describe_target(r, &target);
	if (!err)
		err = session_start_agent(s, buf_text(&target));
	if (!err)
		err = start_timers(r);
	if (!err)
		err = watch_targets(r);
	if (!err && r->child.pid)
		err = child_release(&r->child); /* before anything is written: a command that cannot run leaves no file */
	return err;
}

/* --- the end --- */
static void print_size(uint64_t bytes, struct buf *out)
{
	if (bytes < 1024)
		buf_printf(out, "%u bytes", (unsigned)bytes);
	else if (bytes < 1024 * 1024)
		buf_printf(out, "%.1f KiB", (double)bytes / 1024);
	else
		buf_printf(out, "%.1f MiB", (double)bytes / (1024 * 1024));
}

/* Makes the file that was asked for of the capture, which stays when that fails. */
static int convert(struct recording *r)
{
	const char *from = buf_text(&r->capture_path);
	struct capture capture;
	int err = capture_load(from, &capture);

	if (err)
		return err;
	err = format_write_file(capture.profiles, r->format, buf_text(&r->path), NULL);
	profiles_put(capture.profiles);
	if (err)
		log_error("what was recorded is in %s; write it elsewhere with: hearth convert %s FILE", from, from);
	else
		unlink(from);
	return err;
}

static int add_to_top(void *top, struct profiles *p)
{
	return top_add(top, p);
}

/* The heaviest functions, for a user who did not say what to do with the capture. */
static void summarise(const char *path)
{
	const struct report_style style = { .columns = output_size().columns, .max_rows = SUMMARY_ROWS };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct top *top = top_new();

	if (top && !capture_each(path, add_to_top, top) && !report_top(top, &style, &text))
		output_write(&text);
	top_free(top);
}

/* After the sink is gone, so the capture has its name. */
static int report_file(struct recording *r, double seconds, bool is_empty)
{
	AUTO(buf_fini) struct buf size = BUF_EMPTY;
	const char *path = buf_text(&r->path);
	struct stat st;
	int err = r->format->is_capture ? 0 : convert(r);

	if (err)
		return err;
	if (stat(path, &st))
		return -errno; /* the sink has said why it kept its first name */
	print_size((uint64_t)st.st_size, &size);
	if (r->format->is_capture && !is_empty)
		log_info("%s: %s, %.1f s; read it with: hearth report %s", path, buf_text(&size), seconds, path);
	else
		log_info("%s: %s, %.1f s", path, buf_text(&size), seconds);
	if (r->summarises && !is_empty)
		summarise(path);
	return 0;
}

static void tell_write_error(struct recording *r)
{
	const char *path = output_name(buf_text(&r->capture_path));

	if (r->is_stream)
		log_error("writing to %s failed: %s", path, strerror(-r->output.err));
	else
		log_error("writing %s.part failed: %s; 'hearth report %s.part' reads what was written before", path,
			  strerror(-r->output.err), path);
}

/* "No sample" is an answer only with its reason. */
static void tell_no_samples(const struct recording *r)
{
	AUTO(buf_fini) struct buf why = BUF_EMPTY;
	const struct session *s = &r->session;

	no_samples_explain(s->config, &r->child, s->end_ns - s->start_ns + s->config->delay_ns, &why);
	log_warn("%s", buf_text(&why));
}

static int finish(struct recording *r)
{
	AUTO(buf_fini) struct buf account = BUF_EMPTY;
	struct session *s = &r->session;
	struct agent_stats stats;
	double seconds = s->end_ns > s->start_ns ? (double)(s->end_ns - s->start_ns) / (double)NSEC_PER_SEC : 0;
	int err;

	if (r->shows_progress)
		fputs("\r\033[K", stderr);
	err = session_drain(s, NULL, NULL);
	session_account(s, &account);
	agent_stats_read(s->agent, &stats);
	sink_free(MOVE(s->sink));
	if (r->output.err && r->output.err != -EPIPE) /* EPIPE: the reader of our output has gone, and knows */
		tell_write_error(r);
	else if (err)
		session_log_undelivered(s, err);
	else if (!r->is_stream)
		err = report_file(r, seconds, !stats.taken);
	else if (!r->format->is_capture)
		err = convert(r);
	if (!stats.taken)
		tell_no_samples(r);
	session_log_truth(s);
	session_log_kinds(s);
	log_info("%s", buf_text(&account));
	r->has_recorded = !err;
	return err;
}

static int record(struct recording *r)
{
	int err = start(r), status;

	if (err)
		return err == -ECHILD ? child_wait(&r->child) : STATUS_FAILED;
	err = session_run(&r->session);
	if (finish(r))
		err = -EIO;
	status = r->child.pid ? child_wait(&r->child) : STATUS_DONE;
	return status ? status : err ? STATUS_FAILED : STATUS_DONE;
}

/* Takes what a stream was made of away, or tells where it is. */
static void end_folder(struct recording *r)
{
	if (r->folder.len && rmdir(buf_text(&r->folder)))
		log_warn("%s is left behind: %s", buf_text(&r->folder), strerror(errno));
}

/* Is the command's allocator to be found before the command runs? */
static bool samples_malloc(const struct config *config)
{
	for (size_t i = 0; i < config->events.count; i++)
		if (!strcmp(config->events.items[i], "malloc"))
			return true;
	return false;
}

static int run_record(const struct config *config)
{
	struct recording r = { .child = CHILD_NONE, .path = BUF_EMPTY };
	int status = STATUS_FAILED, err = 0;

	r.shows_progress = isatty(STDERR_FILENO) && !config->quiet;
	if (session_check_options(&r.session, config) || choose_path(&r, config))
		status = STATUS_USAGE;
	else if (config->open)
		err = view_fork(&r.viewer, buf_text(&r.path));
	if (!err && status != STATUS_USAGE && config->operand_count)
		err = child_fork(config->operands, config->as_root, &r.child);
	if (!err && r.child.pid && samples_malloc(config))
		err = child_stop_at_entry(&r.child);
	if (err == -ECHILD)
		status = child_wait(&r.child);
	else if (!err && status != STATUS_USAGE && !session_open(&r.session, config))
		status = record(&r);
	targets_fini(&r.targets);
	session_close(&r.session);
	child_fini(&r.child);
	end_folder(&r);
	view_end(&r.viewer, r.has_recorded && !access(buf_text(&r.path), R_OK));
	buf_fini(&r.path);
	buf_fini(&r.capture_path);
	buf_fini(&r.folder);
	return status;
}

const struct cmd cmd_record = {
	.name = "record",
	.bit = ON_RECORD,
	.summary = "capture the machine, or one command, into a file",
	.operands = "[--] [COMMAND [ARG]...]",
	.description = "Profiles into a file: for --duration, until Ctrl-C, or until COMMAND ends, whose exit status is "
		       "passed on. Without "
		       "COMMAND and --pid it is the whole machine; with COMMAND it is that and its children, or with -a "
		       "the machine for as long as COMMAND runs. COMMAND runs as the user who called sudo. The file is "
		       "FILE.part until "
		       "it is complete. Needs root.",
	.example = "sudo hearth record -d 10 -o x.otlp",
	.max_operands = (size_t)-1,
	.ends_at_operand = true,
	.run = run_record,
};
