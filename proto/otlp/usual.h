/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder's short cut for the two messages that are most of a profile, and little else than lists of indices: stacks and
 * samples. Nearly every writer writes them so that their fields come in order, once each and packed, and that is read here
 * without a look into the decoder's tables; whatever else there is stays for those, and so does all that is wrong.
 */
#ifndef HEARTH_PROTO_OTLP_USUAL_H
#define HEARTH_PROTO_OTLP_USUAL_H

#include "proto/otlp/decode.h"

/* Read what is usual at the begin of a Stack or Sample, @base being zeroed. Return where that ends. */
const uint8_t *otlp_usual_stack(struct otlp_decoder *d, void *base, const uint8_t *p, const uint8_t *end);
const uint8_t *otlp_usual_sample(struct otlp_decoder *d, void *base, const uint8_t *p, const uint8_t *end);

#endif
