/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/otlp/process_context.h"

#include <errno.h>

#include "proto/otlp/schema.h"

static const struct otlp_field fields[] = {
	FIELD(1, resource, KIND_MESSAGE, LIST(struct otlp_process_context, resource, has_resource), .has = true,
	      .sub = &otlp_resource),
	FIELD(2, attributes, KIND_MESSAGES, LIST(struct otlp_process_context, attributes.items, attributes.count),
	      .sub = &otlp_key_value),
};
static const struct otlp_message message = { .name = "ProcessContext", FIELDS(fields, struct otlp_process_context) };

int otlp_process_context_decode(const uint8_t *data, size_t len, struct otlp_process_context *ret)
{
	static const struct otlp_layout layout = { .root = &message, .size_bytes = sizeof(*ret) };
	struct otlp_error text;
	struct otlp_decoder d = { .start = data, .len = len, .text = &text };
	const struct otlp_process_context *root;

	text.message[0] = '\0';
	root = len <= UINT32_MAX ? otlp_decode_root(&d, &layout) : NULL;
	if (!root) {
		profiles_put(d.profiles);
		return d.error ? d.error : -EBADMSG;
	}
	*ret = *root;
	ret->memory = d.profiles;
	return 0;
}

void otlp_process_context_fini(struct otlp_process_context *c)
{
	profiles_put(c->memory);
	*c = (struct otlp_process_context){ 0 };
}
