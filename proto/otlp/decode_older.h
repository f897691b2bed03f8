/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that read the layouts of older releases. */
#ifndef HEARTH_PROTO_OTLP_DECODE_OLDER_H
#define HEARTH_PROTO_OTLP_DECODE_OLDER_H

#include "proto/otlp/schema.h"

extern const struct otlp_message otlp_value_type_older;

/* Attributes made of comments, while a message is converted; begins as { 0 }. */
struct comments {
	int32_t key; /* pprof.profile.comment in the string table; 0: not there yet */
	uint32_t string_cap, attribute_cap;
};

/* Turns a profile's comments, which are @strings, into one attribute more. False: reported. */
bool comments_add(struct otlp_decoder *d, struct comments *c, const struct indices *strings, struct indices *attributes);

/* Reports -ENOMEM; returns false. */
bool otlp_decode_out_of_memory(struct otlp_decoder *d);

#endif
