/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler's state, for its own files, agent/kernel/sampler*.c, and for the kinds, which turn it on. */
#ifndef HEARTH_AGENT_KERNEL_SAMPLER_STATE_H
#define HEARTH_AGENT_KERNEL_SAMPLER_STATE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <pthread.h>

#include "agent/kernel/perf_event.h"
#include "agent/kernel/sampler.h"
#include "bpf/sampler.skel.h"

enum { MAX_RINGS = 64 };

enum { MAX_CALLERS = 8 };

struct allocs;
struct memory;
struct probes;
struct waits;

struct cpu_event {
	uint32_t cpu;
	int fd;			/* -1: none is needed */
	uint64_t since_ns;	/* enabled since then; 0: not */
	uint64_t idle_since_ns; /* how long the CPU had been idle then ... */
	uint64_t idle_ns;	/* ... and when that was read last */
};

struct passed {
	uint64_t ns, idle_ns; /* time, and idle time, of CPUs while their events were enabled */
	uint64_t events;      /* what they have counted */
};

struct sampled_kind {
	const struct sampled *what; /* borrowed */
	struct cpu_event *events;
	uint32_t event_cnt;
	int fd;		      /* an event for all CPUs; -1: none, or not on */
	struct passed passed; /* the same of events that are closed or disabled */
};

/* A ring that the kernel writes to, and how much was found in it. */
struct sample_ring {
	struct sampler *sampler;
	struct ring_buffer *reader;
	int fd;
	uint64_t bytes;
	uint64_t drained; /* the last time */
	uint64_t most;	  /* at once, in this interval */
	unsigned calm;	  /* intervals with little in it, one after the other */
};

/* The programs that collect a runtime's chains. */
struct chain_programs {
	bool is_met;
	int error;		   /* it is not loaded, for this reason; -EOPNOTSUPP: it is not wanted */
	struct bpf_object *object; /* for the first caller, of the maps that are its own */
};

/* Programs that take samples and call those that collect chains, which must be of their type. */
struct chain_caller {
	enum bpf_prog_type type;
	enum bpf_attach_type attach_type; /* 0: it does not matter */
	int programs;			  /* its table of programs for tail calls */
	bool is_preempted;		  /* cfg_preempted */
};

struct sampler {
	struct sampler_bpf *skel;
	struct sample_ring rings[MAX_RINGS];
	uint32_t ring_cnt;
	uint64_t ring_bytes, most_ring_bytes; /* of one, to begin with and at most */
	int rings_fd;			      /* readable when one of them is */
	pthread_t placer;		      /* puts the first rings in place ... */
	bool is_placing;		      /* ... and has to be waited for; until then this is its: */
	int place_error;		      /* 0 or -errno */
	uint32_t possible_cpus;
	uint32_t levels; /* programs of the session that may interrupt each other on a CPU (bpf/levels.bpf.h) */
	uint32_t pid_ns; /* the pid namespace whose pids are told; 0: the first one */
	struct sampled_kind kinds[MAX_KINDS];
	uint32_t kind_cnt;
	bool enabled, tail_form;
	struct chain_programs chains[MAX_CHAINS]; /* by the number of the runtime, or CONTEXT_ID */
	struct chain_caller callers[MAX_CALLERS];
	uint32_t caller_cnt;
	unsigned log_level;    /* of the verifier's word on them */
	struct waits *waits;   /* time off the CPUs (sampler_waits.h); NULL: not wanted, or not possible here */
	struct probes *probes; /* sampler_probes.h; NULL: there are none */
	struct allocs *allocs; /* sampler_allocs.h; NULL: not wanted */
	struct memory *memory; /* sampler_memory.h; NULL: not wanted, or not possible here */
	uint32_t noted_spans_id, noted_spans_refused; /* ids of the map in use, and of one that is none; 0: there is none */
	uint64_t malformed;
	uint32_t seq;
	void (*fn)(void *arg, const struct record *record); /* during sampler_drain */
	void *arg;
};

/* How many elements the maps have of which each CPU and level has one. */
static inline uint32_t sampler_slots(const struct sampler *s)
{
	return s->possible_cpus * s->levels;
}

/* Sets the program's type, between open and load. */
void sampler_events_configure(struct sampler *s);
/* Has kinds load programs of their own. 0 or -errno with @err filled. */
int sampler_events_load(struct sampler *s, struct agent_error *err);
/* Does a kind take samples by the sampler's own program? */
bool sampler_events_use_entry(const struct sampler *s);
void sampler_events_free(struct sampler *s);

/* Has @object share the sampler's maps of the same name, but for the table of programs, which is of one type of programs.
 * Its other maps stay as they are. 0 or -errno. */
int sampler_share_maps(const struct sampler *s, struct bpf_object *object);

/* Loads @object, by its @skeleton if it has one, and prints the verifier's log if that is wanted. The bytes that a skeleton
 * was made of are not read again. 0 or -errno. */
int sampler_load_object(const struct sampler *s, struct bpf_object *object, struct bpf_object_skeleton *skeleton);

/* Makes @walk and @send the programs that those of the tail form call, by their table @programs. 0 or -errno. */
int sampler_set_called(const struct bpf_map *programs, const struct bpf_program *walk, const struct bpf_program *send);

/* Lets each CPU begin somewhere in a window of @mean (bpf/draw.h): the values of @draws, one a CPU, begin with a struct draw
 * and are zero behind it. 0 or -errno. */
int sampler_fill_draws(const struct sampler *s, const struct bpf_map *draws, uint64_t mean);

/* How often the kernel left @program out, as one of its class ran on that CPU already. */
uint64_t sampler_program_missed(const struct bpf_program *program);

/* Gives the options (cfg_...) of @object, which is not loaded yet, the values of the sampler's of the same name. 0 or
 * -errno. */
int sampler_share_options(const struct sampler *s, struct bpf_object *object);

/* Gives the option @name of @object, a bool, this value. 0; -ENOENT: it has none. */
int sampler_set_option(struct bpf_object *object, const char *name, bool value);

/* Has the programs that collect chains loaded for this caller, too. */
void sampler_chains_add_caller(struct sampler *s, const struct chain_caller *caller);

/* Notes which programs that collect chains are not wanted, and frees those that were loaded. */
void sampler_chains_configure(struct sampler *s, const struct agent_config *config);
void sampler_chains_free(struct sampler *s);

/* The program that runs at each sample. */
struct bpf_program *sampler_entry(const struct sampler *s);

/* Opens an event on @cpu that runs the program, disabled. A descriptor or -errno. */
int sampler_open_event(struct sampler *s, const struct sampled_kind *k, uint32_t cpu);

/* Reads how long CPUs have been idle and notes it in their events. */
void sampler_note_idle(struct sampler *s);

#endif
