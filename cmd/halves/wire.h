/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two halves' words to each other, over a pair of SOCK_SEQPACKET sockets. The agent's messages come in packets: a head,
 * then a piece of the message. The backend answers with notes of a fixed size, which the agent compares and copies numbers
 * from, and nothing else: it is root, and a note may be from whoever took the backend over. One note may carry a file.
 */
#ifndef HEARTH_CMD_HALVES_WIRE_H
#define HEARTH_CMD_HALVES_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/ourselves.h"

enum { WIRE_PIECE_BYTES = 64 << 10, WIRE_ID_BYTES = 65 };

/* Kinds of messages, from the agent. */
enum wire_kind {
	WIRE_WELCOME,  /* @number is HELLO's: what was sent before is for another backend */
	WIRE_PROFILES, /* one OTLP message; @number comes back with its NOTE_ACK */
	WIRE_STATE,    /* struct wire_state */
	WIRE_METRICS,  /* all series (wire_put_series) */
	WIRE_LOG,      /* struct log_message[] */
	WIRE_WANT,     /* a build id, for NOTE_SERVED with the same @number */
	WIRE_QUIESCE,  /* end questions and requests within @number ns */
	WIRE_FLUSH,    /* bring out what is left within @number ns, say NOTE_FLUSHED, end */
	WIRE_KINDS,
};

/* In front of each piece of a message. */
struct wire_head {
	uint32_t kind;
	uint32_t total_bytes, offset; /* of the message, and of this piece in it */
	uint32_t zero;
	uint64_t number;
};

struct wire_state {
	uint64_t cpu_ns, resident_bytes; /* the agent's */
	int32_t pid;
	int32_t log_level;
	uint8_t holds_log; /* a screen is drawn on the terminal: messages wait */
	uint8_t zero[7];
	struct ourselves processes; /* of hearth, that were seen since somebody first waited for its own profile */
};

/* Kinds of notes, from the backend. */
enum note_kind {
	NOTE_HELLO,   /* a new backend waits for its welcome; @number: its pid */
	NOTE_READY,   /* it has opened all (@status 0), or ends: @status, an exit status; @values: ports, and struct ready */
	NOTE_ACK,     /* @number was kept (@status 0) or was not (-errno) */
	NOTE_WINDOW,  /* somebody waits for what is sampled until @number (CLOCK_MONOTONIC) */
	NOTE_SERVED,  /* the answer to WIRE_WANT: with a file (@status 0), or why there is none (-errno) */
	NOTE_FLUSHED, /* @status, how many samples were dropped (@values[0]), how many are spooled (@values[1]) */
};

struct wire_note {
	uint32_t kind;
	int32_t status;
	uint64_t number;
	uint64_t values[3];
};

/* NOTE_READY's @values have the ports that were taken, 0: none, 16 bits each, those of half of them above those of the
 * others; and @values[2] above that whether anything is kept. */
#define READY_KEEPS (1ull << 32)
enum { READY_VALUES = 3 };

static inline void ready_set_port(struct wire_note *note, unsigned i, uint16_t port)
{
	note->values[i % READY_VALUES] |= (uint64_t)port << (i / READY_VALUES * 16);
}

static inline uint16_t ready_port(const struct wire_note *note, unsigned i)
{
	return (uint16_t)(note->values[i % READY_VALUES] >> (i / READY_VALUES * 16));
}

/* Sends @note, with the file @fd unless that is -1; waits for room. 0 or -errno. Any thread. */
int wire_send_note(int sock, const struct wire_note *note, int fd);

/* Takes a note that has come; *@fd_ret is the file with it, the caller's to close, or -1. 0; -EAGAIN: none is there; -EPIPE:
 * nobody will send any; -EBADMSG: what came is none, and was dropped. */
int wire_receive_note(int sock, struct wire_note *note, int *fd_ret);

/* A message on its way in. */
struct wire_message {
	struct wire_head head; /* of its first piece */
	struct buf body;
	bool is_whole;
};

/* Takes one packet, waiting for it, and puts it to what has come of @m; pieces without their beginning are dropped. Then
 * @m->is_whole tells whether all is there. 0; -EAGAIN; -EPIPE: the agent has gone; -errno. */
int wire_receive(int sock, struct wire_message *m);

/* Sends one piece of a message whose first @offset bytes were sent; does not wait. How many bytes went, or -errno. */
ptrdiff_t wire_send_piece(int sock, const struct wire_head *message, const uint8_t *body, size_t offset);

struct metrics;

/* Appends what this process has counted to @out. */
void wire_put_series(struct metrics *metrics, struct buf *out);

/* Takes such a text as the other half's part in @metrics. 0, or -EBADMSG. */
int wire_take_series(struct metrics *metrics, struct buf *body);

#endif
