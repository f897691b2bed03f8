/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth check`: prints the agent's own checks as text, three lines at most each, or as JSON. */
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/log.h"
#include "base/text/tree.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/config_file.h"
#include "cmd/pipeline/pipelines.h"
#include "cmd/files/output.h"
#include "cmd/setup/enrich_of.h"

static const char *const words[CHECK_RESULT_MAX] = {
	[CHECK_YES] = "yes", [CHECK_PARTLY] = "partly", [CHECK_NO] = "no", [CHECK_UNKNOWN] = "unknown"
};

struct text_output {
	struct buf *out;
	bool all;	  /* what each means */
	uint32_t columns; /* of the terminal; 0: no line is broken */
};

enum { MARGIN = 9 }; /* where texts begin: behind the longest word and a blank */

/* @head in the margin, and @text from there on, broken at blanks where the terminal ends. */
static void print_wrapped(const struct text_output *t, const char *head, const char *text)
{
	size_t room = t->columns > 2 * MARGIN ? t->columns - MARGIN : SIZE_MAX;

	for (size_t len = strlen(text), line; len; text += line, len -= line, head = "") {
		line = len;
		if (line > room) {
			for (line = room; line && text[line] != ' '; line--)
				;
			line = line ? line : room;
		}
		buf_printf(t->out, "%-*s%.*s\n", MARGIN, head, (int)line, text);
		for (; text[line] == ' '; line++)
			;
	}
}

static void print_text(void *arg, const struct check *check)
{
	AUTO(buf_fini) struct buf line = BUF_EMPTY;
	struct text_output *t = arg;

	buf_printf(&line, "%s%s%s", check->name, check->found[0] ? ": " : "", check->found);
	print_wrapped(t, words[check->result], buf_text(&line));
	if (check->result != CHECK_YES || t->all)
		print_wrapped(t, "", check->means);
	if (check->advice[0]) {
		buf_reset(&line);
		buf_printf(&line, "=> %s", check->advice);
		print_wrapped(t, "", buf_text(&line));
	}
}

static void print_json(void *arg, const struct check *check)
{
	struct json *j = arg;

	json_object_begin(j);
	json_key(j, "name");
	json_string(j, check->name);
	json_key(j, "result");
	json_string(j, words[check->result]);
	json_key(j, "found");
	json_string(j, check->found);
	json_key(j, "means");
	json_string(j, check->means);
	json_key(j, "do");
	json_string(j, check->advice);
	json_object_end(j);
}

static void add_note(void *arg, const char *text)
{
	buf_printf(arg, "%s\n", text);
}

/* What is in the file, beside that it is right. */
static void show_file(const struct config_file *file, struct buf *out)
{
	const struct pipelines *pipelines = config_file_pipelines(file);

	if (pipelines)
		pipelines_show(pipelines, out);
	else
		tree_write(config_file_tree(file), 0, out);
}

/* The files of --config alone: every problem by its line. */
static int check_file(const struct config *config)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY, error = BUF_EMPTY;
	const char *path = config->configs.count ? config->configs.items[0] : "--set";
	struct config_file *file = NULL;
	int problems = config_file_read((const char *const *)config->configs.items,
					(const char *const *)config->config_sets.items, &file, &error);

	if (problems) {
		log_error("%s", buf_text(&error));
		return STATUS_FAILED;
	}
	if (config_file_pipelines(file))
		pipelines_notes(config_file_pipelines(file), add_note, &text);
	problems = config_file_check(file, &text);
	if (!problems && config->show_config)
		show_file(file, &text);
	else if (!problems && config_file_pipelines(file))
		pipelines_draw(config_file_pipelines(file), &text);
	else if (!problems)
		buf_printf(&text, "%s: %zu settings, all of them right\n", path, config_file_count(file));
	config_file_free(file);
	if (problems < 0)
		log_error("cannot check %s: %s", path, strerror(-problems));
	else if (output_write(&text) || !problems)
		return problems ? STATUS_FAILED : STATUS_DONE;
	else
		log_error("%d %s wrong in %s", problems, problems == 1 ? "setting is" : "settings are", path);
	return STATUS_FAILED;
}

/* Finds and checks the file that counts when none is named. */
static void check_found_file(void (*fn)(void *arg, const struct check *check), void *arg)
{
	AUTO(buf_fini) struct buf path = BUF_EMPTY, problems = BUF_EMPTY, error = BUF_EMPTY;
	struct check check = { .name = "configuration file",
			       .result = CHECK_YES,
			       .found = "none",
			       .means = "settings for all commands, whose keys are the options' names",
			       .advice = "" };
	const char *variable = getenv("HEARTH_CONFIG"), *sources[2] = { NULL };
	struct config_file *file = NULL;

	if (variable && *variable)
		buf_puts(&path, variable);
	if (path.len || !config_file_find(&path)) {
		check.found = sources[0] = buf_text(&path);
		if (config_file_read(sources, NULL, &file, &error) || config_file_check(file, &problems)) {
			check.result = CHECK_PARTLY;
			check.advice = "hearth check --config FILE names what is wrong in it";
		}
		config_file_free(file);
	}
	fn(arg, &check);
}

static void say_enrich(void (*fn)(void *arg, const struct check *check), void *arg, const char *name, const char *means,
		       const char *advice, int result, struct buf *found)
{
	fn(arg, &(struct check){ .name = name,
				 .result = result < 0 ? CHECK_PARTLY : CHECK_YES,
				 .found = buf_text(found),
				 .means = means,
				 .advice = result < 0 ? advice : "" });
}

/* Where names of pods and containers come from. Having none is no fault. */
static void check_enrich(const struct config *config, void (*fn)(void *arg, const struct check *check), void *arg)
{
	AUTO(buf_fini) struct buf pods = BUF_EMPTY, containers = BUF_EMPTY;
	struct enrich_config enrich = enrich_config_of(config);
	int result;

	enrich.pods = enrich.containers = true;
	result = enrich_check_kubernetes(&enrich, &pods);
	say_enrich(fn, arg, "Kubernetes' API", "it says which pod, Deployment and namespace a process belongs to",
		   "docs/kubernetes.md has the rights that hearth's account takes, and the manifest", result, &pods);
	result = enrich_check_containers(&enrich, &containers);
	say_enrich(fn, arg, "files of container runtimes",
		   "names of containers, images and Compose services are out of them", "", result, &containers);
}

static int check_json(const struct config *config, struct buf *out)
{
	struct json j;
	int failed;

	json_init(&j, out, 2);
	json_object_begin(&j);
	json_key(&j, "checks");
	json_array_begin(&j);
	failed = agent_check(config->no_version_check, config->proc, print_json, &j);
	check_enrich(config, print_json, &j);
	check_found_file(print_json, &j);
	json_array_end(&j);
	json_key(&j, "missing");
	json_u64(&j, (uint64_t)failed);
	json_object_end(&j);
	buf_putc(out, '\n');
	return failed;
}

static int check_host(const struct config *config)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct text_output t = { .out = &text, .all = config->verbose, .columns = output_size().columns };
	int failed, status;

	if (config->json) {
		failed = check_json(config, &text);
	} else {
		failed = agent_check(config->no_version_check, config->proc, print_text, &t);
		check_enrich(config, print_text, &t);
		check_found_file(print_text, &t);
	}
	status = output_write(&text);

	if (failed)
		log_error("%d needed %s missing here; the lines with 'no' say which", failed,
			  failed == 1 ? "thing is" : "things are");
	return failed ? STATUS_FAILED : status;
}

static int run_check(const struct config *config)
{
	if (config->configs.count || config->config_sets.count)
		return check_file(config);
	return check_host(config);
}

const struct cmd cmd_check = {
	.name = "check",
	.bit = ON_CHECK,
	.summary = "say what this kernel, these privileges and this host allow",
	.operands = "",
	.description =
		"Says what this kernel, these privileges and this host allow: yes, no, partly (hearth works, but not all of "
		"it) or unknown; what each means where it is not yes (--verbose: always), and what to do about it. Exit "
		"status 1 when something is missing that hearth needs. Works without privileges. With --config it names "
		"unknown keys and wrong values in that file by their lines instead.",
	.example = "sudo hearth check",
	.run = run_check,
};
