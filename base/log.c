/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages on stderr. A line is put together on the caller's stack and written by one write(2), so lines of several threads
 * never mix. Control characters (file names and comms come from other people) become '?': a message stays one line and
 * cannot steer the terminal. Colour only where stderr is a terminal and NO_COLOR is not set. errno is left as it was. The
 * last messages stay in a ring below a lock of its own.
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/handed.h"
#include "base/text/utf8.h"

enum {
	LINE_MAX_BYTES = 4096, /* bytes that a pipe takes in one piece */
	KEPT = 100,
	HELD_BYTES = 64 << 10,
};

struct level_style {
	const char *plain;
	const char *coloured;
};

static const struct level_style styles[] = {
	[LOG_ERROR] = { "hearth: error: ", "hearth: \033[1;31merror:\033[0m " },
	[LOG_WARN] = { "hearth: warning: ", "hearth: \033[1;33mwarning:\033[0m " },
	[LOG_INFO] = { "hearth: ", "hearth: " },
	[LOG_DEBUG] = { "hearth: debug: ", "hearth: \033[2mdebug:\033[0m " },
};

static _Atomic int max_level = LOG_INFO;
static enum log_format format = LOG_AS_TEXT;

static struct {
	pthread_mutex_t lock;
	struct log_message ring[KEPT];
	uint64_t count; /* messages kept in all; the next one goes to count % KEPT */
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The text that waits for the terminal. Bytes are written before @len counts them, as a signal handler reads without the
 * lock. */
static struct {
	pthread_mutex_t lock;
	bool is_on;
	_Atomic size_t len;
	uint64_t left_out; /* messages */
	char bytes[HELD_BYTES];
} held = { .lock = PTHREAD_MUTEX_INITIALIZER };

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&max_level, (int)level, memory_order_relaxed);
}

void log_set_format(enum log_format wanted)
{
	format = wanted;
}

bool log_is_enabled(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&max_level, memory_order_relaxed);
}

static void put(const struct log_message *m)
{
	pthread_mutex_lock(&kept.lock);
	kept.ring[kept.count++ % KEPT] = *m;
	pthread_mutex_unlock(&kept.lock);
}

static void keep(enum log_level level, const char *text, size_t len)
{
	struct log_message m = { .unix_ns = clock_unix_ns(), .level = level };
	size_t fits = len;

	if (fits >= sizeof(m.text)) /* cut between characters */
		for (fits = sizeof(m.text) - 1; fits && ((unsigned char)text[fits] & 0xc0) == 0x80; fits--)
			;
	memcpy(m.text, text, fits);
	put(&m);
}

void log_remember(const struct log_message *message)
{
	put(message);
}

size_t log_since(uint64_t *count, struct log_message *messages, size_t max)
{
	size_t n = 0;

	pthread_mutex_lock(&kept.lock);
	if (kept.count - *count > KEPT)
		*count = kept.count - KEPT;
	for (; n < max && *count < kept.count; n++)
		messages[n] = kept.ring[(*count)++ % KEPT];
	pthread_mutex_unlock(&kept.lock);
	return n;
}

size_t log_recent(struct log_message *messages, size_t max)
{
	pthread_mutex_lock(&kept.lock);
	uint64_t n = kept.count < KEPT ? kept.count : KEPT;

	if (n > max)
		n = max;
	for (uint64_t i = 0; i < n; i++)
		messages[i] = kept.ring[(kept.count - n + i) % KEPT];
	pthread_mutex_unlock(&kept.lock);
	return n;
}

const char *log_level_name(enum log_level level)
{
	static const char *const names[] = {
		[LOG_ERROR] = "error", [LOG_WARN] = "warning", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"
	};
	return names[level];
}

static void write_bytes(const char *bytes, size_t len)
{
	ssize_t written;

	do {
		written = write(STDERR_FILENO, bytes, len);
	} while (written < 0 && errno == EINTR);
}

static void write_or_hold(const char *line, size_t len)
{
	size_t at;

	pthread_mutex_lock(&held.lock);
	at = atomic_load(&held.len);
	if (!held.is_on) {
		write_bytes(line, len);
	} else if (len <= sizeof(held.bytes) - at) {
		memcpy(held.bytes + at, line, len);
		atomic_store(&held.len, at + len);
	} else {
		held.left_out++;
	}
	pthread_mutex_unlock(&held.lock);
}

void log_write_held(void)
{
	write_bytes(held.bytes, atomic_load(&held.len));
}

