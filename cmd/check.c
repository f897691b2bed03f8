/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth check`: the agent's own checks as text, three lines at most each, or as JSON. */
#include "agent/agent.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/config.h"
#include "cmd/output.h"

static const char *const words[CHECK_RESULT_MAX] = {
	[CHECK_YES] = "yes", [CHECK_PARTLY] = "partly", [CHECK_NO] = "no", [CHECK_UNKNOWN] = "unknown"
};

struct text_output {
	struct buf *out;
	bool all; /* what each means */
};

static void print_text(void *arg, const struct check *check)
{
	struct text_output *t = arg;

	buf_printf(t->out, "%-9s%s%s%s\n", words[check->result], check->name, check->found[0] ? ": " : "", check->found);
	if (check->result != CHECK_YES || t->all)
		buf_printf(t->out, "%9s%s\n", "", check->means);
	if (check->advice[0])
		buf_printf(t->out, "%9s=> %s\n", "", check->advice);
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

static int check_json(const struct config *config, struct buf *out)
{
	struct json j;
	int failed;

	json_init(&j, out, 2);
	json_object_begin(&j);
	json_key(&j, "checks");
	json_array_begin(&j);
	failed = agent_check(config->no_version_check, print_json, &j);
	json_array_end(&j);
	json_key(&j, "missing");
	json_u64(&j, (uint64_t)failed);
	json_object_end(&j);
	buf_putc(out, '\n');
	return failed;
}

static int run_check(const struct config *config)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct text_output t = { .out = &text, .all = config->verbose };
	int failed = config->json ? check_json(config, &text) : agent_check(config->no_version_check, print_text, &t);
	int status = output_write(&text);

	if (failed)
		log_error("%d needed %s missing here; the lines with 'no' say which", failed,
			  failed == 1 ? "thing is" : "things are");
	return failed ? STATUS_FAILED : status;
}

const struct cmd cmd_check = {
	.name = "check",
	.bit = ON_CHECK,
	.summary = "say what this kernel, these privileges and this host allow",
	.operands = "",
	.description =
		"Says what this kernel, these privileges and this host allow: yes, no, partly (hearth works, but not all of "
		"it) or unknown; what each means where it is not yes (--verbose: always), and what to do about it. Exit "
		"status 1 when something is missing that hearth needs. Works without privileges.",
	.example = "sudo hearth check",
	.run = run_check,
};
