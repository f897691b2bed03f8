/* SPDX-License-Identifier: Apache-2.0 */
/* Disks and network interfaces. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/host/scrapers.h"
#include "cmd/host/words.h"

enum { SECTOR_BYTES = 512 }; /* the unit of /proc/diskstats, whatever the disk's is */

/* Whether the device @name is to be told of, and then how. @count: of those so far. */
static bool choose(struct host_reading *r, enum host_filter_kind kind, struct str name, unsigned *count, struct str *ret)
{
	if (!host_filter_passes(&r->config->filters[kind], name.data, name.len))
		return false;
	if (*count >= HOST_DEVICES_MAX) {
		r->left_out++;
		return false;
	}
	if (!host_reading_keep(r, name, ret))
		return false;
	++*count;
	return true;
}

static void add_both(struct host_reading *r, enum host_metric metric, struct str device, const char *const *directions,
		     uint64_t first, uint64_t second)
{
	const uint64_t values[] = { first, second };

	for (size_t i = 0; i < 2; i++)
		host_reading_int(r, metric,
				 (struct host_label[]){ { "device", device }, { "direction", str_z(directions[i]) } }, 2,
				 values[i]);
}

/* --- /proc/diskstats: MAJOR MINOR NAME and these --- */

enum disk_column {
	READS,
	READS_MERGED,
	READ_SECTORS,
	READ_MS,
	WRITES,
	WRITES_MERGED,
	WRITTEN_SECTORS,
	WRITE_MS,
	PENDING,
	BUSY_MS,
	WEIGHTED_MS,
	DISK_COLUMNS,
};

static const char *const disk_directions[] = { "read", "write" };

static double seconds(uint64_t ms)
{
	return (double)ms / 1000;
}

static void add_disk(struct host_reading *r, struct str device, const uint64_t c[static DISK_COLUMNS])
{
	const struct host_label of_device = { "device", device };
	const uint64_t times[] = { c[READ_MS], c[WRITE_MS] };

	add_both(r, HOST_DISK_IO, device, disk_directions, c[READ_SECTORS] * SECTOR_BYTES,
		 c[WRITTEN_SECTORS] * SECTOR_BYTES);
	add_both(r, HOST_DISK_OPERATIONS, device, disk_directions, c[READS], c[WRITES]);
	add_both(r, HOST_DISK_MERGED, device, disk_directions, c[READS_MERGED], c[WRITES_MERGED]);
	for (size_t i = 0; i < 2; i++)
		host_reading_real(r, HOST_DISK_OPERATION_TIME,
				  (struct host_label[]){ of_device, { "direction", str_z(disk_directions[i]) } }, 2,
				  seconds(times[i]));
	host_reading_real(r, HOST_DISK_IO_TIME, &of_device, 1, seconds(c[BUSY_MS]));
	host_reading_real(r, HOST_DISK_WEIGHTED_IO_TIME, &of_device, 1, seconds(c[WEIGHTED_MS]));
	host_reading_int(r, HOST_DISK_PENDING, &of_device, 1, c[PENDING]);
}

/* A device that never did anything, as most loop devices. */
static bool is_idle(const uint64_t c[static DISK_COLUMNS])
{
	uint64_t any = 0;

	for (size_t i = 0; i < DISK_COLUMNS; i++)
		any |= c[i];
	return !any;
}

int host_parse_diskstats(struct host_reading *r, struct str diskstats)
{
	uint64_t numbers[2], columns[DISK_COLUMNS];
	struct str line, name, device;
	unsigned count = 0;

	while (words_line(&diskstats, &line)) {
		if (words_numbers(&line, numbers, 2) != 2 || !words_next(&line, &name) ||
		    words_numbers(&line, columns, DISK_COLUMNS) != DISK_COLUMNS ||
		    columns[READ_SECTORS] > INT64_MAX / SECTOR_BYTES || columns[WRITTEN_SECTORS] > INT64_MAX / SECTOR_BYTES)
			r->bad_lines++;
		else if (!is_idle(columns) && choose(r, HOST_BY_DISK, name, &count, &device))
			add_disk(r, device, columns);
	}
	return 0; /* a machine without disks has no lines */
}

/* --- /proc/net/dev: two lines of heads, then NAME: and these --- */

enum net_column {
	IN_BYTES,
	IN_PACKETS,
	IN_ERRORS,
	IN_DROPPED,
	OUT_BYTES = 8,
	OUT_PACKETS,
	OUT_ERRORS,
	OUT_DROPPED,
	NET_COLUMNS,
};

static const char *const net_directions[] = { "receive", "transmit" };

static void add_interface(struct host_reading *r, struct str device, const uint64_t c[static NET_COLUMNS])
{
	add_both(r, HOST_NETWORK_IO, device, net_directions, c[IN_BYTES], c[OUT_BYTES]);
	add_both(r, HOST_NETWORK_PACKETS, device, net_directions, c[IN_PACKETS], c[OUT_PACKETS]);
	add_both(r, HOST_NETWORK_ERRORS, device, net_directions, c[IN_ERRORS], c[OUT_ERRORS]);
	add_both(r, HOST_NETWORK_DROPPED, device, net_directions, c[IN_DROPPED], c[OUT_DROPPED]);
}

/* Cuts "  NAME:" off the front; a name may have colons, and numbers may follow the last one at once. */
static bool cut_name(struct str *line, struct str *name)
{
	const char *colon = line->len ? memrchr(line->data, ':', line->len) : NULL;
	struct str front = { line->data, colon ? (uint32_t)(colon - line->data) : 0 };

	if (!words_next(&front, name))
		return false;
	*line = (struct str){ colon + 1, line->len - (uint32_t)(colon + 1 - line->data) };
	return true;
}

int host_parse_net_dev(struct host_reading *r, struct str dev)
{
	uint64_t columns[NET_COLUMNS];
	struct str line, name, device;
	unsigned count = 0;

	for (unsigned heads = 0; heads < 2; heads++)
		if (!words_line(&dev, &line) || !memchr(line.data, '|', line.len))
			return -EBADMSG;
	while (words_line(&dev, &line)) {
		if (!cut_name(&line, &name) || words_numbers(&line, columns, NET_COLUMNS) != NET_COLUMNS)
			r->bad_lines++;
		else if (choose(r, HOST_BY_INTERFACE, name, &count, &device))
			add_interface(r, device, columns);
	}
	return 0;
}
