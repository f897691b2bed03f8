/* SPDX-License-Identifier: Apache-2.0 */
/* Filters as people write them: lines that are a pattern of names (and matched against the next line), an event, a list
 * of CPUs. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/kernel/comm_pattern.h"
#include "agent/kernel/perf_event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pattern(const char *pattern, const char *comm)
{
	const char *patterns[] = { pattern, "no-such-name", pattern };
	struct comm_automaton one, three;
	size_t which;
	int err = comm_patterns_compile(patterns, 1, &one, &which);

	if (err && err != -EINVAL && err != -E2BIG)
		abort();
	if (err || comm_patterns_compile(patterns, 3, &three, &which))
		return;
	/* However many stand side by side, the answer is that of each. */
	if (comm_automaton_matches(&one, comm) != comm_automaton_matches(&three, comm) && strcmp(comm, "no-such-name"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *rest = text, *line, *last = NULL;
	struct agent_error error;
	uint32_t cpus[16];

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	while ((line = strsep(&rest, "\n"))) {
		struct perf_event_attr attr = { 0 };
		int count = perf_event_cpus_parse(line, cpus, 16);

		if (count > 16 || (perf_event_parse(line, &attr, &error) && !error.message[0]))
			abort();
		if (last)
			check_pattern(last, line);
		last = line;
	}
	free(text);
	return 0;
}
