/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler tells its kernel half and reads of it: sums over CPUs and levels, keys and sequence numbers of the caches,
 * filters. The maps are made up here, so that this needs no privileges. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/kernel/sampler_filter.h"
#include "agent/kernel/sampler_state.h"
#include "agent/proc/cgroup_places.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

enum { MAPS = 16, ENTRIES = 64, CPUS = 3, LEVELS = 2 };

/* --- the kernel's side --- */

struct bpf_map {
	uint32_t key_bytes, value_bytes, max_entries;
	uint32_t count;
	struct {
		uint8_t key[32];
		const void *value; /* of an array: borrowed; else a copy */
		uint8_t copy[sizeof(struct unwind_block)];
	} entry[ENTRIES];
};

static struct bpf_map maps[MAPS];

int bpf_map__fd(const struct bpf_map *map)
{
	return (int)(map - maps);
}

int bpf_map__set_max_entries(struct bpf_map *map, __u32 max_entries)
{
	map->max_entries = max_entries;
	return 0;
}

int bpf_program__set_autoload(struct bpf_program *program, bool autoload)
{
	*(bool *)program = autoload;
	return 0;
}

static int find(const struct bpf_map *map, const void *key)
{
	for (uint32_t i = 0; i < map->count; i++)
		if (!memcmp(map->entry[i].key, key, map->key_bytes))
			return (int)i;
	errno = ENOENT;
	return -1;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	int i = find(&maps[fd], key);

	if (i < 0)
		return -1;
	memcpy(value, maps[fd].entry[i].value, maps[fd].value_bytes);
	return 0;
}

static int put(struct bpf_map *map, const void *key, const void *value)
{
	int i = find(map, key);

	if (i < 0 && map->count == ENTRIES) {
		errno = E2BIG;
		return -1;
	}
	i = i < 0 ? (int)map->count++ : i;
	memcpy(map->entry[i].key, key, map->key_bytes);
	map->entry[i].value = value;
	return 0;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	struct bpf_map *map = &maps[fd];
	int i;

	assert_int_equal(flags, BPF_ANY);
	assert_true(map->value_bytes && map->value_bytes <= sizeof(map->entry[0].copy));
	if (put(map, key, value))
		return -1;
	i = find(map, key);
	map->entry[i].value = memcpy(map->entry[i].copy, value, map->value_bytes);
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	struct bpf_map *map = &maps[fd];
	int i = find(map, key);

	if (i < 0)
		return -1;
	map->count--;
	if ((uint32_t)i < map->count) {
		map->entry[i] = map->entry[map->count];
		if (map->entry[i].value == map->entry[map->count].copy)
			map->entry[i].value = map->entry[i].copy;
	}
	return 0;
}

/* --- a sampler --- */

static struct sampler_bpf skel;
static struct sampler_bpf__rodata rodata;
static struct sampler sampler;
static bool follows_new, follows_freed;

static struct bpf_map *make_map(uint32_t key_bytes, uint32_t value_bytes)
{
	static uint32_t used;
	struct bpf_map *map = &maps[used++ % MAPS];

	*map = (struct bpf_map){ .key_bytes = key_bytes, .value_bytes = value_bytes };
	return map;
}

static int setup(void **state)
{
	(void)state;
	memset(&rodata, 0, sizeof(rodata));
	sampler = (struct sampler){ .skel = &skel, .possible_cpus = CPUS, .levels = LEVELS };
	skel.rodata = (void *)&rodata;
	skel.progs.on_new_task = (struct bpf_program *)&follows_new;
	skel.progs.on_free_task = (struct bpf_program *)&follows_freed;
	skel.maps.cpu_states = make_map(4, sizeof(struct cpu_state));
	skel.maps.levels = make_map(4, sizeof(struct level_state));
	skel.maps.procs = make_map(4, sizeof(struct proc_value));
	skel.maps.mappings = make_map(sizeof(struct mapping_key), sizeof(struct mapping_value));
	skel.maps.unwind_blocks = make_map(sizeof(struct block_key), sizeof(struct unwind_block));
	skel.maps.filter_pids = make_map(8, 8);
	skel.maps.filter_tids = make_map(4, 1);
	return 0;
}

