/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a store from options. */
#include "cmd/setup/store_of.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/store/clickhouse/clickhouse.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/config.h"
#include "cmd/setup/sinks_of.h"
#include "proto/otlp/otlp.h"

int store_default_folder(struct buf *out)
{
	const char *base = getenv("XDG_STATE_HOME"), *home = getenv("HOME"), *service = getenv("STATE_DIRECTORY");

	if (service && service[0] == '/') /* systemd's, of a unit with StateDirectory= */
		buf_append(out, service, strcspn(service, ":"));
	else if (geteuid() == 0)
		buf_puts(out, "/var/lib/hearth");
	else if (base && base[0] == '/')
		buf_printf(out, "%s/hearth", base);
	else if (home && home[0] == '/')
		buf_printf(out, "%s/.local/state/hearth", home);
	else
		return -ENOENT;
	return out->failed ? -ENOMEM : 0;
}

bool store_is_clickhouse(const char *place)
{
	return !strncmp(place, "clickhouse+", strlen("clickhouse+"));
}

int store_of(const struct config *config, const char *place, bool read_only, struct metrics *metrics, struct store **ret,
	     struct buf *error)
{
	AUTO(buf_fini) struct buf folder = BUF_EMPTY;
	struct store_error why;
	struct store_config store = {
		.place = place,
		.keep_age_ns = config->keep_age_ns,
		.keep_bytes = config->keep_bytes,
		.thin_age_ns = config->thin_age_ns,
		.keep_free_part = config->keep_free_percent / 100,
		.read_only = read_only,
		.password_file = config->store_password_file,
		.ca_file = config->store_ca,
		.spool_dir = config->spool,
		.spool_bytes = config->spool_bytes,
		.spool_age_ns = config->spool_age_ns,
	};
	const char *is = place ? strchr(place, '=') : NULL;
	const bool in_clickhouse = place && store_is_clickhouse(place);
	int err = place ? 0 : store_default_folder(&folder);

	if (err) {
		buf_puts(error, "there is no place to keep profiles, HOME is not set; say one with --store");
		return err;
	}
	if (is && sinks_has_type(place, (size_t)(is - place))) {
		buf_printf(error, "--store: '%s' is a value of --sink; give the folder alone, or --sink %s", place, place);
		return -EINVAL;
	}
	if (!place)
		store.place = buf_text(&folder);
	if (in_clickhouse && !store_default_folder(&folder))
		store.folder = buf_text(&folder);
	err = in_clickhouse ? store_clickhouse_open(&store, metrics, ret, &why)
			    : store_sqlite_open(&store, metrics, ret, &why);
	if (err)
		buf_puts(error, why.message);
	return err;
}

bool store_is_folder(const char *path)
{
	char file[PATH_MAX];
	struct stat st;

	snprintf(file, sizeof(file), "%s/profiles.db", path);
	return !stat(file, &st) && S_ISREG(st.st_mode);
}

int store_of_folder(const char *folder, struct metrics *metrics, struct store **ret, struct buf *error)
{
	const struct store_config config = { .place = folder, .read_only = true };
	struct store_error why;
	int err = store_sqlite_open(&config, metrics, ret, &why);

	if (err)
		buf_puts(error, why.message);
	return err;
}

struct loading {
	struct otlp_continuation cont;
	struct buf out;
};

static int append_message(void *arg, struct profiles *p)
{
	struct loading *l = arg;

	return otlp_encode(p, &l->cont, &l->out);
}

int store_load(struct store *store, struct profiles **ret, size_t *bytes_ret)
{
	const struct store_selection all = { .to_ns = UINT64_MAX };
	struct loading l = { .out = BUF_EMPTY };
	struct otlp_error why;
	int err = store->read->export(store, &all, append_message, &l);

	if (!err && !l.out.len)
		err = -ENODATA;
	if (bytes_ret)
		*bytes_ret = l.out.len;
	err = err ? err : otlp_decode(l.out.data, l.out.len, true, ret, &why);
	if (err)
		buf_fini(&l.out);
	return err;
}

/* --- sinks --- */

/* One store is enough: the page and the questions have one place to look. */
static int make_store(const struct sink_settings *settings, const char *value, struct sink **ret, struct buf *error)
{
	const struct store_settings *s = (const struct store_settings *)settings;
	int err;

	if (*s->store) {
		buf_puts(error, "--store: profiles are kept in one store only");
		return -EINVAL;
	}
	err = store_of(s->config, value, false, settings->metrics, s->store, error);
	return err ? err : (*s->store)->write->writer(*s->store, ret);
}

/* The same as --store clickhouse+URL, which may stand here, too. */
static int make_clickhouse(const struct sink_settings *settings, const char *value, struct sink **ret, struct buf *error)
{
	AUTO(buf_fini) struct buf place = BUF_EMPTY;

	buf_printf(&place, "%s%s", store_is_clickhouse(value) ? "" : "clickhouse+", value);
	return make_store(settings, buf_text(&place), ret, error);
}

static int explain_store(const struct sink_settings *settings, const char *value, int err, struct buf *error)
{
	(void)settings;
	buf_printf(error, "cannot keep profiles in %s: %s", value, strerror(-err));
	return err;
}

const struct sink_type sink_type_store = {
	.name = "store",
	.value = "FOLDER",
	.is_store = true,
	.make = make_store,
	.explain = explain_store,
};
const struct sink_type sink_type_clickhouse = {
	.name = "clickhouse",
	.value = "URL",
	.help = "http://USER@HOST:8123/DATABASE",
	.is_store = true,
	.make = make_clickhouse,
	.explain = explain_store,
};
