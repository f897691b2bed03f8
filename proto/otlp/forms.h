/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms of OTLP profiles. The layout on the wire changed with nearly every release up to 1.10; from then on there is
 * one. Each form is a const struct in the file that reads it, and has its place in the table of proto/otlp/forms.c.
 */
#ifndef HEARTH_PROTO_OTLP_FORMS_H
#define HEARTH_PROTO_OTLP_FORMS_H

#include "proto/otlp/decode.h"
#include "proto/otlp/prints.h"

/* A name in OTLP/JSON that only one form and older ones have. */
struct otlp_mark {
	const char *message, *name;
	bool is_list; /* the name stays, but was of a list */
};

struct otlp_form {
	const char *release; /* as people are told it */
	/* How to tell it: whether a message that no form before this one in the table fits is of this one. @doubtful: the
	 * samples' attributes made no sense as those of the current form, so weak evidence counts. NULL: it fits. */
	bool (*fits)(const struct otlp_prints *s, bool doubtful);
	const struct otlp_mark *marks; /* by which it is told in OTLP/JSON */
	unsigned mark_count;
	struct otlp_layout layout; /* How to decode it. No root: it is refused */
};

extern const struct otlp_form otlp_form_1_7, otlp_form_1_8, otlp_form_1_9, otlp_form_current;

/* All of them, the oldest first, the current one last. Ends with NULL. */
extern const struct otlp_form *const otlp_forms[];

/* Error texts for a message of an older form. */
#define OTLP_TOO_OLD	    "this is the OTLP %s layout; hearth reads 1.7 and newer"
#define OTLP_FAULT_IN_OLDER "this is the OTLP %s layout: %.200s"

#endif
