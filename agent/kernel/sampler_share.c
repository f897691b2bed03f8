/* SPDX-License-Identifier: Apache-2.0 */
/* The things that other BPF objects share with the sampler's: maps and options of the same names; and what is done for each.
 */
#include <bpf/btf.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "agent/kernel/kernel_types.h"
#include "agent/kernel/sampler_state.h"
#include "agent/kernel/verifier_log.h"
#include "base/memory.h"

int sampler_share_maps(const struct sampler *s, struct bpf_object *object)
{
	struct bpf_map *map, *ours;
	int error = 0;

	bpf_object__for_each_map(map, object)
	{
		const char *name = bpf_map__name(map);

		ours = bpf_map__is_internal(map) || !strcmp(name, "programs")
			       ? NULL
			       : bpf_object__find_map_by_name(s->skel->obj, name);
		if (!error && ours)
			error = bpf_map__reuse_fd(map, bpf_map__fd(ours));
	}
	return error;
}

int sampler_load_object(const struct sampler *s, struct bpf_object *object, struct bpf_object_skeleton *skeleton)
{
	struct verifier_log *log = NULL;
	int error = s->log_level ? verifier_log_new(object, s->log_level, &log) : 0;

	if (error)
		return error;
	kernel_types_give(object);
	error = skeleton ? bpf_object__load_skeleton(skeleton) : bpf_object__load(object);
	if (skeleton)
		memory_leave_constants(skeleton->data, skeleton->data_sz);
	if (log)
		verifier_log_print(log);
	verifier_log_free(log);
	return error;
}

static int set_program(const struct bpf_map *programs, uint32_t place, const struct bpf_program *program)
{
	int fd = bpf_program__fd(program);

	return bpf_map_update_elem(bpf_map__fd(programs), &place, &fd, BPF_ANY) ? -errno : 0;
}

int sampler_set_called(const struct bpf_map *programs, const struct bpf_program *walk, const struct bpf_program *send)
{
	int error = set_program(programs, PROGRAM_WALK, walk);

	return error ? error : set_program(programs, PROGRAM_SEND, send);
}

int sampler_fill_draws(const struct sampler *s, const struct bpf_map *draws, uint64_t mean)
{
	uint32_t value[16] = { 0 }, random;

	if (bpf_map__value_size(draws) > sizeof(value))
		return -E2BIG;
	for (uint32_t cpu = 0; cpu < s->possible_cpus; cpu++) {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -errno;
		value[0] = (uint32_t)(random * mean >> 32);
		value[1] = (uint32_t)mean - value[0];
		if (bpf_map_update_elem(bpf_map__fd(draws), &cpu, value, BPF_ANY))
			return -errno;
	}
	return 0;
}

uint64_t sampler_program_missed(const struct bpf_program *program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) ? 0 : info.recursion_misses;
}

/* The options of an object: where they lie, and their list. */
struct options {
	const struct btf *btf;
	const struct btf_type *section;
	uint8_t *bytes;
	size_t len;
};

static int open_options(struct bpf_object *object, struct options *ret)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	int id;

	ret->btf = bpf_object__btf(object);
	id = ret->btf ? btf__find_by_name_kind(ret->btf, ".rodata", BTF_KIND_DATASEC) : -ENOENT;
	if (id < 0 || !map)
		return -ENOENT;
	ret->section = btf__type_by_id(ret->btf, (uint32_t)id);
	ret->bytes = (uint8_t *)bpf_map__initial_value(map, &ret->len);
	return ret->bytes ? 0 : -ENOENT;
}

static const char *option_name(const struct options *o, const struct btf_var_secinfo *place)
{
	return btf__name_by_offset(o->btf, btf__type_by_id(o->btf, place->type)->name_off);
}

static const struct btf_var_secinfo *find_option(const struct options *o, const char *name)
{
	const struct btf_var_secinfo *places = btf_var_secinfos(o->section);

	for (uint32_t i = 0; i < btf_vlen(o->section); i++)
		if (!strcmp(option_name(o, &places[i]), name))
			return &places[i];
	return NULL;
}

int sampler_share_options(const struct sampler *s, struct bpf_object *object)
{
	const struct btf_var_secinfo *places;
	struct options from, to;
	int error = open_options(s->skel->obj, &from);

	if (!error)
		error = open_options(object, &to);
	if (error)
		return error;
	places = btf_var_secinfos(to.section);
	for (uint32_t i = 0; i < btf_vlen(to.section); i++) {
		const char *name = option_name(&to, &places[i]);
		const struct btf_var_secinfo *ours = strncmp(name, "cfg_", 4) ? NULL : find_option(&from, name);

		if (!ours)
			continue;
		if (ours->size != places[i].size || ours->offset + ours->size > from.len ||
		    places[i].offset + places[i].size > to.len)
			return -EINVAL;
		memcpy(to.bytes + places[i].offset, from.bytes + ours->offset, ours->size);
	}
	return 0;
}

int sampler_set_option(struct bpf_object *object, const char *name, bool value)
{
	const struct btf_var_secinfo *place;
	struct options o;
	int error = open_options(object, &o);

	if (error)
		return error;
	place = find_option(&o, name);
	if (!place || place->size != sizeof(value) || place->offset + place->size > o.len)
		return -ENOENT;
	memcpy(o.bytes + place->offset, &value, sizeof(value));
	return 0;
}

void sampler_chains_add_caller(struct sampler *s, const struct chain_caller *caller)
{
	if (s->caller_cnt < MAX_CALLERS)
		s->callers[s->caller_cnt++] = *caller;
}
