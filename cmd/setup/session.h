/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that the long-running commands share: loop, metrics, the agent, one sink, how signals end it and how it drains.
 * A session is checked (where it has an agent), opened, set up, run, drained and closed, in this order, on the main thread;
 * functions log what fails and return -errno. It begins as zeroes, and may be closed at any time.
 */
#ifndef HEARTH_CMD_SETUP_SESSION_H
#define HEARTH_CMD_SETUP_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/setup/agent_setup.h"
#include "cmd/setup/schedule.h"

struct agent;
struct agent_stats;
struct buf;
struct config;
struct loop;
struct loop_watch;
struct metrics;
struct signals;
struct sink;
struct store;

struct session {
	const struct config *config;  /* borrowed */
	const struct config *current; /* the same, or as SIGHUP read it last */
	struct config *reloaded;      /* that one, owned */
	bool is_service;	      /* set by the command: SIGHUP may mean to read the configuration again */
	struct loop *loop;
	struct metrics *metrics;
	struct sink *sink;     /* set by the command; freed by session_close() */
	struct store *store;   /* the one the sink writes to, or NULL; closed by session_close() */
	struct sink *received; /* what OTLP goes to that comes in beside an agent: set by the command, whose it is; NULL: the
				  store */
	struct signals *signals; /* where records of spans and logs are kept, or NULL; of page_signals() */
	struct agent *agent;	 /* NULL until session_load_agent() */
	/* Where the agent is another process: told when somebody waits for what is sampled until then. NULL: it is not. */
	void (*report_at)(void *arg, uint64_t at_ns);
	void *report_arg;
	struct agent_setup setup; /* session_check_options() makes it ... */
	struct schedule schedule; /* ... and this */
	uint64_t start_ns;	  /* of sampling, after --delay; CLOCK_MONOTONIC */
	uint64_t end_ns;
	bool is_agent_half; /* the sink leads to a backend that is another process */
	bool is_signalled;  /* a signal ended it */
	bool has_screen;    /* the sink draws on the terminal's alternate screen */
};

/* Reads those options of @config, which is borrowed, that only the agent can check. 0, or -EINVAL: wrong usage, said. */
int session_check_options(struct session *s, const struct config *config);

/* @config: the one that was checked. */
int session_open(struct session *s, const struct config *config);

/* SIGINT, SIGTERM and SIGHUP end session_run(). To be called before any thread starts. */
int session_end_on_signals(struct session *s);

/* session_run() also ends when the reader of standard output goes away. */
void session_end_on_closed_stdout(struct session *s);

/* Finds the allocator of the command @pid, which has its libraries and waits, for -e malloc. 0 or -errno, after a message.
 */
int session_add_malloc(struct session *s, pid_t pid);

/*
 * Gives up what sampling does not need, for a process that does nothing else: before threads start and sinks are opened.
 * @writes_files: also into users' folders; @command: a process that gets our signals, or 0.
 */
int session_confine(struct session *s, bool writes_files, pid_t command);

/* Makes the agent with s->sink, as session_check_options() has read it. @pid, when not 0, is filtered for besides --pid. */
int session_load_agent(struct session *s, uint32_t pid);

/* Starts sampling and says so in one line, with @target as where profiles go; NULL: says nothing. */
int session_start_agent(struct session *s, const char *target);

/* Runs the session until something ends it. */
int session_run(struct session *s);

/*
 * Lets what is under way arrive, within --drain-timeout: @stop (may be NULL) first, then the agent, then the sink. While it
 * waits, a signal (a second one, when a signal ended the session) kills the process. Logs nothing. 0, -ETIMEDOUT or another
 * -errno when not everything was delivered.
 */
int session_drain(struct session *s, void (*stop)(void *arg, uint64_t deadline_ns), void *arg);

/* Says what session_drain() returned; nothing when 0. */
void session_log_undelivered(const struct session *s, int err);

/* Says in one line how many user stacks are not complete and the chief reason; nothing when all are. */
void session_log_truth(struct session *s);

/* Says in a line for each kind of samples what became of them; nothing where there is one kind. */
void session_log_kinds(struct session *s);

/* Appends one line of accounting: taken = delivered + lost, the samples not taken, how many stacks are complete. */
void session_account(struct session *s, struct buf *out);
/* The same of @stats and the agent's @losses ("": none); what sinks dropped is told by @metrics. */
void session_print_account(const struct agent_stats *stats, const char *losses, struct metrics *metrics, struct buf *out);

void session_close(struct session *s);

#endif