void log_hold(bool on)
{
	uint64_t left_out;

	pthread_mutex_lock(&held.lock);
	held.is_on = on;
	left_out = on ? 0 : held.left_out;
	if (!on && atomic_load(&held.len)) {
		log_write_held();
		atomic_store(&held.len, 0);
		held.left_out = 0;
	}
	pthread_mutex_unlock(&held.lock);
	if (left_out)
		log_warn("%" PRIu64 " more messages came while the screen was drawn on, and are left out", left_out);
}

/* 2026-01-02T03:04:05.678Z */
static int put_time(char *out, size_t size)
{
	uint64_t now_ns = clock_unix_ns();
	time_t seconds = (time_t)(now_ns / NSEC_PER_SEC);
	struct tm tm;
	size_t len;

	gmtime_r(&seconds, &tm);
	len = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
	return (int)len + snprintf(out + len, size - len, ".%03uZ", (unsigned)(now_ns / NSEC_PER_MSEC % 1000));
}

/* Writes the @len bytes of @text, which have no control characters, as the object or the pairs that were asked for. */
static void write_structured(enum log_level level, const char *text, size_t len)
{
	bool is_utf8 = utf8_is_valid(text, len);
	char line[2 * LINE_MAX_BYTES + 128], time_text[40]; /* each character may get a backslash */
	size_t at;

	put_time(time_text, sizeof(time_text));
	if (format == LOG_AS_JSON)
		at = (size_t)snprintf(line, sizeof(line), "{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"", time_text,
				      log_level_name(level));
	else
		at = (size_t)snprintf(line, sizeof(line), "time=%s level=%s msg=\"", time_text, log_level_name(level));
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"' || text[i] == '\\')
			line[at++] = '\\';
		line[at++] = is_utf8 || (unsigned char)text[i] < 0x80 ? text[i] : '?';
	}
	line[at++] = '"';
	if (format == LOG_AS_JSON)
		line[at++] = '}';
	line[at++] = '\n';
	write_or_hold(line, at);
}

/* The line ends with the number @held_back if that is not 0. */
__attribute__((format(printf, 2, 0))) static void write_line(enum log_level level, const char *fmt, va_list ap,
							     uint64_t held_back)
{
	int saved_errno = errno;
	const char *no_colour = getenv("NO_COLOR");
	bool colour = isatty(STDERR_FILENO) && !(no_colour && *no_colour);
	const char *prefix = colour ? styles[level].coloured : styles[level].plain;
	char line[LINE_MAX_BYTES], tail[64] = "";
	size_t start = strlen(prefix), len, room;
	int n;

	if (held_back)
		snprintf(tail, sizeof(tail), " (%" PRIu64 " like it held back)", held_back);
	memcpy(line, prefix, start);
	room = sizeof(line) - start - strlen(tail) - 1; /* 1: the newline takes the place of the NUL */
	/* isatty changes errno, and the message may use %m. */
	errno = saved_errno;
	n = vsnprintf(line + start, room, fmt, ap);
	if (n < 0)
		return;
	len = start + ((size_t)n < room ? (size_t)n : room - 1);
	for (size_t i = start; i < len; i++) {
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	}
	len = start + handed_rewrite(line + start, len - start, room);
	memcpy(line + len, tail, strlen(tail));
	len += strlen(tail);
	keep(level, line + start, len - start);
	line[len++] = '\n';
	if (format == LOG_AS_TEXT)
		write_or_hold(line, len);
	else
		write_structured(level, line + start, len - start - 1);
	errno = saved_errno;
}

void log_at(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	if (!log_is_enabled(level))
		return;
	va_start(ap, fmt);
	write_line(level, fmt, ap, 0);
	va_end(ap);
}

void log_limited(struct log_limit *limit, uint64_t interval_ns, enum log_level level, const char *fmt, ...)
{
	uint64_t last = __atomic_load_n(&limit->last_ns, __ATOMIC_RELAXED);
	uint64_t now = clock_mono_ns();
	va_list ap;

	if (!log_is_enabled(level))
		return;
	/* When several threads come at once, only the one that moves the time forward writes its message. */
	if ((last && now - last < interval_ns) ||
	    !__atomic_compare_exchange_n(&limit->last_ns, &last, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&limit->held_back, 1, __ATOMIC_RELAXED);
		return;
	}
	va_start(ap, fmt);
	write_line(level, fmt, ap, __atomic_exchange_n(&limit->held_back, 0, __ATOMIC_RELAXED));
	va_end(ap);
}
