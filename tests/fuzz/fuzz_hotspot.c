/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a process with a virtual machine that lies (fake_process.h). Then everything is asked that the agent may
 * ask. Answers must be such as the agent believes, and come within the budget. */
#include "tests/unit/agent/runtime/code/fake_hotspot.h"

#include "tests/fuzz/fake_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fake fake;
	struct fake_process process;
	struct code_request request;

	fake_make(&fake);
	request = (struct code_request){ .op = CODE_OP_RANGES, .bias = FAKE_BASE, .facts = fake.facts };
	fake_process_begin(&process, &fake, data, size);
	fake_process_ask(&process, &request, NULL, 0);
	request.op = CODE_OP_BLOCK;
	for (uint64_t off = 0; off < FAKE_HEAP_BYTES; off += 400) {
		request.addr = FAKE_BASE + FAKE_HEAP + off;
		fake_process_ask(&process, &request, NULL, 0);
	}
	request.op = CODE_OP_FUNCTION;
	request.words[0] = fake.method;
	request.words[1] = fake.method + 300;
	for (request.capture = 0; request.capture < 4; request.capture++)
		fake_process_ask(&process, &request, NULL, 0);
	elf_service_free(process.service);
	return 0;
}
