/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's functions by its own list. Which of them it lets be probed it says when that is tried. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config.h"
#include "agent/probe/user_places.h"
#include "base/cleanup.h"
#include "base/text/nearest.h"

enum { NEAR_BYTES = 128 };

struct search {
	const struct probe_text *text;
	struct probe_places found;
	struct nearest nearest;
	char near[NEAR_BYTES];
};

static void search_fini(struct search *s)
{
	probe_places_fini(&s->found);
}

/* Code that no pattern means: parts of functions, what stands before them, BPF programs. */
static bool is_part(const char *name, const char *module)
{
	return strstr(name, ".cold") || !strncmp(name, "__pfx_", 6) || !strncmp(name, "__cfi_", 6) ||
	       strstr(module, "[bpf]");
}

static bool is_known(const struct probe_places *found, const char *name)
{
	for (size_t i = 0; i < found->count; i++)
		if (!strcmp(found->list[i].name, name))
			return true;
	return false;
}

static void look_at(struct search *s, const char *name, const char *module, size_t number)
{
	struct probe_found *new;

	if (probe_name_matches(s->text->name, name)) {
		if (!probe_is_pattern(s->text->name) || (!is_part(name, module) && !is_known(&s->found, name)))
			probe_places_add(&s->found, number, name, &new);
		return;
	}
	s->nearest.best = NULL;
	if (strlen(name) < sizeof(s->near))
		nearest_offer(&s->nearest, name);
	if (s->nearest.best)
		snprintf(s->near, sizeof(s->near), "%s", name);
}

/* A line is "ADDRESS TYPE NAME\t[MODULE]". Functions have type t or w. */
static int search(const char *path, struct search *s)
{
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	AUTO_FREE char *line = NULL;
	size_t cap = 0, number = 0;

	if (!f)
		return -errno;
	while (getline(&line, &cap, f) > 0) {
		char *rest = line, *address = strsep(&rest, " "), *type = strsep(&rest, " "), *name = strsep(&rest, "\t\n");

		number++;
		if (address && type && name && strchr("tTwW", type[0]))
			look_at(s, name, rest ? rest : "", number);
		/* A pattern may mean two functions of one name, a name only the first. */
		if (s->found.matched && !probe_is_pattern(s->text->name))
			break;
	}
	return 0;
}

static int add_all(const char *text, const struct search *s, struct probe_set *set, struct agent_error *err)
{
	const struct probe_text *t = s->text;
	char label[PROBE_NAME_BYTES + 64];
	int error = s->found.no_memory ? -ENOMEM : 0;

	if (s->found.matched > PROBES_A_PATTERN) {
		snprintf(err->message, sizeof(err->message),
			 "'%.200s' means %zu functions of the kernel: %d at most; narrow the pattern", text,
			 s->found.matched, PROBES_A_PATTERN);
		return -E2BIG;
	}
	for (size_t i = 0; i < s->found.count && !error; i++) {
		struct probe probe = { .type = t->type,
				       .target = s->found.list[i].name,
				       .offset = t->offset,
				       .label = label,
				       .is_of_pattern = probe_is_pattern(t->name) };

		snprintf(label, sizeof(label), t->offset ? "%s:%s+%llu" : "%s:%s", probe_types[t->type].word, probe.target,
			 (unsigned long long)t->offset);
		error = probe_find_arguments(text, t, NULL, &probe, err);
		if (!error)
			error = probe_set_add(set, &probe);
	}
	return error;
}

int probe_kernel_places(const char *text, const struct probe_text *t, const char *symbols, struct probe_set *set,
			struct agent_error *err)
{
	AUTO(search_fini) struct search s = { .text = t, .nearest = nearest_to(t->name) };
	const char *path = symbols ? symbols : "/proc/kallsyms";
	int error = search(path, &s);

	if (error) {
		snprintf(err->message, sizeof(err->message), "the kernel's functions cannot be listed: %s: %s", path,
			 strerror(-error));
		return error;
	}
	if (!s.found.matched) {
		snprintf(err->message, sizeof(err->message), "there is no function '%.200s' in this kernel%s%s%s", t->name,
			 s.near[0] ? " (did you mean " : "", s.near, s.near[0] ? "?)" : "");
		return -ENOENT;
	}
	return add_all(text, &s, set, err);
}
