/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute values as text, in the very form the OpenTelemetry Collector's libraries give them. */
#ifndef HEARTH_SINKS_VALUE_TEXT_H
#define HEARTH_SINKS_VALUE_TEXT_H

#include "base/buf.h"
#include "proto/profiles.h"

/*
 * Appends @v: strings raw, bytes in base64, lists and maps as compact JSON with sorted keys, nothing when unset. A list or
 * map that holds a NaN or an infinity has no JSON and appends nothing.
 */
void value_text(const struct profiles *p, const struct any_value *v, struct buf *out);

/* Str, Int, Double, Bool, Map, Slice, Bytes or Empty. */
const char *value_type_name(const struct any_value *v);

#endif
