/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes OTLP/JSON into the profile model. */
#ifndef HEARTH_PROTO_OTLP_JSON_JSON_DECODE_H
#define HEARTH_PROTO_OTLP_JSON_JSON_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/otlp/otlp.h"

/*
 * Decodes one ProfilesData (= ExportProfilesServiceRequest) in OTLP/JSON. Names in lowerCamelCase or as in the schema;
 * unknown ones are passed over, null is absent; 64-bit integers as string or number; ids in hex or base64, other bytes in
 * base64. The checks are those of otlp_decode(), and a name twice in an object is refused. Nothing of @data is kept. 0;
 * -EBADMSG (@err says the byte, the path and what is wrong there); -ENOMEM.
 */
int otlp_json_decode(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *err);

/* otlp_json_decode() is this with no options set. Older releases show by their names. */
int otlp_json_decode_with(const uint8_t *data, size_t len, const struct otlp_decode_options *options, struct profiles **ret,
			  struct otlp_error *err);

#endif
