/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the machine, by the names of OpenTelemetry's conventions as a Collector's `hostmetrics` receiver tells them:
 * which there are, and what a pipeline wants of them. A scraper reads one or two files of /proc and tells some metrics.
 */
#ifndef HEARTH_CMD_HOST_HOST_H
#define HEARTH_CMD_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pattern;

enum host_scraper {
	HOST_CPU,
	HOST_MEMORY,
	HOST_DISK,
	HOST_NETWORK,
	HOST_LOAD,
	HOST_FILESYSTEM,
	HOST_PAGING,
	HOST_SCRAPERS,
};

enum host_metric {
	HOST_CPU_TIME,
	HOST_MEMORY_USAGE,
	HOST_DISK_IO,
	HOST_DISK_OPERATIONS,
	HOST_DISK_IO_TIME,
	HOST_DISK_OPERATION_TIME,
	HOST_DISK_WEIGHTED_IO_TIME,
	HOST_DISK_MERGED,
	HOST_DISK_PENDING,
	HOST_NETWORK_IO,
	HOST_NETWORK_PACKETS,
	HOST_NETWORK_ERRORS,
	HOST_NETWORK_DROPPED,
	HOST_LOAD_1M,
	HOST_LOAD_5M,
	HOST_LOAD_15M,
	HOST_FILESYSTEM_USAGE,
	HOST_FILESYSTEM_INODES,
	HOST_PAGING_USAGE,
	HOST_PAGING_OPERATIONS,
	HOST_PAGING_FAULTS,
	HOST_METRICS,
};

struct host_metric_type {
	const char *name, *unit, *help;
	enum host_scraper scraper;
	bool is_gauge;	   /* else a sum, cumulative ... */
	bool is_monotonic; /* ... that never falls */
};

extern const struct host_metric_type host_metric_types[HOST_METRICS];

/* "cpu", "memory", ... */
extern const char *const host_scraper_names[HOST_SCRAPERS];

/* --- what is wanted --- */

/* Of whom a list of names is. */
enum host_filter_kind {
	HOST_BY_DISK,
	HOST_BY_INTERFACE,
	HOST_BY_DEVICE, /* of a file system, as the next */
	HOST_BY_TYPE,
	HOST_BY_MOUNT_POINT,
	HOST_FILTERS,
};

struct host_name {
	const char *text;	 /* borrowed */
	struct pattern *pattern; /* NULL: the name is @text itself */
};

struct host_names {
	struct host_name *items; /* owned */
	size_t count;
};

struct host_filter { /* names in neither list, if there are both, are left out */
	struct host_names include, exclude;
};

struct host_config {
	uint64_t interval_ns, delay_ns; /* between readings, and before the first */
	const char *root;		/* where the host's root is mounted; "": here */
	bool has[HOST_SCRAPERS];
	bool is_off[HOST_METRICS];
	bool is_per_cpu;  /* load averages are divided by the number of CPUs */
	bool has_virtual; /* file systems without a device count, too */
	struct host_filter filters[HOST_FILTERS];
};

/* Whether @filter lets the @len bytes of @name pass. One thread at a time. */
bool host_filter_passes(const struct host_filter *filter, const char *name, size_t len);

/* Frees the lists and their patterns. */
void host_config_fini(struct host_config *config);

#endif
