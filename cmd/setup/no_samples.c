/* SPDX-License-Identifier: Apache-2.0 */
/* The likeliest cause first: each rule speaks where its option, or the command, makes it one. */
#include "cmd/setup/no_samples.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/setup/child.h"
#include "cmd/options/config.h"
#include "cmd/options/options.h"

static void print_ms(uint64_t ns, struct buf *out)
{
	buf_printf(out, "%.1f ms", (double)ns / (double)NSEC_PER_MSEC);
}

static bool is_time(const struct string_list *events)
{
	return !events->count || !strcmp(events->items[0], "cpu-clock") || !strcmp(events->items[0], "task-clock");
}

/* The time between two samples of a CPU that is busy; 0: not known. */
static uint64_t sample_every_ns(const struct config *config)
{
	return config->period ? config->period : config->freq_hz ? NSEC_PER_SEC / config->freq_hz : 0;
}

/* The filters that are set, as they are typed: "--comm and --uid". Whether there are any. */
static bool print_filters(const struct config *config, struct buf *out)
{
	size_t count, found = 0;
	const struct option_spec *specs = options_table(&count);

	for (size_t i = 0; i < count; i++)
		if (specs[i].group == GROUP_FILTERS && option_is_set(&specs[i], config))
			buf_printf(out, "%s--%s", found++ ? " with " : "", specs[i].name);
	return found;
}

static void explain_command(const struct config *config, const struct child *command, struct buf *out)
{
	uint64_t every_ns = sample_every_ns(config);

	buf_puts(out, "only the command and its children were recorded");
	if (command->is_reaped) {
		buf_puts(out, ", which took ");
		print_ms(command->cpu_ns, out);
		buf_puts(out, " of CPU time");
	}
	if (every_ns && command->is_reaped && command->cpu_ns < 3 * every_ns) {
		buf_puts(out, ", and a sample is taken each ");
		print_ms(every_ns, out);
		buf_puts(out, " of it (-F)");
	}
	buf_puts(out, "; with -a the whole machine is recorded for as long as the command runs");
}

static void explain_machine(const struct config *config, struct buf *out)
{
	uint64_t every_ns = sample_every_ns(config);

	buf_puts(out, "no CPU was busy at a moment of sampling");
	if (every_ns) {
		buf_puts(out, ", each ");
		print_ms(every_ns, out);
	}
	buf_puts(out, "; record longer, or more often (-F), or idle CPUs too (--idle)");
}

void no_samples_explain(const struct config *config, const struct child *command, uint64_t lasted_ns, struct buf *out)
{
	AUTO(buf_fini) struct buf filters = BUF_EMPTY;
	const char *only = command->pid && !config->all_cpus ? " in the command and its children (-a: on the whole machine)"
							     : "";

	buf_puts(out, "no sample was taken: ");
	if (config->delay_ns && lasted_ns <= config->delay_ns)
		buf_puts(out, "the recording ended before --delay was over");
	else if (config->probabilistic)
		buf_printf(out, "--probabilistic %s may have left all of the time out", config->probabilistic);
	else if (!is_time(&config->events))
		buf_printf(out,
			   "too few %s events were counted%s; 'hearth check' says which events can be counted here, and "
			   "-c 1 takes a sample of each",
			   config->events.items[0], only);
	else if (print_filters(config, &filters))
		buf_printf(out, "nothing that %s lets pass was on a CPU at a moment of sampling%s", buf_text(&filters),
			   only);
	else if (*only)
		explain_command(config, command, out);
	else
		explain_machine(config, out);
}
