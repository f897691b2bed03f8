/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearth as two halves: the agent, which is root and reads nothing from a network, and the backend, which listens, stores
 * and sends, and may nothing else. The agent's side of starting, living with and ending the other. Main thread.
 *
 * Order: halves_fork() before the session is opened (nothing foreign has been read, there is one thread), halves_connect()
 * once signals are waited for, halves_wait() when the agent is loaded, halves_quiesce() as the drain's first step,
 * halves_end() after the session is closed.
 */
#ifndef HEARTH_CMD_HALVES_HALVES_H
#define HEARTH_CMD_HALVES_HALVES_H

#include <stdbool.h>
#include <stdint.h>

struct config;
struct halves;
struct session;
struct sink;

/*
 * Forks the keeper and, through it, the backend, if @config asks for something that is a backend's. @keeps: profiles are
 * kept in the default store when no other is named; @is_lenient: hearth goes on where that, or the page, cannot be. *@ret
 * stays NULL where there is one half. Logs what fails; 0 or -errno.
 */
int halves_fork(const struct config *config, bool keeps, bool is_lenient, struct halves **ret);

/* Whether this process only samples, and writes files: the rest of what @config asks for is done by the other half @h, or
 * there is none. */
bool halves_leave_agent_alone(const struct halves *h, const struct config *config, bool keeps);

/* The settings of this half: without the sinks that are the other's. */
const struct config *halves_config(const struct halves *h);

/* Speaks to the backend from now on. *@sink_ret is where profiles for it go, the caller's to free. 0 or -errno, said. */
int halves_connect(struct halves *h, struct session *s, struct sink **sink_ret);

/* Waits until the backend has opened what it was asked for, which it does while the agent loads its programs. 0, or the exit
 * status to end with; the backend has said why. */
int halves_wait(struct halves *h);

/* The page's address as page_url() has it; NULL: there is none. Accepts NULL. */
const char *halves_page_url(const struct halves *h);

/* While @on, the backend's messages wait, as ours do. Accepts NULL. */
void halves_hold_log(struct halves *h, bool on);

/* session_drain()'s stop: no new questions and requests. @halves is a struct halves or NULL. */
void halves_quiesce(void *halves, uint64_t deadline_ns);

/* Waits for the other processes' end, and frees. Accepts NULL. */
void halves_end(struct halves *h);

#endif
