/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a Go program that lies about its heap: the input is changes of a made-up one (fake_go_heap.h), four bytes
 * each: how many bytes further, two bytes; what to put there; how many times, 0 to 255. Answers must be such as the agent
 * believes, and come within the budget; and no bytes at all may make the check of an answer go wrong.
 */
#include <stdint.h>

#include "base/buf.h"
#include "tests/fuzz/require.h"
#include "tests/unit/agent/runtime/code/fake_go_heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void change(struct fake *f, const uint8_t *data, size_t size)
{
	uint32_t at = 0;

	for (size_t i = 0; i + 4 <= size; i += 4) {
		at = (at + (data[i] | data[i + 1] << 8)) % FAKE_BYTES;
		for (uint32_t k = 0; k <= data[i + 3] && at + k < FAKE_BYTES; k++)
			f->bytes[at + k] = data[i + 2];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fake fake;
	struct go_heap_request request = fake_request();
	struct code_memory m = {
		.read = fake_read, .arg = &fake, .reads_left = 4096, .bytes_left = CODE_MAX_BYTES, .end_ns = UINT64_MAX
	};
	struct buf reply = BUF_EMPTY;

	fake_make(&fake);
	change(&fake, data, size);
	if (size)
		request.known = FAKE_BASE + FAKE_FIRST * (uint64_t)(data[0] & 3);
	if (!go_heap_read(&m, &request, &reply))
		REQUIRE(go_heap_is_sound(reply.data, reply.len));
	buf_reset(&reply);
	buf_append(&reply, data, size); /* aligned */
	if (reply.data)
		(void)go_heap_is_sound(reply.data, reply.len);
	buf_fini(&reply);
	return 0;
}
