/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside cmd/host: what reads which file. Parsers take the text of a file, whatever is in it, and add points to a reading;
 * lines that make no sense are counted there (bad_lines), and devices beyond the bounds (left_out). 0, or -EBADMSG: the text
 * tells nothing of what it should.
 */
#ifndef HEARTH_CMD_HOST_SCRAPERS_H
#define HEARTH_CMD_HOST_SCRAPERS_H

#include "cmd/host/reading.h"

struct statvfs;

enum {
	HOST_CPUS_MAX = 4096,
	HOST_DEVICES_MAX = 1024, /* disks, interfaces, file systems, swap devices: of each */
	HOST_FILE_MAX_BYTES = 8 << 20,
};

/* When the machine was started, by /proc/stat, in Unix nanoseconds; 0: it does not say. */
uint64_t host_boot_unix_ns(struct str stat);

/* @ticks: how many of the file's units are a second. */
int host_parse_stat(struct host_reading *r, struct str stat, unsigned ticks);
int host_parse_meminfo(struct host_reading *r, struct str meminfo);
int host_parse_diskstats(struct host_reading *r, struct str diskstats);
int host_parse_net_dev(struct host_reading *r, struct str dev);
/* @cpus: by how many the averages are divided. */
int host_parse_loadavg(struct host_reading *r, struct str loadavg, unsigned cpus);
int host_parse_vmstat(struct host_reading *r, struct str vmstat);
int host_parse_swaps(struct host_reading *r, struct str swaps);

/* Mounts by /proc/PID/mountinfo; @types is /proc/filesystems, which tells types with a device from others. @measure tells of
 * a mount point (statvfs); one that it fails for counts as left out. */
int host_parse_mounts(struct host_reading *r, struct str mountinfo, struct str types,
		      int (*measure)(const char *path, struct statvfs *ret));

/* Has @scraper read its files below the root of r->config. 0 or -errno; *@file_ret: the file that it is about. */
int host_scrape(struct host_reading *r, enum host_scraper scraper, const char **file_ret);

/* Reads when the machine was started; 0: that cannot be told. */
uint64_t host_read_boot(const struct host_config *config);

#endif
