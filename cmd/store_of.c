/* SPDX-License-Identifier: Apache-2.0 */
/* From options to an open store. */
#include "cmd/store_of.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/store.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/config.h"

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
	const bool in_clickhouse = place && store_is_clickhouse(place);
	int err = place ? 0 : store_default_folder(&folder);

	if (err) {
		buf_puts(error, "there is no place to keep profiles, HOME is not set; say one with --store");
		return err;
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
