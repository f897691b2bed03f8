/* SPDX-License-Identifier: Apache-2.0 */
/* Turns options into those of the print sink. The typed form has defaults of its own, those of the exporter that it
 * follows. */
#include "cmd/setup/print_of.h"

#include <string.h>

#include "base/cleanup.h"
#include "cmd/options/config.h"

static enum print_form form_of(const char *name)
{
	static const struct {
		const char *name;
		enum print_form form;
	} forms[] = {
		{ "plain", PRINT_PLAIN },     { "typed", PRINT_TYPED },	    { "debug", PRINT_DEBUG },
		{ "2025-09", PRINT_2025_09 }, { "2025-08", PRINT_2025_08 },
	};

	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (!strcmp(forms[i].name, name))
			return forms[i].form;
	return PRINT_PLAIN;
}

static bool is_yes(const char *choice, bool when_not_given)
{
	return choice ? !strcmp(choice, "yes") : when_not_given;
}

struct print_options print_options_of(const struct config *config)
{
	static const char *const none[] = { NULL };
	enum print_form form = form_of(config->print_form);
	struct print_options options = {
		.form = form,
		.skip_without_container_id = is_yes(config->print_only_containers, form == PRINT_TYPED),
		.hide_resource_attributes = config->print_no_resource_attributes,
		.hide_profile_attributes = config->print_no_profile_attributes,
		.hide_sample_attributes = config->print_no_sample_attributes,
		.hide_frames = config->print_no_frames,
		.hide_source = !is_yes(config->print_source, true),
		.show_source = is_yes(config->print_source, false),
		.raw = config->print_raw,
		.container_id = config->print_container,
		.sample_types = (const char *const *)config->print_sample_types.items,
		.frame_types = (const char *const *)config->print_frame_types.items,
	};

	if (form == PRINT_TYPED && !options.sample_types)
		options.sample_types = none;
	return options;
}
