/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/options/effective.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/options/hide.h"
#include "cmd/options/options.h"

/* Headers have tokens in them: their names are enough. */
static void write_text(const struct option_spec *spec, const char *text, struct buf *out)
{
	AUTO_FREE char *copy = strdup(text);

	if (!copy)
		return;
	hide_password(copy);
	if (!strcmp(spec->name, "collector-header"))
		copy[strcspn(copy, ":=")] = '\0';
	buf_puts(out, copy);
}

static void write_list(const struct option_spec *spec, const struct string_list *list, struct buf *out)
{
	buf_putc(out, '[');
	for (size_t i = 0; i < list->count; i++) {
		buf_puts(out, i ? ", " : "");
		write_text(spec, list->items[i], out);
	}
	buf_putc(out, ']');
}

static void write_pids(const struct pid_list *list, struct buf *out)
{
	buf_putc(out, '[');
	for (size_t i = 0; i < list->count; i++)
		buf_printf(out, "%s%d", i ? ", " : "", (int)list->items[i]);
	buf_putc(out, ']');
}

static void write_value(const struct option_spec *spec, const void *field, struct buf *out)
{
	switch (spec->kind) {
	case OPTION_FLAG:
		buf_puts(out, "true");
		break;
	case OPTION_DURATION:
		buf_printf(out, "%.9gs", (double)*(const uint64_t *)field / (double)NSEC_PER_SEC);
		break;
	case OPTION_FREQ:
	case OPTION_U64:
	case OPTION_SIZE:
		buf_printf(out, "%" PRIu64, *(const uint64_t *)field);
		break;
	case OPTION_DOUBLE:
		buf_printf(out, "%g", *(const double *)field);
		break;
	case OPTION_STRING:
	case OPTION_CHOICE:
		write_text(spec, *(const char *const *)field, out);
		break;
	case OPTION_LIST:
	case OPTION_WORDS:
		write_list(spec, field, out);
		break;
	case OPTION_PIDS:
		write_pids(field, out);
		break;
	}
}

void effective_write(const struct config *config, struct buf *out)
{
	size_t count;
	const struct option_spec *specs = options_table(&count);

	for (size_t i = 0; i < count; i++) {
		if (!(specs[i].commands & config->cmd->bit) || !specs[i].name[0] || !option_is_set(&specs[i], config))
			continue;
		buf_printf(out, "%s: ", specs[i].name);
		write_value(&specs[i], (const char *)config + specs[i].offset, out);
		buf_putc(out, '\n');
	}
}

void effective_log(const struct config *config)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	char *rest, *line;

	effective_write(config, &text);
	rest = (char *)(uintptr_t)buf_text(&text);
	while ((line = strsep(&rest, "\n")))
		if (*line)
			log_debug("configuration: %s", line);
}
