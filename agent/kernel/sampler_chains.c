/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs that collect frames which runtimes link in their heap (bpf/runtime/), and the one that reads what threads say
 * they work on (bpf/context/). Each object is loaded when the first process that it is for is met, and shares the sampler's
 * maps and options; once for each caller, as samples of waits and of probes are taken by programs of other types.
 */
#include <errno.h>
#include <string.h>

#include "agent/kernel/kernel_types.h"
#include "agent/kernel/sampler_state.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/memory.h"
#include "bpf/context/context.skel.h"
#include "bpf/runtime/lua.skel.h"
#include "bpf/runtime/luajit.skel.h"
#include "bpf/runtime/perl.skel.h"
#include "bpf/runtime/php.skel.h"
#include "bpf/runtime/python.skel.h"
#include "bpf/runtime/ruby.skel.h"

/* X(id, name of the skeleton, what is not had without it) */
#define CHAIN_OBJECTS(X)                             \
	X(RUNTIME_PYTHON, python, "Python's frames") \
	X(RUNTIME_PHP, php, "PHP's frames")          \
	X(RUNTIME_PERL, perl, "Perl's frames")       \
	X(RUNTIME_RUBY, ruby, "Ruby's frames")       \
	X(RUNTIME_LUA, lua, "Lua's frames")          \
	X(RUNTIME_LUAJIT, luajit, "LuaJIT's frames") \
	X(CONTEXT_ID, context, "spans and labels of threads")

struct chain_object {
	const char *name; /* NULL: there is none with this number */
	const void *(*bytes)(size_t *len_ret);
	const char *what;
};

#define X(id, name, what) [id] = { #name, name##_bpf__elf_bytes, what },
static const struct chain_object objects[MAX_CHAINS] = { CHAIN_OBJECTS(X) };
#undef X

/* The maps that are the object's own have an element, or a slice, for each CPU and level; @first, if it is not NULL, has
 * them already. */
static int make_own_maps(const struct sampler *s, struct bpf_object *object, struct bpf_object *first)
{
	struct bpf_map *map;
	int error = 0;

	bpf_object__for_each_map(map, object)
	{
		const char *name = bpf_map__name(map);

		if (error || bpf_map__is_internal(map) || bpf_object__find_map_by_name(s->skel->obj, name))
			continue;
		error = first ? bpf_map__reuse_fd(map, bpf_map__fd(bpf_object__find_map_by_name(first, name)))
			      : bpf_map__set_max_entries(map, bpf_map__max_entries(map) * sampler_slots(s));
	}
	return error;
}

/* Leaves the one program of the form that the sampler has. NULL: there is none. */
static struct bpf_program *choose(const struct sampler *s, uint32_t id, struct bpf_object *object,
				  const struct chain_caller *caller)
{
	struct bpf_program *program, *wanted;
	char name[32];

	snprintf(name, sizeof(name), "chain_%s%s", objects[id].name, s->tail_form ? "_tail" : "");
	wanted = bpf_object__find_program_by_name(object, name);
	bpf_object__for_each_program(program, object)
	{
		bpf_program__set_autoload(program, program == wanted);
		(void)bpf_program__set_type(program, caller->type);
		if (caller->attach_type)
			(void)bpf_program__set_expected_attach_type(program, caller->attach_type);
	}
	return wanted;
}

/* Loads @object, which @first, if it is not NULL, has been loaded as before, and puts its program in its place among those
 * that @caller calls. */
static int load(struct sampler *s, uint32_t id, struct bpf_object *object, struct bpf_object *first,
		const struct chain_caller *caller)
{
	struct bpf_program *wanted = choose(s, id, object, caller);
	int error, fd;

	if (!wanted)
		return -ENOENT;
	error = sampler_share_options(s, object);
	if (!error && caller->is_preempted)
		error = sampler_set_option(object, "cfg_preempted", true);
	if (!error)
		error = sampler_share_maps(s, object);
	if (!error)
		error = bpf_map__reuse_fd(bpf_object__find_map_by_name(object, "programs"), caller->programs);
	if (!error)
		error = make_own_maps(s, object, first);
	if (!error)
		error = sampler_load_object(s, object, NULL);
	if (error)
		return error;
	fd = bpf_program__fd(wanted);
	return bpf_map_update_elem(caller->programs, &id, &fd, BPF_ANY) ? -errno : 0;
}

/* Opens the object of runtime @id and loads it for @caller; @first as for load(). 0 or -errno. */
static int open_and_load(struct sampler *s, uint32_t id, struct bpf_object *first, const struct chain_caller *caller,
			 struct bpf_object **ret)
{
	size_t len;
	const void *bytes = objects[id].bytes(&len);
	struct bpf_object *object = bpf_object__open_mem(bytes, len, kernel_types_opts());
	int error = object ? load(s, id, object, first, caller) : -errno;

	memory_leave_constants(bytes, len);
	if (error) {
		log_warn("cannot load the program that reads %s: %s; samples stay without these (--bpf-log-level 1 tells "
			 "more)",
			 objects[id].what, strerror(-error));
		bpf_object__close(object);
		return error;
	}
	*ret = object;
	return 0;
}

/* Has the programs of runtime @id loaded, once. 0 or -errno. */
static int meet(struct sampler *s, uint32_t id)
{
	struct chain_programs *c = &s->chains[id];

	if (c->is_met)
		return c->error;
	c->is_met = true;
	for (uint32_t i = 0; i < s->caller_cnt; i++) {
		struct bpf_object *object = NULL;
		int error = open_and_load(s, id, c->object, &s->callers[i], &object);

		if (i) {
			bpf_object__close(object); /* its caller's table holds the program */
			continue;
		}
		c->error = error;
		c->object = object;
		if (error)
			break;
	}
	return c->error;
}

int sampler_set_chain(struct sampler *s, struct chain_state *state)
{
	struct chain_key key = { .asid = state->asid, .runtime = state->runtime };
	int error = state->runtime >= MAX_CHAINS ? 0 : objects[state->runtime].name ? meet(s, state->runtime) : -EINVAL;

	if (error)
		return error;
	state->seq_head = state->seq_tail = ++s->seq;
	return bpf_map_update_elem(bpf_map__fd(s->skel->maps.chain_states), &key, state, BPF_ANY) ? -errno : 0;
}

bool sampler_chain_failed(const struct sampler *s, uint32_t id)
{
	return s->chains[id].error && s->chains[id].error != -EOPNOTSUPP;
}

void sampler_chains_configure(struct sampler *s, const struct agent_config *config)
{
	for (uint32_t id = 0; id < MAX_CHAINS; id++) {
		s->chains[id].is_met = config->runtimes_off >> id & 1;
		s->chains[id].error = s->chains[id].is_met ? -EOPNOTSUPP : 0;
	}
}

int sampler_set_program(struct sampler *s, const struct program_key *key, const struct program_value *value)
{
	return bpf_map_update_elem(bpf_map__fd(s->skel->maps.program_files), key, value, BPF_ANY) ? -errno : 0;
}

void sampler_chains_free(struct sampler *s)
{
	for (uint32_t id = 0; id < MAX_CHAINS; id++)
		bpf_object__close(s->chains[id].object);
}
