/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a receiver answers. */
#include <stdio.h>

#include "base/text/utf8.h"
#include "proto/otlp/decode.h"

static int decode_answer(const struct otlp_message *m, const uint8_t *data, size_t len, int64_t *number_ret,
			 char *message_ret, size_t message_size)
{
	struct otlp_error err;
	struct otlp_decoder d = { .start = data, .own_data = true, .text = &err };
	struct otlp_answer answer = { .message = STR("") };

	if (len && !otlp_decode_message(&d, m, &answer, data, data + len))
		return d.error;
	*number_ret = answer.number;
	snprintf(message_ret, message_size, "%.*s", (int)utf8_cut(answer.message.data, answer.message.len, message_size - 1),
		 answer.message.data);
	return 0;
}

int otlp_decode_response(const uint8_t *data, size_t len, int64_t *rejected_ret, char *message_ret, size_t message_size)
{
	return decode_answer(&otlp_response, data, len, rejected_ret, message_ret, message_size);
}

int otlp_decode_status(const uint8_t *data, size_t len, int32_t *grpc_code_ret, char *message_ret, size_t message_size)
{
	int64_t code = 0;
	int err = decode_answer(&otlp_status, data, len, &code, message_ret, message_size);

	if (!err)
		*grpc_code_ret = (int32_t)code; /* as protobuf reads an int32 */
	return err;
}
