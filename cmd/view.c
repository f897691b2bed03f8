/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth view`: shows captures on the page. The captures are read into a store in memory, which is gone with the
 * command. */
#include "cmd/view.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/store/sample.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_write.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/ourselves.h"
#include "cmd/terminal/browser.h"
#include "cmd/files/capture.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/setup/page.h"
#include "cmd/setup/session.h"
#include "cmd/setup/store_of.h"
#include "cmd/setup/user.h"

enum { COMMIT_SECONDS = 120 }; /* for the largest capture */

/* Nothing of a capture is too old or too much to be shown. */
static int open_store(struct session *s)
{
	const struct store_config config = {
		.place = ":memory:",
		.keep_age_ns = clock_unix_ns(),
		.keep_bytes = UINT64_MAX / 4,
	};
	struct store_error error = { "" };
	int err = store_sqlite_open(&config, s->metrics, &s->store, &error);

	if (!err)
		err = s->store->write->writer(s->store, &s->sink);
	if (err)
		log_error("cannot read captures into memory: %s", error.message[0] ? error.message : strerror(-err));
	return err;
}

/* A store is shown where it lies, and read alone. */
static int open_folder(struct session *s, const char *folder)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	int err = store_of_folder(folder, s->metrics, &s->store, &error);

	if (err)
		log_error("%s", buf_text(&error));
	err = err ? err : s->store->write->writer(s->store, &s->sink);
	return err ? err : page_signals(s, true);
}

/* Calls @fn for each profile of @p. */
static void each_profile(struct profiles *p, void (*fn)(void *arg, const struct profiles *p, struct profile *profile),
			 void *arg)
{
	for (uint32_t r = 0; r < p->resource_count; r++)
		for (uint32_t s = 0; s < p->resources[r].scope_count; s++)
			for (uint32_t i = 0; i < p->resources[r].scopes[s].profile_count; i++)
				fn(arg, p, &p->resources[r].scopes[s].profiles[i]);
}

/* The time that a capture spans, and the last of its profiles with values of a moment. */
struct spans {
	uint64_t start_ns, end_ns, last_ns;
};

static void add_span(void *arg, const struct profiles *p, struct profile *profile)
{
	struct spans *s = arg;

	if (!s->start_ns || profile->time_unix_ns < s->start_ns)
		s->start_ns = profile->time_unix_ns;
	if (profile->time_unix_ns + profile->duration_ns > s->end_ns)
		s->end_ns = profile->time_unix_ns + profile->duration_ns;
	if (store_gauge_unit(p, profile) && profile->time_unix_ns > s->last_ns)
		s->last_ns = profile->time_unix_ns;
}

/* The values of a moment, which a recording has of its end, are shown as those of all of it. */
static void spread(void *arg, const struct profiles *p, struct profile *profile)
{
	const struct spans *s = arg;

	if (store_gauge_unit(p, profile))
		profile->duration_ns = profile->time_unix_ns == s->last_ns ? s->end_ns - s->start_ns : 1;
}

static int read_capture(struct session *s, const char *path)
{
	struct spans spans = { 0 };
	struct capture capture;
	int err = capture_load(path, &capture);

	if (err)
		return err;
	each_profile(capture.profiles, add_span, &spans);
	each_profile(capture.profiles, spread, &spans);
	err = capture_demangle(capture.profiles, NULL);
	if (!err)
		err = sink_consume(s->sink, capture.profiles, NULL);
	profiles_put(capture.profiles);
	if (!err)
		err = sink_flush(s->sink, clock_mono_ns() + COMMIT_SECONDS * NSEC_PER_SEC);
	if (err)
		log_error("cannot read %s into memory: %s", capture_name(path), strerror(-err));
	return err;
}

static void free_page(struct page **page)
{
	page_free(*page);
}

static int show(struct session *s)
{
	AUTO(free_page) struct page *page = NULL;
	AUTO(buf_fini) struct buf url = BUF_EMPTY;
	int err = page_start(s, &page);

	if (err || !page)
		return err;
	buf_printf(&url, "%s#from=first&to=last&live=", page_url(page));
	log_info("page at %s until Ctrl-C", buf_text(&url));
	if (s->config->open)
		browser_open(buf_text(&url));
	err = session_run(s);
	page_stop(page, clock_mono_ns() + NSEC_PER_SEC);
	return err;
}

/* Runs in the child: the page needs no root, and the capture shown belongs to the user. Ctrl-C ends the recording first. */
__attribute__((noreturn)) static void become_viewer(const char *path, int go_fd)
{
	sigset_t none;
	struct user user;
	char go;

	signal(SIGINT, SIG_IGN);
	if (read(go_fd, &go, 1) != 1)
		_exit(0);
	signal(SIGINT, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!user_invoking(&user) || !user_become(&user))
		execl(ourselves_program(), "hearth", "view", "--open", "--", path, (char *)NULL);
	log_error("cannot show %s: starting %s as the user who called sudo: %s; 'hearth view %s' shows it", path,
		  ourselves_program(), strerror(errno), path);
	_exit(STATUS_FAILED);
}

int view_fork(struct viewer *v, const char *path)
{
	int fds[2], err = 0;

	if (pipe2(fds, O_CLOEXEC)) {
		err = -errno;
	} else {
		v->pid = fork();
		err = v->pid < 0 ? -errno : 0;
		if (!v->pid) {
			close(fds[1]);
			become_viewer(path, fds[0]);
		}
		close(fds[0]);
		v->go_fd = fds[1];
	}
	if (err)
		log_error("cannot show %s: %s", path, strerror(-err));
	return err;
}

void view_end(struct viewer *v, bool shows)
{
	if (v->pid <= 0)
		return;
	if (shows)
		(void)!write(v->go_fd, "", 1);
	close(v->go_fd);
	while (waitpid(v->pid, NULL, 0) < 0 && errno == EINTR)
		;
	v->pid = 0;
}

static int run_view(const struct config *config)
{
	AUTO(session_close) struct session s = { 0 };
	const bool is_store = config->operand_count == 1 && store_is_folder(config->operands[0]);
	int err = session_open(&s, config);

	if (!err)
		err = session_end_on_signals(&s);
	if (!err)
		err = is_store ? open_folder(&s, config->operands[0]) : open_store(&s);
	for (size_t i = 0; !err && !is_store && i < config->operand_count; i++)
		err = read_capture(&s, config->operands[i]);
	if (!err)
		err = show(&s);
	return err ? STATUS_FAILED : STATUS_DONE;
}

const struct cmd cmd_view = {
	.name = "view",
	.bit = ON_VIEW,
	.summary = "show captures on the page: flame graph, table, timeline",
	.operands = "FILE...",
	.description =
		"Reads captures, of any format that 'hearth convert' reads, into memory and shows them on a page of "
		"this machine until Ctrl-C. FILE may be the folder of a store, which is shown where it lies. Needs no "
		"root.",
	.example = "hearth view x.otlp --open",
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run_view,
};