static void sums_are_over_all_cpus_and_levels(void **state)
{
	static struct cpu_state cpu[CPUS * LEVELS];
	static struct level_state level[CPUS];
	uint64_t counters[COUNTER_MAX];
	struct kind_counts counts;

	(void)state;
	for (uint32_t slot = 0; slot < CPUS * LEVELS; slot++) {
		cpu[slot].counters[COUNTER_MAX - 1] = 1u << slot;
		cpu[slot].taken[1] = 10u << slot;
		cpu[slot].taken_value[1] = 1000u << slot;
		for (int i = 0; i < KERNEL_LOSS_MAX; i++) {
			cpu[slot].lost[i][1] = i == KERNEL_LOSS_LEVEL ? 0 : (uint64_t)i << slot;
			cpu[slot].lost_value[i][1] = i == KERNEL_LOSS_LEVEL ? 0 : 100ull * (unsigned)i << slot;
		}
		put(skel.maps.cpu_states, &slot, &cpu[slot]);
	}
	for (uint32_t i = 0; i < CPUS; i++) {
		level[i].refused[1] = 5u << i;
		level[i].refused_value[1] = 50u << i;
		put(skel.maps.levels, &i, &level[i]);
	}
	sampler_counters(&sampler, counters);
	assert_int_equal(counters[COUNTER_MAX - 1], 63);
	assert_int_equal(counters[0], 0);
	sampler_kind_counters(&sampler, 1, &counts);
	/* who was refused a level was taken, too, and is told nowhere else */
	assert_int_equal(counts.taken.samples, 10 * 63 + 5 * 7);
	assert_int_equal(counts.taken.value, 1000 * 63 + 50 * 7);
	for (int i = 0; i < KERNEL_LOSS_MAX; i++) {
		assert_int_equal(counts.lost[i].samples, i == KERNEL_LOSS_LEVEL ? 5 * 7 : i * 63);
		assert_int_equal(counts.lost[i].value, i == KERNEL_LOSS_LEVEL ? 50 * 7 : 100 * i * 63);
	}
	sampler_kind_counters(&sampler, 0, &counts);
	assert_int_equal(counts.taken.samples, 0);
}

static void each_entry_has_its_key_and_another_number(void **state)
{
	struct proc_value proc = { .pid = 7 }, proc_there;
	struct mapping_value mapping = { .asid = 3, .shift = 20, .piece = 99 }, mapping_there;
	const struct mapping_key mapping_key = { .asid = 3, .shift = 20, .piece = 99 };
	static struct unwind_block block, block_there;
	struct block_key key = { .file = 5, .block = 6 };
	uint32_t pid = 7;

	(void)state;
	assert_int_equal(sampler_set_proc(&sampler, &proc), 0);
	assert_int_equal(sampler_set_mapping(&sampler, &mapping), 0);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skel.maps.procs), &pid, &proc_there), 0);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skel.maps.mappings), &mapping_key, &mapping_there), 0);
	assert_true(proc_there.seq_head && proc_there.seq_head == proc_there.seq_tail);
	assert_true(mapping_there.seq_head > proc_there.seq_head && mapping_there.seq_head == mapping_there.seq_tail);
	assert_int_equal(sampler_forget_proc(&sampler, 7), 0);
	assert_int_equal(sampler_forget_proc(&sampler, 7), -ENOENT);
	/* of a block all parts go, and those of another stay */
	for (uint32_t part = 0; part < 3; part++) {
		block = (struct unwind_block){ .file = 5, .block = 6, .part = part };
		assert_int_equal(sampler_set_block(&sampler, &block), 0);
	}
	block = (struct unwind_block){ .file = 5, .block = 7 };
	assert_int_equal(sampler_set_block(&sampler, &block), 0);
	key.part = 2;
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skel.maps.unwind_blocks), &key, &block_there), 0);
	assert_true(block_there.seq_head == block_there.seq_tail && block_there.seq_head == block.seq_head - 1);
	sampler_forget_block(&sampler, 5, 6);
	assert_int_equal(skel.maps.unwind_blocks->count, 1);
	sampler_forget_block(&sampler, 5, 7);
	assert_int_equal(skel.maps.unwind_blocks->count, 0);
}

