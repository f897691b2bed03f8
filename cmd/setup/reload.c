/* SPDX-License-Identifier: Apache-2.0 */
/* Handles SIGHUP. The options are parsed anew from the same command line and environment, and compared field by field. */
#include "cmd/setup/reload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/options.h"
#include "cmd/pipeline/pipelines.h"
#include "cmd/setup/session.h"

bool reload_is_wanted(const struct config *config)
{
	AUTO_CLOSE int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	return config->file && terminal < 0;
}

static bool equal_texts(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool equal_lists(const struct string_list *a, const struct string_list *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i], b->items[i]))
			return false;
	return true;
}

static bool is_equal(const struct option_spec *spec, const struct config *x, const struct config *y)
{
	const void *a = (const char *)x + spec->offset, *b = (const char *)y + spec->offset;

	switch (spec->kind) {
	case OPTION_FLAG:
		return *(const bool *)a == *(const bool *)b;
	case OPTION_U64:
	case OPTION_FREQ:
	case OPTION_DURATION:
	case OPTION_SIZE:
		return *(const uint64_t *)a == *(const uint64_t *)b;
	case OPTION_DOUBLE:
		return *(const double *)a >= *(const double *)b && *(const double *)a <= *(const double *)b;
	case OPTION_STRING:
	case OPTION_CHOICE:
		return equal_texts(*(const char *const *)a, *(const char *const *)b);
	case OPTION_LIST:
	case OPTION_WORDS:
		return equal_lists(a, b);
	case OPTION_PIDS: {
		const struct pid_list *p = a, *q = b;

		return p->count == q->count && (!p->count || !memcmp(p->items, q->items, p->count * sizeof(*p->items)));
	}
	}
	return false;
}

/* Says what changed; whether any of it counts at once. */
static bool tell_changes(const struct config *before, const struct config *fresh)
{
	AUTO(buf_fini) struct buf now = BUF_EMPTY, later = BUF_EMPTY, pipelines = BUF_EMPTY;
	size_t count;
	const struct option_spec *specs = options_table(&count);

	for (size_t i = 0; i < count; i++) {
		struct buf *list = specs[i].commands & ON_RELOAD ? &now : &later;

		if (specs[i].commands & fresh->cmd->bit && !is_equal(&specs[i], before, fresh))
			buf_printf(list, "%s--%s", list->len ? ", " : "", specs[i].name);
	}
	if (now.len)
		log_info("SIGHUP: the configuration was read again; changed: %s", buf_text(&now));
	if (later.len)
		log_warn("SIGHUP: these changed too, but count from the next start on: %s", buf_text(&later));
	pipelines_tell_changes(before->pipelines, fresh->pipelines, &pipelines);
	if (pipelines.len)
		log_warn("SIGHUP: of the pipelines these changed, but count from the next start on: %s",
			 buf_text(&pipelines));
	if (!now.len && !later.len && !pipelines.len)
		log_info("SIGHUP: the configuration was read again; nothing changed");
	return now.len;
}

static void apply(struct session *s, const struct config *fresh)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct schedule schedule;

	log_set_level(fresh->verbose ? LOG_DEBUG : fresh->quiet ? LOG_WARN : LOG_INFO);
	if (!s->agent)
		return;
	agent_set_interval(s->agent, fresh->report_interval_ns, fresh->report_jitter);
	if (!equal_texts(s->current->probabilistic, fresh->probabilistic) && !schedule_init(&schedule, fresh, &error)) {
		int err = schedule_change(&s->schedule, &schedule, s->loop);

		if (err)
			log_error("SIGHUP: cannot change --probabilistic: %s", strerror(-err));
	}
}

void reload(struct session *s)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct config *fresh = calloc(1, sizeof(*fresh));
	const struct config *before = s->current;
	int err = fresh ? options_parse(before->cmd, before->argc, before->argv, fresh, &error) : -ENOMEM;

	if (!err && fresh->probabilistic) {
		struct schedule schedule;

		err = schedule_init(&schedule, fresh, &error);
	}
	if (err) {
		log_error("SIGHUP: %s; everything stays as it was", error.len ? buf_text(&error) : strerror(-err));
		if (fresh)
			config_fini(fresh);
		free(fresh);
		return;
	}
	if (tell_changes(before, fresh))
		apply(s, fresh);
	if (s->reloaded)
		config_fini(s->reloaded);
	free(s->reloaded);
	s->current = s->reloaded = fresh;
}
