/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config.h"
#include "agent/probe/probe_args.h"
#include "agent/probe/probe_file.h"
#include "agent/probe/user_places.h"
#include "base/cleanup.h"
#include "base/vec.h"

void probe_set_free(struct probe_set *set)
{
	for (uint32_t i = 0; set && i < set->count; i++) {
		free(set->list[i].target);
		free(set->list[i].label);
	}
	free(set ? set->list : NULL);
	free(set);
}

int probe_set_add(struct probe_set *set, const struct probe *probe)
{
	struct probe *p;

	if (vec_reach(&set->list, &set->cap, set->count))
		return -ENOMEM;
	p = &set->list[set->count];
	*p = *probe;
	p->target = strdup(probe->target);
	p->label = strdup(probe->label);
	set->count++;
	return p->target && p->label ? 0 : -ENOMEM;
}

int probe_find_arguments(const char *text, const struct probe_text *t, const char *arguments, struct probe *probe,
			 struct agent_error *err)
{
	for (uint32_t i = 0; i < t->arg_cnt; i++) {
		struct probe_arg *arg = &probe->args.list[i];
		int error = arguments ? probe_arg_of_note(arguments, t->args[i], arg) : probe_arg_of_call(t->args[i], arg);

		if (error) {
			snprintf(err->message, sizeof(err->message), "'%.200s': %s (%.100s)", text,
				 error == -ENOENT ? arguments ? "the event has not so many arguments"
							      : "no register has that argument"
						  : "that argument is no number in a register or on the stack",
				 arguments ? arguments : "by the rules of calls");
			return -EINVAL;
		}
		probe->arg_numbers[i] = t->args[i];
	}
	probe->args.count = t->arg_cnt;
	return 0;
}

void probe_places_fini(struct probe_places *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->list[i].name);
	free(p->list);
}

void probe_places_add(struct probe_places *p, uint64_t addr, const char *name, struct probe_found **ret)
{
	*ret = NULL;
	for (size_t i = 0; i < p->count; i++)
		if (p->list[i].addr == addr)
			return;
	p->matched++;
	if (p->count == PROBES_A_PATTERN || p->no_memory)
		return;
	if (vec_reach(&p->list, &p->cap, p->count)) {
		p->no_memory = true;
		return;
	}
	p->list[p->count] = (struct probe_found){ .addr = addr, .name = strdup(name) };
	p->no_memory = !p->list[p->count].name;
	*ret = &p->list[p->count++];
}

static int find(const char *text, struct probe_set *set, struct agent_error *err)
{
	AUTO_FREE struct probe_text *t = malloc(sizeof(*t));
	char path[PATH_MAX];
	int error;

	if (!t)
		return -ENOMEM;
	error = probe_text_parse(text, t, err);
	if (error)
		return error;
	if (!t->file[0])
		return probe_kernel_places(text, t, NULL, set, err);
	error = probe_file_find(t->file, path, err);
	return error ? error : probe_user_places(text, t, path, set, err);
}

int probes_find(const char *const *texts, size_t count, struct probe_set **ret, struct agent_error *err)
{
	struct probe_set *set = calloc(1, sizeof(*set));
	int error = set ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !error; i++)
		error = find(texts[i], set, err);
	if (!error && set->count > PROBES_OF_ALL) {
		snprintf(err->message, sizeof(err->message), "%u probes are too many: %d at most", set->count,
			 PROBES_OF_ALL);
		error = -E2BIG;
	}
	if (error) {
		probe_set_free(set);
		return error;
	}
	*ret = set;
	return 0;
}
