/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the programs that collect runtimes' frames (bpf/runtime/), each alone, as the agent does; those that need bpf_loop
 * only where the kernel has it. usage: chains OBJECT.bpf.o... Exit status 1 when the kernel refuses one, whose log ends the
 * output.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES = 1 << 24, SHOWN = 2000 };

static bool is_tail(const char *name)
{
	const char *end = strrchr(name, '_');

	return end && !strcmp(end, "_tail");
}

/* Gives the option cfg_task_btf of @object, if it has one, this value; as agent/kernel/sampler.c does. */
static void set_task_btf(struct bpf_object *object, bool value)
{
	const struct btf *btf = bpf_object__btf(object);
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *section = id > 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	size_t len = 0;
	char *bytes = section && map ? (char *)bpf_map__initial_value(map, &len) : NULL;

	for (unsigned i = 0; bytes && i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *place = btf_var_secinfos(section) + i;

		if (place->offset < len &&
		    !strcmp(btf__name_by_offset(btf, btf__type_by_id(btf, place->type)->name_off), "cfg_task_btf"))
			bytes[place->offset] = value;
	}
}

/* Loads program number @wanted of @path alone. 1: there is none; -1: it is refused. */
static int load(const char *path, int wanted, bool has_loop, char *log)
{
	struct bpf_object *object = bpf_object__open(path);
	struct bpf_program *program, *chosen = NULL;
	int i = 0, error = 0;

	bpf_object__for_each_program(program, object)
	{
		bpf_program__set_autoload(program, i == wanted);
		chosen = i++ == wanted ? program : chosen;
	}
	if (!chosen)
		return 1;
	set_task_btf(object, libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_get_current_task_btf, NULL) == 1);
	if (has_loop || is_tail(bpf_program__name(chosen))) {
		log[0] = '\0';
		bpf_program__set_log_buf(chosen, log, LOG_BYTES);
		error = bpf_object__load(object);
		printf("%s: %s\n", bpf_program__name(chosen), error ? strerror(-error) : "loaded");
		if (error)
			puts(strlen(log) > SHOWN ? log + strlen(log) - SHOWN : log);
	}
	bpf_object__close(object);
	return error ? -1 : 0;
}

static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

int main(int argc, char **argv)
{
	bool has_loop = libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1;
	char *log = malloc(LOG_BYTES);
	int status = !log;

	libbpf_set_print(print_nothing);
	for (int i = 1; log && i < argc; i++)
		for (int k = 0, result = 0; result != 1; k++) {
			result = load(argv[i], k, has_loop, log);
			status |= result < 0;
		}
	free(log);
	return status;
}
