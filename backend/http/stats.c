/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's own counters. Series are registered once and their addresses kept, so that counting is an atomic add. The
 * registry outlives the server. Loop's thread only.
 */
#include "backend/http/stats.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/metrics.h"
#include "base/text/stat_start.h"
#include "base/usage.h"

static const char *const rejection_names[REJECTION_COUNT] = {
	[REJECTED_PATH] = "unknown path",
	[REJECTED_METHOD] = "method",
	[REJECTED_TOKEN] = "token",
	[REJECTED_CONTENT_TYPE] = "content type",
	[REJECTED_ENCODING] = "content encoding",
	[REJECTED_VERSION] = "profiles version",
	[REJECTED_TOO_LARGE] = "too large",
	[REJECTED_MEMORY] = "memory",
	[REJECTED_MALFORMED] = "malformed",
	[REJECTED_ORIGIN] = "origin",
	[REJECTED_BUSY] = "busy",
	[REJECTED_SINK] = "sink failed",
	[REJECTED_SLOW] = "too slow",
	[REJECTED_DEADLINE] = "deadline",
	[REJECTED_HEADERS] = "headers",
	[REJECTED_PARAMETER] = "parameter",
	[REJECTED_CALLS] = "too many calls",
	[REJECTED_INCOMPLETE] = "incomplete",
};

/* Seconds since the epoch at which the process began; 0 when /proc does not say. */
static uint64_t process_start_time_s(void)
{
	char line[1024];
	if (io_read_text(AT_FDCWD, "/proc/self/stat", line, sizeof(line)) < 0)
		return 0;

	long tick_hz = sysconf(_SC_CLK_TCK);
	uint64_t ticks;
	struct timespec boot;
	if (stat_start_ticks(line, &ticks) || tick_hz <= 0 || clock_gettime(CLOCK_BOOTTIME, &boot))
		return 0;

	uint64_t up_ns = (uint64_t)boot.tv_sec * NSEC_PER_SEC + (uint64_t)boot.tv_nsec;
	uint64_t started_ns = ticks * (NSEC_PER_SEC / (uint64_t)tick_hz); /* after boot */
	return (clock_unix_ns() - up_ns + started_ns) / NSEC_PER_SEC;
}

void stats_init_rejected(struct metric *rejected[REJECTION_COUNT], struct metrics *m)
{
	for (int why = 0; why < REJECTION_COUNT; why++) {
		struct buf labels = BUF_EMPTY;
		metrics_label(&labels, "reason", rejection_names[why], strlen(rejection_names[why]));
		rejected[why] = metrics_counter(m, "hearth_rejected_requests_total", buf_text(&labels),
						"Requests that were not taken.");
		buf_fini(&labels);
	}
}

void server_stats_init(struct server_stats *s, struct metrics *m)
{
	*s = (struct server_stats){ .metrics = m };
	s->received_bytes = metrics_counter(m, "hearth_received_bytes_total", NULL, "Bytes of request bodies, as sent.");
	s->connections = metrics_gauge(m, "hearth_http_connections", NULL, "Open HTTP connections.");
	s->displaced = metrics_counter(m, "hearth_http_connections_cut_total", "reason=\"room\"",
				       "HTTP connections that said nothing, or too little, and were closed for others.");
	stats_init_rejected(s->rejected, m);
	s->cpu_ns = metrics_seconds(m, "hearth_process_cpu_seconds_total", NULL,
				    "CPU time of the process, user and system.");
	s->process_cpu_ns = metrics_seconds(m, "process_cpu_seconds_total", NULL,
					    "CPU time of the process, user and system.");
	s->resident_bytes = metrics_gauge(m, "process_resident_memory_bytes", NULL, "Resident memory.");
	s->virtual_bytes = metrics_gauge(m, "process_virtual_memory_bytes", NULL, "Address space in use.");
	s->open_fds = metrics_gauge(m, "process_open_fds", NULL, "Open file descriptors.");
	s->max_fds = metrics_gauge(m, "process_max_fds", NULL, "File descriptors that the process may have open.");
	s->start_time_s = metrics_gauge(m, "process_start_time_seconds", NULL, "Start of the process, Unix time.");
	metric_set(s->start_time_s, process_start_time_s());
}

void server_stats_answered(struct server_stats *s, size_t path_index, const char *path, unsigned status)
{
	static const unsigned codes[] = { 200, 204, 400, 401, 404, 405, 413, 415, 500, 503 };
	_Static_assert(ARRAY_LEN(codes) < STATS_CODES_MAX, "one more column for all other codes");
	size_t code = 0;
	while (code < ARRAY_LEN(codes) && codes[code] != status)
		code++;

	struct metric **series = &s->requests[path_index][code];
	if (!*series) {
		char number[16] = "other";
		if (code < ARRAY_LEN(codes))
			snprintf(number, sizeof(number), "%u", status);
		struct buf labels = BUF_EMPTY;
		metrics_label(&labels, "path", path, strlen(path));
		metrics_label(&labels, "code", number, strlen(number));
		*series = metrics_counter(s->metrics, "hearth_received_requests_total", buf_text(&labels),
					  "Requests answered.");
		buf_fini(&labels);
	}
	metric_add(*series, 1);
}

static uint64_t count_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t count = 0;
	if (!dir)
		return 0;
	for (const struct dirent *entry; (entry = readdir(dir));)
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count - 1; /* the directory's own */
}

void server_stats_refresh_process(struct server_stats *s)
{
	const struct usage other = usage_of_other(); /* hearth is both, whichever answers */
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) == 0) {
		uint64_t sec = (uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec;
		uint64_t usec = (uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec;
		metric_set(s->cpu_ns, sec * NSEC_PER_SEC + usec * 1000 + other.cpu_ns);
		metric_set(s->process_cpu_ns, metric_get(s->cpu_ns));
	}

	AUTO_FCLOSE FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long all_pages, resident_pages;
	if (f && fscanf(f, "%llu %llu", &all_pages, &resident_pages) == 2) {
		metric_set(s->virtual_bytes, all_pages * (uint64_t)sysconf(_SC_PAGESIZE));
		metric_set(s->resident_bytes, resident_pages * (uint64_t)sysconf(_SC_PAGESIZE) + other.resident_bytes);
	}
	metric_set(s->open_fds, count_open_fds());
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		metric_set(s->max_fds, files.rlim_cur);
}
