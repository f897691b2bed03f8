/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a Go program that lies about its heap (fake_process.h). Answers must be such as the agent believes, and come
 * within the budget; and no bytes at all may make the check of an answer go wrong.
 */
#include "tests/unit/agent/runtime/code/fake_go_heap.h"

#include "tests/fuzz/fake_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fake fake;
	struct go_heap_request request = fake_request();
	struct code_memory m = {
		.read = fake_read, .arg = &fake, .reads_left = 4096, .bytes_left = CODE_MAX_BYTES, .end_ns = UINT64_MAX
	};
	struct buf reply = BUF_EMPTY;

	fake_make(&fake);
	fake_change(&fake, data, size);
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
