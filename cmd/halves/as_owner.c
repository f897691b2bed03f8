/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of secrets are renewed by a process that stays root, listens to nobody, and ends with this one. */
#include "cmd/halves/as_owner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/store/sqlite/sqlite.h"
#include "base/buf.h"
#include "base/calls.h"
#include "base/capabilities.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/halves/confine.h"
#include "cmd/halves/hand_over.h"
#include "cmd/halves/owner.h"
#include "cmd/halves/share.h"
#include "cmd/options/config.h"
#include "cmd/pipeline/pipelines.h"
#include "cmd/setup/sinks_of.h"
#include "cmd/setup/store_of.h"

enum { LOOK_MS = 1000 };

static struct handed_over handed; /* the process's */

__attribute__((noreturn)) static void renew_secrets(pid_t parent)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2 };

	(void)prctl(PR_SET_NAME, "hearth-keeper");
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) ||
	    capabilities_keep(capabilities_of(CAPABILITY_OPENER, capabilities_effective())) ||
	    calls_filter(&(struct calls){ 0 }))
		_exit(1);
	while (getppid() == parent) {
		(void)poll(NULL, 0, LOOK_MS);
		hand_over_again(&handed);
	}
	_exit(0);
}

static int fork_keeper(void)
{
	const pid_t parent = getpid(), pid = fork();

	if (!pid)
		renew_secrets(parent);
	return pid < 0 ? -errno : 0;
}

static int become(void)
{
	int err = handed.owner.changes ? store_sqlite_keep_paths() : 0;

	if (!err && handed.owner.changes && handed.secret_count)
		err = fork_keeper();
	return err ? err : owner_become(&handed.owner);
}

static int refuse(int err)
{
	if (err)
		log_error("cannot become the store's owner: %s", strerror(-err));
	return err;
}

static bool writes_files(const struct config *config)
{
	if (config->pipelines && pipelines_write_files(config->pipelines))
		return true;
	for (size_t i = 0; i < config->sinks.count; i++)
		if (!sinks_is_store(config->sinks.items[i]) && !sinks_is_sender(config->sinks.items[i]))
			return true;
	return false;
}

int as_owner_serve(struct config *config)
{
	struct share share = { .backend = *config };
	int err;

	if (geteuid() != 0)
		return 0;
	if (writes_files(config)) {
		err = capabilities_keep(capabilities_of(CAPABILITY_FILES | CAPABILITY_KEEPER, capabilities_effective()));
	} else {
		hand_over(&share, false, &handed);
		*config = share.backend;
		hand_over_ports(config);
		err = become();
	}
	return refuse(err ? err : confine_calls());
}

int as_owner_store(struct config *config)
{
	AUTO(buf_fini) struct buf folder = BUF_EMPTY;
	struct share share = { .backend = *config };
	const char *place = config->store;
	struct stat st;

	if (!place && !store_default_folder(&folder))
		place = buf_text(&folder);
	if (!place || !owner_may_change() || !store_is_folder(place) || stat(place, &st) || !st.st_uid)
		return 0; /* a store that is root's altogether stays so */
	hand_over(&share, true, &handed);
	*config = share.backend;
	return refuse(become());
}
