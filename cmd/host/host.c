/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/host/host.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/pattern.h"

const char *const host_scraper_names[HOST_SCRAPERS] = {
	[HOST_CPU] = "cpu",   [HOST_MEMORY] = "memory",		[HOST_DISK] = "disk",	  [HOST_NETWORK] = "network",
	[HOST_LOAD] = "load", [HOST_FILESYSTEM] = "filesystem", [HOST_PAGING] = "paging",
};

#define GAUGE(name_, unit_, scraper_, help_)                                                               \
	{                                                                                                  \
		.name = (name_), .unit = (unit_), .scraper = (scraper_), .is_gauge = true, .help = (help_) \
	}
#define LEVEL(name_, unit_, scraper_, help_)                                             \
	{                                                                                \
		.name = (name_), .unit = (unit_), .scraper = (scraper_), .help = (help_) \
	}
#define TOTAL(name_, unit_, scraper_, help_)                                                                   \
	{                                                                                                      \
		.name = (name_), .unit = (unit_), .scraper = (scraper_), .is_monotonic = true, .help = (help_) \
	}

const struct host_metric_type host_metric_types[HOST_METRICS] = {
	[HOST_CPU_TIME] = TOTAL("system.cpu.time", "s", HOST_CPU, "Time of each CPU by what it was spent on."),
	[HOST_MEMORY_USAGE] = LEVEL("system.memory.usage", "By", HOST_MEMORY, "Memory by what it is used for."),
	[HOST_DISK_IO] = TOTAL("system.disk.io", "By", HOST_DISK, "Bytes read from and written to each disk."),
	[HOST_DISK_OPERATIONS] = TOTAL("system.disk.operations", "{operations}", HOST_DISK,
				       "Reads and writes that each disk finished."),
	[HOST_DISK_IO_TIME] = TOTAL("system.disk.io_time", "s", HOST_DISK, "Time in which each disk had something to do."),
	[HOST_DISK_OPERATION_TIME] = TOTAL("system.disk.operation_time", "s", HOST_DISK,
					   "Time that reads and writes of each disk took together."),
	[HOST_DISK_WEIGHTED_IO_TIME] = TOTAL("system.disk.weighted_io_time", "s", HOST_DISK,
					     "Time in which each disk had something to do, times how much was waiting."),
	[HOST_DISK_MERGED] = TOTAL("system.disk.merged", "{operations}", HOST_DISK,
				   "Reads and writes that were made one with others."),
	[HOST_DISK_PENDING] = LEVEL("system.disk.pending_operations", "{operations}", HOST_DISK,
				    "Operations that each disk has before it."),
	[HOST_NETWORK_IO] = TOTAL("system.network.io", "By", HOST_NETWORK, "Bytes that each interface received and sent."),
	[HOST_NETWORK_PACKETS] = TOTAL("system.network.packets", "{packets}", HOST_NETWORK,
				       "Packets that each interface received and sent."),
	[HOST_NETWORK_ERRORS] = TOTAL("system.network.errors", "{errors}", HOST_NETWORK,
				      "Errors of each interface in receiving and sending."),
	[HOST_NETWORK_DROPPED] = TOTAL("system.network.dropped", "{packets}", HOST_NETWORK,
				       "Packets that each interface dropped."),
	[HOST_LOAD_1M] = GAUGE("system.cpu.load_average.1m", "{thread}", HOST_LOAD,
			       "Threads that ran or wanted to, on average over a minute."),
	[HOST_LOAD_5M] = GAUGE("system.cpu.load_average.5m", "{thread}", HOST_LOAD,
			       "Threads that ran or wanted to, on average over 5 minutes."),
	[HOST_LOAD_15M] = GAUGE("system.cpu.load_average.15m", "{thread}", HOST_LOAD,
				"Threads that ran or wanted to, on average over 15 minutes."),
	[HOST_FILESYSTEM_USAGE] = LEVEL("system.filesystem.usage", "By", HOST_FILESYSTEM,
					"Bytes of each file system, used and free."),
	[HOST_FILESYSTEM_INODES] = LEVEL("system.filesystem.inodes.usage", "{inodes}", HOST_FILESYSTEM,
					 "Inodes of each file system."),
	[HOST_PAGING_USAGE] = LEVEL("system.paging.usage", "By", HOST_PAGING, "Bytes of each swap device, used and free."),
	[HOST_PAGING_OPERATIONS] = TOTAL("system.paging.operations", "{operations}", HOST_PAGING,
					 "Pages that came in and went out."),
	[HOST_PAGING_FAULTS] = TOTAL("system.paging.faults", "{faults}", HOST_PAGING, "Page faults."),
};

/* --- filters --- */

static bool has(const struct host_names *names, const char *name, size_t len)
{
	for (size_t i = 0; i < names->count; i++) {
		const struct host_name *n = &names->items[i];

		if (n->pattern ? pattern_matches(n->pattern, name, len)
			       : strlen(n->text) == len && !memcmp(n->text, name, len))
			return true;
	}
	return false;
}

bool host_filter_passes(const struct host_filter *filter, const char *name, size_t len)
{
	return (!filter->include.count || has(&filter->include, name, len)) && !has(&filter->exclude, name, len);
}

static void names_fini(struct host_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		pattern_free(names->items[i].pattern);
	free(names->items);
	*names = (struct host_names){ 0 };
}

void host_config_fini(struct host_config *config)
{
	for (size_t i = 0; i < HOST_FILTERS; i++) {
		names_fini(&config->filters[i].include);
		names_fini(&config->filters[i].exclude);
	}
}