static void chosen_processes_leave_unless_they_are_followed(void **state)
{
	const uint32_t pids[] = { 5, 6 }, tids[] = { 8 };
	const struct agent_filter filter = { .pids = pids, .pid_count = 2, .tids = tids, .tid_count = 1 };
	struct agent_error err;
	uint64_t since = 1, key;

	(void)state;
	for (int is_told = 0; is_told < 2; is_told++) { /* pids of another namespace have keys of their own */
		setup(NULL);
		rodata.cfg_pid_ns = is_told ? 77 : 0;
		sampler_filter_configure(&skel, &filter);
		assert_true(rodata.cfg_filter_pids && rodata.cfg_filter_tids && follows_new && follows_freed);
		assert_int_equal(skel.maps.filter_pids->max_entries, 0); /* as it is */
		assert_int_equal(skel.maps.filter_tids->max_entries, 1);
		assert_int_equal(sampler_filter_fill(&skel, &filter, &err), 0);
		assert_int_equal(skel.maps.filter_tids->count, 1);
		key = sampler_filter_key(&skel, 5);
		assert_int_equal(key, is_told ? 5 | FILTER_PID_TOLD : 5);
		assert_true(sampler_filter_has(&sampler, 5) && sampler_filter_has(&sampler, 6) &&
			    !sampler_filter_has(&sampler, 8));
		sampler_filter_remove(&sampler, 5);
		assert_true(!sampler_filter_has(&sampler, 5) && sampler_filter_has(&sampler, 6));
		assert_int_equal(sampler_filter_add(&sampler, 9), 0);
		assert_true(sampler_filter_has(&sampler, 9));
		/* a child that the kernel put there goes with it alone: the number may be the next one's */
		key = sampler_filter_key(&skel, 10);
		assert_int_equal(bpf_map_update_elem(bpf_map__fd(skel.maps.filter_pids), &key, &since, BPF_ANY), 0);
		sampler_filter_remove(&sampler, 10);
		assert_true(sampler_filter_has(&sampler, 10));
	}
}

static void filters_are_constants_of_the_program(void **state)
{
	static const char *const groups[] = { "a", "b" }, *const containers[] = { "c" }, *const comms[] = { "x*" };
	const uint32_t uids[] = { 1000, 1001 };
	struct agent_filter filter = { .cgroups = groups,
				       .cgroup_count = 2,
				       .containers = containers,
				       .container_count = 1,
				       .uids = uids,
				       .uid_count = 2,
				       .comms = comms,
				       .comm_count = 1,
				       .min_age_ns = 12345,
				       .no_kernel = true,
				       .idle = true };

	(void)state;
	sampler_filter_configure(&skel, &filter);
	assert_int_equal(rodata.cfg_cgroup_cnt, 3);
	assert_int_equal(rodata.cfg_uid_cnt, 2);
	assert_true(rodata.cfg_uids[0] == 1000 && rodata.cfg_uids[1] == 1001);
	assert_true(rodata.cfg_filter_comm && rodata.cfg_no_kernel && rodata.cfg_idle);
	assert_int_equal(rodata.cfg_min_age_ns, 12345);
	assert_true(!rodata.cfg_filter_pids && !rodata.cfg_filter_tids && !follows_new && !follows_freed);
	assert_int_equal(skel.maps.filter_pids->max_entries, 1); /* nobody is in it */
	assert_false(sampler_filter_has(&sampler, 1));
	filter.follow_pids_only = true;
	sampler_filter_configure(&skel, &filter);
	assert_true(rodata.cfg_filter_pids && follows_new && follows_freed);
	filter.no_inherit = true;
	sampler_filter_configure(&skel, &filter);
	assert_true(rodata.cfg_filter_pids && !follows_new && !follows_freed);
}

static void refuses(const struct agent_filter *filter, const char *option)
{
	struct agent_error err = { "" };
	const char *got = "";

	assert_int_equal(sampler_filter_check(filter, &got, &err), option[0] ? -EINVAL : 0);
	assert_string_equal(got, option);
	assert_int_equal(!err.message[0], !option[0]);
}

/* --- control groups --- */

static int places_open, place_error;

int cgroup_place_find(const char *name, struct cgroup_place *ret, struct agent_error *err)
{
	(void)err;
	if (place_error)
		return place_error;
	*ret = (struct cgroup_place){ .fd = name[0] == '1' ? -1 : 100 + name[0] };
	places_open++;
	return 0;
}

