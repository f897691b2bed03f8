/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's end of the channel: a sink that sends profiles to the backend, with the agent's counters, messages and needs.
 * Everything happens on the thread of its loop, which is the one that consumes.
 */
#ifndef HEARTH_CMD_HALVES_CHANNEL_H
#define HEARTH_CMD_HALVES_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/halves/wire.h"
#include "proto/sink.h"

struct channel; /* begins with a struct sink */
struct debuginfod;
struct loop;
struct metrics;

struct channel_config {
	int sock; /* taken over, also after an error */
	struct loop *loop;
	struct metrics *metrics;
	/* NOTE_READY has come; may be NULL. */
	void (*ready)(void *arg, const struct wire_note *note);
	/* Somebody waits for what is sampled until @at_ns (CLOCK_MONOTONIC). */
	void (*window)(void *arg, uint64_t at_ns);
	/* Nobody is at the other end, and nobody will be. */
	void (*lost)(void *arg);
	void *arg;
};

/* 0 or -errno. Freed by sink_free(channel_sink()). */
int channel_new(const struct channel_config *config, struct channel **ret);
struct sink *channel_sink(struct channel *c);

/* The backend keeps no profiles: none are sent but while somebody there waits for some. */
void channel_send_none(struct channel *c);

/* The backend whose NOTE_HELLO had the number @backend has ended: what it did not acknowledge is sent again to the next
 * one, when that says NOTE_HELLO, or has. */
void channel_went_down(struct channel *c, uint64_t backend);

/* A terminal's screen is (@on) or is not drawn on: messages of the backend wait meanwhile. */
void channel_hold_log(struct channel *c, bool on);

/* Has the backend answer what is asked and receive what comes until @deadline_ns (CLOCK_MONOTONIC), and nothing new. */
void channel_quiesce(struct channel *c, uint64_t deadline_ns);

/* What asks the backend for debug files; NULL without memory. The caller's to free, before or after the channel. */
struct debuginfod *channel_debuginfod(struct channel *c);

#endif
