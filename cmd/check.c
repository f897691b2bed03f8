/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth check`: the agent's own checks, one line each. */
#include "agent/agent.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/output.h"

static void print_check(void *arg, enum check_result result, const char *what, const char *detail)
{
	static const char *const words[] = { [CHECK_OK] = "ok", [CHECK_WARN] = "warning", [CHECK_FAIL] = "no" };

	buf_printf(arg, "%-9s%s%s%s\n", words[result], what, detail && *detail ? ": " : "", detail ? detail : "");
}

static int run_check(const struct config *config)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	int failed, status;

	(void)config;
	failed = agent_check(print_check, &text);
	status = output_write(&text);
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
	.description = "Says what this kernel, these privileges and this host allow, and what to do about each 'no'. Exit "
		       "status 1 when "
		       "something is missing that hearth needs.",
	.example = "sudo hearth check",
	.run = run_check,
};
