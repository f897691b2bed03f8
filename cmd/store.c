/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth store`: what is in the store on disk, and work on it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/handed.h"
#include "base/log.h"
#include "cmd/halves/as_owner.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/files/formats.h"
#include "cmd/files/output.h"
#include "cmd/setup/store_of.h"
#include "proto/profiles.h"

/* --- info --- */

static void append_time(uint64_t ns, struct buf *out)
{
	time_t seconds = (time_t)(ns / NSEC_PER_SEC);
	char text[64] = "-";
	struct tm tm;

	if (ns && localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm);
	buf_puts(out, text);
}

static int run_info(const struct config *config, struct store *store)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct store_status st;
	int err = store->read->status(store, &st);

	(void)config;
	if (err) {
		log_error("cannot read the store: %s", strerror(-err));
		return STATUS_FAILED;
	}
	buf_printf(&out, "place   %s\n", handed_name(st.place));
	buf_printf(&out, "size    %" PRIu64 " bytes", st.bytes);
	if (st.events)
		buf_printf(&out, ", %.1f a sample", (double)st.bytes / (double)st.events);
	buf_printf(&out, "\nsamples %" PRIu64 "\n", st.events);
	buf_puts(&out, "first   ");
	append_time(st.first_ns, &out);
	buf_puts(&out, "\nlast    ");
	append_time(st.last_ns, &out);
	buf_printf(&out, "\nseries  %" PRIu64 "\nframes  %" PRIu64 "\nstacks  %" PRIu64 " nodes\n", st.series, st.frames,
		   st.nodes);
	return output_write(&out);
}

/* --- what changes it --- */

static int run_task(struct store *store, enum store_task task, const char *done)
{
	struct store_status before, after;
	int err = store->read->status(store, &before);

	err = err ? err : store->maintain->task(store, task);
	if (err == -ENOTSUP) {
		log_error("%s does that by itself", before.place);
		return STATUS_FAILED;
	}
	err = err ? err : store->read->status(store, &after);
	if (err) {
		log_error("the store is not %s: %s", done, strerror(-err));
		return STATUS_FAILED;
	}
	log_info("%s: %" PRIu64 " samples in %.1f MB, before: %" PRIu64 " in %.1f MB", done, after.events,
		 (double)after.bytes / 1e6, before.events, (double)before.bytes / 1e6);
	return STATUS_DONE;
}

static int run_compact(const struct config *config, struct store *store)
{
	(void)config;
	return run_task(store, STORE_COMPACT, "compacted");
}

static int run_prune(const struct config *config, struct store *store)
{
	(void)config;
	return run_task(store, STORE_PRUNE, "pruned");
}

static int run_clear(const struct config *config, struct store *store)
{
	(void)config;
	return run_task(store, STORE_CLEAR, "cleared");
}

/* --- verify --- */

static int tell_problem(void *arg, const char *problem)
{
	unsigned *count = arg;

	log_error("%s", problem);
	return ++*count < 100 ? 0 : -EBADMSG;
}

static int run_verify(const struct config *config, struct store *store)
{
	unsigned problems = 0;
	int err = store_is_clickhouse(config->store ? config->store : "")
			  ? -ENOTSUP
			  : store_sqlite_verify(store, tell_problem, &problems);

	if (err == -ENOTSUP) {
		log_error("what ClickHouse keeps it verifies itself: CHECK TABLE");
		return STATUS_FAILED;
	}
	if (err && !problems)
		log_error("cannot read the store: %s", strerror(-err));
	else if (problems)
		log_error("%u problems; hearth moves a damaged store aside when it is next written", problems);
	else
		log_info("all of the store is as it was written");
	return err || problems ? STATUS_FAILED : STATUS_DONE;
}

/* --- export --- */

static int run_export(const struct config *config, struct store *store)
{
	const char *output = config->operand_count > 1 ? config->operands[1] : "-";
	const struct format *format = strcmp(output, "-") ? format_by_path(output) : format_by_name("otlp");
	AUTO(buf_fini) struct buf left_out = BUF_EMPTY;
	struct profiles *p = NULL;
	int err;

	if (!format) {
		log_error("'%s' does not say which format to write; end the name in .otlp, .pb.gz, .folded, ...", output);
		return STATUS_USAGE;
	}
	err = store_load(store, &p, NULL);
	if (err == -ENODATA)
		log_error("there is nothing to export");
	else if (err)
		log_error("cannot export the store: %s", strerror(-err));
	if (err)
		return STATUS_FAILED;
	err = format_write_file(p, format, output, &left_out);
	if (!err && left_out.len)
		log_info("%s has no place for: %s", format->name, buf_text(&left_out));
	profiles_put(p);
	return err ? STATUS_FAILED : STATUS_DONE;
}

/* --- the command --- */

static const struct {
	const char *name;
	bool writes;
	int (*run)(const struct config *config, struct store *store);
} verbs[] = {
	{ "info", false, run_info },  { "compact", true, run_compact }, { "prune", true, run_prune },
	{ "clear", true, run_clear }, { "export", false, run_export },	{ "verify", false, run_verify },
};

/* Whether the file that is written is root's, while the store is read as its owner. */
static bool exports_to_file(const struct config *config)
{
	return !strcmp(config->operands[0], "export") && config->operand_count > 1;
}

static int run_store(const struct config *given)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct config as_owner = *given, *config = &as_owner; /* its lists stay @given's */
	const char *word = config->operands[0];
	struct store *store = NULL;
	size_t i = 0;
	int status;

	while (i < ARRAY_LEN(verbs) && strcmp(verbs[i].name, word) != 0)
		i++;
	if (i == ARRAY_LEN(verbs)) {
		log_error("'hearth store' does not know '%s'; it knows info, compact, prune, clear, export and verify",
			  word);
		return STATUS_USAGE;
	}
	if (!exports_to_file(config) && as_owner_store(config))
		return STATUS_FAILED;
	if (store_of(config, config->store, !verbs[i].writes, NULL, &store, &error)) {
		log_error("%s", buf_text(&error));
		return STATUS_FAILED;
	}
	status = verbs[i].run(config, store);
	store->close(store);
	return status;
}

const struct cmd cmd_store = {
	.name = "store",
	.bit = ON_STORE,
	.summary = "what is kept on disk; tidy, check, export or clear it",
	.operands = "info|compact|prune|clear|export|verify [FILE]",
	.description =
		"info tells what is in the store, verify reads all of it and says what is damaged, export writes all as "
		"FILE "
		"(OTLP to "
		"standard output without one; the format is what FILE's name ends in). These may be asked while another "
		"hearth "
		"writes.\n\n"
		"prune removes what is too old or too much, compact packs what is left as small as it gets and gives the "
		"room "
		"back, clear removes all samples. Needs no root beyond what the folder asks for.",
	.example = "hearth store export --store /var/lib/hearth all.pb.gz",
	.min_operands = 1,
	.max_operands = 2,
	.run = run_store,
};
