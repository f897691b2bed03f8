/* SPDX-License-Identifier: Apache-2.0 */
/* Turns options into views and styles. Runs once, on the main thread. */
#include "cmd/setup/view_of.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/files/output.h"
#include "proto/sums/idle_waits.h"

struct selection {
	const char *option, *value;
	enum view_pattern pattern; /* VIEW_PATTERN_MAX: --by */
};

enum { SELECTIONS = 8 };

static void list_selections(const struct config *config, struct selection list[static SELECTIONS])
{
	const struct selection all[SELECTIONS] = {
		{ "--process", config->only_process, VIEW_PROCESS },
		{ "--comm", config->only_comm, VIEW_COMM },
		{ "--thread", config->only_thread, VIEW_THREAD },
		{ "--focus", config->focus, VIEW_FOCUS },
		{ "--ignore", config->ignore, VIEW_IGNORE },
		{ "--hide", config->hide, VIEW_HIDE },
		{ "--hide-idle", config->hide_idle ? idle_waits_pattern() : NULL, VIEW_IDLE },
		{ "--by", config->by, VIEW_PATTERN_MAX },
	};

	memcpy(list, all, sizeof(all));
}

const char *view_option_given(const struct config *config)
{
	struct selection list[SELECTIONS];

	list_selections(config, list);
	for (size_t i = 0; i < SELECTIONS; i++)
		if (list[i].value)
			return list[i].option;
	return config->only_kind ? "--kind" : NULL;
}

struct view *view_of(const struct config *config, int *status_ret)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct selection list[SELECTIONS];
	struct view *view = view_new();
	int err = view ? 0 : -ENOMEM;

	list_selections(config, list);
	for (size_t i = 0; i < SELECTIONS && !err; i++) {
		if (!list[i].value)
			continue;
		if (list[i].pattern == VIEW_PATTERN_MAX)
			err = view_group(view, list[i].value, &error);
		else
			err = view_match(view, list[i].pattern, list[i].value, &error);
		if (err == -EINVAL)
			log_error("%s: %s", list[i].option, buf_text(&error));
	}
	if (!err && config->only_kind)
		err = view_kind(view, config->only_kind);
	if (!err)
		return view;
	if (err == -ENOMEM)
		log_error("cannot set up the selection: %s", strerror(ENOMEM));
	*status_ret = err == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	view_free(view);
	return NULL;
}

bool view_is_decided(const struct view *view, const struct config *config)
{
	struct selection list[SELECTIONS];
	bool is_decided = true;

	list_selections(config, list);
	for (size_t i = 0; i < SELECTIONS; i++) {
		if (!list[i].value || list[i].pattern == VIEW_PATTERN_MAX || !view_gave_up(view, list[i].pattern))
			continue;
		log_error("%s: '%s' takes too many steps to tell whether it matches; write a simpler expression",
			  list[i].option, list[i].value);
		is_decided = false;
	}
	return is_decided;
}

struct report_style view_style_of(const struct config *config)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
	bool is_terminal = isatty(STDOUT_FILENO), can = term && strcmp(term, "dumb") != 0 && (!no_color || !no_color[0]);

	return (struct report_style){
		.columns = output_size().columns,
		.colour = !strcmp(config->color, "always") || (!strcmp(config->color, "auto") && is_terminal && can),
		.max_rows = (uint32_t)config->rows,
		.min_percent = config->min_percent,
		.max_depth = (uint32_t)config->depth,
		.by = !config->by			 ? NULL
		      : strncmp(config->by, "label=", 6) ? config->by
							 : config->by + 6,
	};
}
