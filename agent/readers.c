/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. A folder that cannot be used is logged once; everything works without it, but is made anew each time. */
#include "agent/readers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/helper/code_service.h"
#include "agent/helper/elf_helper.h"
#include "agent/helper/elf_worker.h"
#include "agent/proc/proc_reader.h"
#include "agent/rows/row_store.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "symbols/find/debuginfod.h"

/*
 * On a host with more to run than CPUs, stack copies fill the rings while the agent or its helper waits for its turn. Both
 * run seldom and briefly. A priority that a person chose for hearth is kept.
 */
enum { AGENT_NICE = -10 };

static void take_priority(void)
{
	errno = 0;
	if (getpriority(PRIO_PROCESS, 0) == 0 && !errno)
		(void)setpriority(PRIO_PROCESS, 0, AGENT_NICE);
}

static int fail(struct agent_error *err, int error, const char *what)
{
	snprintf(err->message, sizeof(err->message), "%s: %s", what, strerror(-error));
	return error;
}

int readers_start(const struct agent_config *config, struct metrics *metrics, struct readers *r, struct agent_error *err)
{
	static const struct elf_worker_kind *const kinds[LANES] = {
		[LANE_FIRST] = &index_first_kind, [LANE_REST] = &index_rest_kind
	};
	int error;

	take_priority();
	if (!config->no_helper && elf_worker_stays_root())
		log_warn("the processes that read programs' files keep the user id 0, without any capability: CAP_SETUID or "
			 "CAP_SETGID is missing (docker --cap-add SETUID --cap-add SETGID)");
	error = config->no_helper ? elf_service_new(&r->service) : elf_helper_new(elf_service_new, metrics, &r->service);
	if (!error)
		error = config->no_helper ? code_service_new(&r->code)
					  : elf_helper_new_code(code_service_new, metrics, &r->code);
	for (int i = 0; i < LANES && !error && config->symbols != SYMBOLS_OFF; i++)
		error = index_helper_new(kinds[i], config->no_helper, &r->index_helpers[i]);
	if (error == -ECHILD) {
		snprintf(err->message, sizeof(err->message),
			 "the helper process that reads programs' files ended at once: something here forbids what it does "
			 "to "
			 "confine itself, such as a container's filter of system calls (--no-helper: go without)");
		return error;
	}
	if (error)
		return fail(err, error,
			    "cannot start the helper process that reads programs' files (--no-helper: go without)");
	error = file_opener_new(metrics, &r->opener);
	if (error)
		return fail(err, error, "cannot start the process that opens files");
	error = proc_reader_start(metrics);
	r->has_proc_reader = !error;
	return error ? fail(err, error, "cannot start the process that looks into others") : 0;
}

static void free_index_helpers(const struct readers *r)
{
	for (int i = 0; i < LANES; i++)
		index_helper_free(r->index_helpers[i]);
}

void readers_stop(const struct readers *r)
{
	elf_service_free(r->service);
	elf_service_free(r->code);
	free_index_helpers(r);
	file_opener_free(r->opener);
	if (r->has_proc_reader)
		proc_reader_stop();
}

void readers_take(struct readers *from, struct readers *ret)
{
	*ret = *from;
	*from = (struct readers){ 0 };
}

static struct symbol_cache *open_symbol_cache(const struct agent_config *config)
{
	AUTO(buf_fini) struct buf folder = BUF_EMPTY;
	struct symbol_cache *cache = NULL;
	int error = 0;

	if (config->symbol_cache)
		buf_puts(&folder, config->symbol_cache);
	else
		error = symbol_cache_default_folder(&folder);
	if (!error)
		error = symbol_cache_open(buf_text(&folder), config->symbol_cache_bytes, &cache);
	if (error)
		log_warn("indexes of programs' names are not kept in %s: %s%s", buf_text(&folder), strerror(-error),
			 error == -EPERM ? " (others may write there; --symbol-cache names another folder)" : "");
	return cache;
}

/* Opens the rows of earlier starts, in the same folder. */
static int keep_rows(struct files *files, const struct symbol_cache *cache)
{
	struct row_store *store;
	int error = row_store_new(cache ? symbol_cache_folder(cache) : -1, &store);

	if (!error)
		files_keep_rows(files, store);
	return error;
}

/* The servers of DEBUGINFOD_URLS, asked for debug files that this machine does not have. */
static struct debuginfod *find_servers(const struct agent_config *config)
{
	struct debuginfod *servers = config->servers;
	int error = config->symbols == SYMBOLS_FULL && !servers ? debuginfod_new(&servers) : 0;

	if (error && error != -ENOENT)
		log_warn("the servers of DEBUGINFOD_URLS are not asked: %s", strerror(-error));
	return servers;
}

int readers_hand_over(const struct readers *r, const struct agent_config *config, struct loop *loop, struct metrics *metrics,
		      struct files **files_ret, struct indexes **indexes_ret)
{
	struct symbol_cache *cache = open_symbol_cache(config);
	int error = files_new(r->service, r->opener, metrics, files_ret);

	if (!error)
		error = keep_rows(*files_ret, cache);
	if (error) {
		free_index_helpers(r);
		symbol_cache_close(cache);
		return error;
	}
	return indexes_new(config->symbols, r->index_helpers, cache, find_servers(config), *files_ret, loop, metrics,
			   indexes_ret);
}
