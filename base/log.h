/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to a person, on stderr. Only commands and the pipelines they wire log; leaf modules return errors. A message
 * says what failed, on what, why, and what to do about it. One line a call, written by one write(2); any thread may call.
 */
#ifndef HEARTH_BASE_LOG_H
#define HEARTH_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Messages above @level are dropped. The default is LOG_INFO. */
void log_set_level(enum log_level level);
bool log_is_enabled(enum log_level level);

enum log_format {
	LOG_AS_TEXT,   /* "hearth: warning: ..." */
	LOG_AS_JSON,   /* an object a line: time, level, message */
	LOG_AS_LOGFMT, /* time=... level=... msg="..." */
};

/* How messages look from now on. To be called before there are threads. */
void log_set_format(enum log_format format);

void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * While @on is set, up to 64 KB of messages wait; they go to stderr when it is off again. This is for a terminal on which a
 * screen is drawn. A last line counts the messages that found no room.
 */
void log_hold(bool on);

/* Writes the waiting messages, for a signal handler before the process dies. Async-signal-safe. */
void log_write_held(void);

/* The last messages that were written are kept, each cut to fit here, for code that shows them elsewhere. */
struct log_message {
	uint64_t unix_ns;
	enum log_level level;
	char text[244];
};

/* Copies the last ones, at most @max and at most as many as are kept, oldest first. Returns how many. */
size_t log_recent(struct log_message *messages, size_t max);

/* Copies the messages that were kept since *@count (0 at first), which it moves on; at most @max, oldest first. Returns how
 * many. */
size_t log_since(uint64_t *count, struct log_message *messages, size_t max);

/* Keeps a message of another process of hearth, which has written it. */
void log_remember(const struct log_message *message);

/* "error", "warning", "info", "debug" */
const char *log_level_name(enum log_level level);

/* Does what log_at does, but at most once each @interval_ns for the place that owns *@last_ns (0 at first). The next message
 * says how many were held back. */
struct log_limit {
	uint64_t last_ns;
	uint64_t held_back;
};
void log_limited(struct log_limit *limit, uint64_t interval_ns, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...)                                  \
	do {                                            \
		if (log_is_enabled(LOG_DEBUG))          \
			log_at(LOG_DEBUG, __VA_ARGS__); \
	} while (0)

#endif
