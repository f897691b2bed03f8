/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `hearth bench` among themselves. One thread. */
#ifndef HEARTH_CMD_BENCH_BENCH_H
#define HEARTH_CMD_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;

struct bench_figure {
	char name[96];
	const char *unit;
	double ours;	    /* NAN: @why not */
	const char *beside; /* whose @other is; NULL: nobody does this */
	double other;	    /* NAN: @why not */
	const char *why;
};

enum { BENCH_DEPTH = 30 /* calls of the load */ };

#define BENCH_LOAD "hearth-load" /* its threads' name */

/* --- bench_load.c --- */

/* A process that does nothing but run BENCH_DEPTH calls deep on @cpu; it ends with us, or when it is killed. -1: none. */
pid_t bench_load_start(unsigned cpu);

/* --- bench_run.c: programs, run to be measured --- */

struct bench_run {
	pid_t pid;
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	/* once it has ended */
	uint64_t wall_ns, cpu_ns; /* cpu_ns: with the children that it waited for */
	uint64_t memory_bytes; /* the most that it and its children had, as bench_look() saw them: shared pages by shares */
	int status;	       /* as of waitpid(2) */
};

/* Starts @argv (NULL behind the last; argv[0] is looked for in PATH, "hearth": this program) with standard input from @in
 * (NULL: nothing), output to @out and messages to @messages (NULL: nowhere). 0 or -errno. */
int bench_start(struct bench_run *r, const char *const *argv, const char *in, const char *out, const char *messages);

/* Adds to what is known of its memory: to be called now and then. */
void bench_look(struct bench_run *r);

/* Waits for the end of @r and watches its memory. 0, or -EPROTO: its exit status was not 0. */
int bench_wait(struct bench_run *r);

/* Ends it as Ctrl-C does, and waits. Returns the same as bench_wait(). */
int bench_end(struct bench_run *r);

/* CPU time that @r, which runs, and its children that run, have used so far. */
uint64_t bench_cpu_ns(const struct bench_run *r);

/* Whether there is a program @name in PATH. */
bool bench_has(const char *name);

void bench_sleep(uint64_t ns);

/* --- bench_print.c --- */

/* Appends a table; @cpus were kept busy, @others: the load average before. */
void bench_print_table(const struct bench_figure *figures, size_t count, size_t cpus, double others, struct buf *out);
void bench_print_json(const struct bench_figure *figures, size_t count, struct buf *out);

/* --- bench_ingest.c --- */

enum { BENCH_QUESTIONS = 9 };

struct bench_ingested {
	uint64_t requests, samples, cpu_ns; /* taken, and the receiver's CPU time for them */
	double bytes_a_sample;		    /* in the store's file */
	double graph_ms[BENCH_QUESTIONS];   /* from question to answer */
};

/* Feeds a receiver whose store is the new folder @store with the file @capture for some seconds; what it says goes to the
 * file @messages. 0 or -errno. */
int bench_ingest_run(const char *store, const char *messages, const char *capture, struct bench_ingested *ret);

#endif
