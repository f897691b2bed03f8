/* SPDX-License-Identifier: Apache-2.0 */
/* Each program has a buffer, lent to libbpf until the log is freed; the kernel touches only as much of it as it fills. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kernel/kernel_version.h"
#include "agent/kernel/verifier_log.h"

enum { MAX_PROGRAMS = 16 };
enum { LOG_STATS = 4 }; /* BPF_LOG_STATS of include/linux/bpf_verifier.h: also how long it took */

struct verifier_log {
	struct {
		struct bpf_program *program;
		char *text;
	} programs[MAX_PROGRAMS];
	unsigned count;
};

uint32_t verifier_log_bytes(void)
{
	/* The kernel takes UINT_MAX >> 8 at most, from 5.13 on UINT_MAX >> 2 (kernel/bpf/verifier.c). */
	return kernel_version() < 5013 ? (1u << 24) - 1 : 1u << 27;
}

int verifier_log_new(struct bpf_object *object, unsigned level, struct verifier_log **ret)
{
	struct verifier_log *l = calloc(1, sizeof(*l));
	struct bpf_program *program;

	if (!l)
		return -ENOMEM;
	bpf_object__for_each_program(program, object)
	{
		char *text;

		if (!bpf_program__autoload(program) || l->count == MAX_PROGRAMS)
			continue;
		text = calloc(1, verifier_log_bytes());
		if (!text) {
			verifier_log_free(l);
			return -ENOMEM;
		}
		l->programs[l->count].program = program;
		l->programs[l->count++].text = text;
		(void)bpf_program__set_log_buf(program, text, verifier_log_bytes()); /* fail only after load */
		(void)bpf_program__set_log_level(program, level | LOG_STATS);
	}
	*ret = l;
	return 0;
}

void verifier_log_print(const struct verifier_log *l)
{
	for (unsigned i = 0; i < l->count; i++) {
		const char *text = l->programs[i].text;
		size_t len = strlen(text);

		if (len)
			fprintf(stderr, "--- the verifier on %s ---\n%s%s", bpf_program__name(l->programs[i].program), text,
				text[len - 1] == '\n' ? "" : "\n");
	}
}

void verifier_log_free(struct verifier_log *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < l->count; i++)
		free(l->programs[i].text);
	free(l);
}
