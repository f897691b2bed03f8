/* SPDX-License-Identifier: Apache-2.0 */
/* A store in ClickHouse, for many machines. */
#ifndef HEARTH_BACKEND_STORE_CLICKHOUSE_CLICKHOUSE_H
#define HEARTH_BACKEND_STORE_CLICKHOUSE_CLICKHOUSE_H

#include "backend/store/store.h"

struct metrics;

/* Opens a store in ClickHouse, config's place being "clickhouse+http(s)://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]"; makes
 * database and tables. One that cannot be reached yet is waited for, unless read only. 0 or -errno with @err filled:
 * -EINVAL: no such address; -EPROTO: the tables are of a newer hearth; -EBUSY: another process uses the spool. */
int store_clickhouse_open(const struct store_config *config, struct metrics *metrics, struct store **ret,
			  struct store_error *err);

#endif