int cgroup_place_find_container(const char *name, struct cgroup_place *ret, struct agent_error *err)
{
	int error = cgroup_place_find(name, ret, err);

	ret->fd += 100;
	return error;
}

void cgroup_place_fini(struct cgroup_place *place)
{
	(void)place;
	places_open--;
}

static void groups_stand_in_the_order_of_their_numbers(void **state)
{
	static const char *const groups[] = { "a", "1" }, *const containers[] = { "c" };
	const struct agent_filter filter = {
		.cgroups = groups, .cgroup_count = 2, .containers = containers, .container_count = 1
	};
	struct agent_error err = { "" };
	uint32_t place = 0;
	int fd = 0;

	(void)state;
	skel.maps.filter_cgroups = make_map(4, 4);
	skel.maps.filter_v1_groups = make_map(4, sizeof(((struct cgroup_place *)0)->v1));
	assert_int_equal(sampler_filter_fill(&skel, &filter, &err), 0);
	assert_int_equal(places_open, 0);
	assert_int_equal(skel.maps.filter_cgroups->count, 2);
	assert_int_equal(skel.maps.filter_v1_groups->count, 1);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skel.maps.filter_cgroups), &place, &fd), 0);
	assert_int_equal(fd, 100 + 'a');
	place = 2;
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skel.maps.filter_cgroups), &place, &fd), 0);
	assert_int_equal(fd, 200 + 'c');
	assert_int_equal(*(const uint32_t *)(const void *)skel.maps.filter_v1_groups->entry[0].key, 1);
	skel.maps.filter_cgroups->count = ENTRIES; /* is full, of others */
	memset(skel.maps.filter_cgroups->entry, 0xff, sizeof(skel.maps.filter_cgroups->entry));
	assert_int_equal(sampler_filter_fill(&skel, &filter, &err), -E2BIG);
	assert_non_null(strstr(err.message, "cannot filter by control groups: "));
	assert_int_equal(places_open, 0);
	place_error = -ENOENT;
	assert_int_equal(sampler_filter_fill(&skel, &filter, &err), -ENOENT);
	place_error = 0;
}

static void too_much_is_refused(void **state)
{
	static const char *const nothing[] = { "" }, *const fifteen_long[] = { "123456789012345" };
	static uint32_t uids[FILTER_UIDS + 1];
	static const char *groups[FILTER_CGROUPS];

	(void)state;
	refuses(&(struct agent_filter){ 0 }, "");
	refuses(&(struct agent_filter){ .uids = uids, .uid_count = FILTER_UIDS }, "");
	refuses(&(struct agent_filter){ .uids = uids, .uid_count = FILTER_UIDS + 1 }, "uid");
	refuses(
		&(struct agent_filter){
			.cgroups = groups, .cgroup_count = 1, .containers = groups, .container_count = FILTER_CGROUPS - 1 },
		"");
	refuses(
		&(struct agent_filter){
			.cgroups = groups, .cgroup_count = 1, .containers = groups, .container_count = FILTER_CGROUPS },
		"cgroup");
	refuses(&(struct agent_filter){ .containers = groups, .container_count = FILTER_CGROUPS + 1 }, "container");
	refuses(&(struct agent_filter){ .comms = fifteen_long, .comm_count = 1 }, "");
	refuses(&(struct agent_filter){ .comms = nothing, .comm_count = 1 }, "comm");
	refuses(&(struct agent_filter){ .no_kernel = true }, "");
	refuses(&(struct agent_filter){ .kernel_only = true }, "");
	refuses(&(struct agent_filter){ .no_kernel = true, .kernel_only = true }, "kernel");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(sums_are_over_all_cpus_and_levels, setup),
		cmocka_unit_test_setup(each_entry_has_its_key_and_another_number, setup),
		cmocka_unit_test_setup(chosen_processes_leave_unless_they_are_followed, setup),
		cmocka_unit_test_setup(filters_are_constants_of_the_program, setup),
		cmocka_unit_test_setup(groups_stand_in_the_order_of_their_numbers, setup),
		cmocka_unit_test(too_much_is_refused),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
