/* SPDX-License-Identifier: Apache-2.0 */
/* The files of /proc that host metrics are told of: the first byte says which one the rest is. Each reading is sound OTLP,
 * and bounded. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/host/scrapers.h"
#include "proto/otlp/signals.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int measure(const char *path, struct statvfs *ret)
{
	*ret = (struct statvfs){
		.f_frsize = 512, .f_blocks = strlen(path), .f_bfree = 3, .f_bavail = 4, .f_files = 5, .f_ffree = 6
	};
	return path[0] == '!' ? -1 : 0;
}

static int parse(struct host_reading *r, unsigned which, struct str text)
{
	switch (which) {
	case 0:
		(void)host_boot_unix_ns(text);
		return host_parse_stat(r, text, 100);
	case 1:
		return host_parse_meminfo(r, text);
	case 2:
		return host_parse_diskstats(r, text);
	case 3:
		return host_parse_net_dev(r, text);
	case 4:
		return host_parse_loadavg(r, text, 2);
	case 5:
		return host_parse_vmstat(r, text);
	case 6:
		return host_parse_swaps(r, text);
	default:
		return host_parse_mounts(r, text, STR("nodev\tproc\n\text4\n"), measure);
	}
}

static void check(const struct host_reading *r)
{
	const struct key_values none = { NULL, 0 };
	AUTO(buf_fini) struct buf message = BUF_EMPTY;
	struct otlp_other other;
	struct otlp_error why;

	REQUIRE(r->points <= HOST_CPUS_MAX * 8 && !r->failed);
	REQUIRE(!host_reading_encode(r, &none, &message));
	REQUIRE(!otlp_other_decode(OTLP_METRICS, false, message.data, message.len, &other, &why));
	REQUIRE(other.items == r->points);
	otlp_other_fini(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct host_config config = { .root = "", .has_virtual = size > 1 && data[1] & 1 };
	char *copy = size > 1 ? malloc(size - 1) : NULL;
	struct host_reading r;

	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	REQUIRE(!host_reading_init(&r, &config));
	(void)parse(&r, data[0] % 8, (struct str){ copy, (uint32_t)(size - 1) });
	check(&r);
	host_reading_fini(&r);
	free(copy);
	return 0;
}
