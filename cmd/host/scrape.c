/* SPDX-License-Identifier: Apache-2.0 */
/* Scrapers and their files, all of which everybody may read. */
#include <errno.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "cmd/host/scrapers.h"

static int read_file(const struct host_config *config, const char *path, struct buf *out)
{
	AUTO(buf_fini) struct buf full = BUF_EMPTY;

	buf_printf(&full, "%s%s", config->root, path);
	return full.failed ? -ENOMEM : io_read_file(buf_text(&full), HOST_FILE_MAX_BYTES, out);
}

static struct str text_of(struct buf *b)
{
	return (struct str){ buf_text(b), (uint32_t)b->len };
}

static int parse_stat(struct host_reading *r, struct str text)
{
	const long ticks = sysconf(_SC_CLK_TCK);

	return host_parse_stat(r, text, ticks > 0 ? (unsigned)ticks : 100);
}

static int parse_loadavg(struct host_reading *r, struct str text)
{
	const long cpus = r->config->is_per_cpu ? sysconf(_SC_NPROCESSORS_ONLN) : 1;

	return host_parse_loadavg(r, text, cpus > 0 ? (unsigned)cpus : 1);
}

static int parse_mounts(struct host_reading *r, struct str text)
{
	AUTO(buf_fini) struct buf types = BUF_EMPTY;
	int err = r->config->has_virtual ? 0 : read_file(r->config, "/proc/filesystems", &types);

	return err ? err : host_parse_mounts(r, text, text_of(&types), statvfs);
}

static const struct source {
	enum host_scraper scraper;
	const char *file, *elsewhere; /* the file below another root; NULL: the same */
	int (*parse)(struct host_reading *r, struct str text);
} sources[] = {
	{ HOST_CPU, "/proc/stat", NULL, parse_stat },
	{ HOST_MEMORY, "/proc/meminfo", NULL, host_parse_meminfo },
	{ HOST_DISK, "/proc/diskstats", NULL, host_parse_diskstats },
	{ HOST_NETWORK, "/proc/net/dev", "/proc/1/net/dev", host_parse_net_dev },
	{ HOST_LOAD, "/proc/loadavg", NULL, parse_loadavg },
	{ HOST_FILESYSTEM, "/proc/self/mountinfo", "/proc/1/mountinfo", parse_mounts },
	{ HOST_PAGING, "/proc/vmstat", NULL, host_parse_vmstat },
	{ HOST_PAGING, "/proc/swaps", NULL, host_parse_swaps },
};

int host_scrape(struct host_reading *r, enum host_scraper scraper, const char **file_ret)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(sources) && !err; i++) {
		const struct source *s = &sources[i];
		AUTO(buf_fini) struct buf text = BUF_EMPTY;

		if (s->scraper != scraper)
			continue;
		*file_ret = r->config->root[0] && s->elsewhere ? s->elsewhere : s->file;
		err = read_file(r->config, *file_ret, &text);
		if (!err)
			err = s->parse(r, text_of(&text));
	}
	return err;
}

uint64_t host_read_boot(const struct host_config *config)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	return read_file(config, "/proc/stat", &text) ? 0 : host_boot_unix_ns(text_of(&text));
}
