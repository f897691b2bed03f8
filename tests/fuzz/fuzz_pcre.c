/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a process that lies about the code PCRE2 made (fake_process.h). Then everything is asked that the agent may
 * ask. Answers must be such as the agent believes, and come within the budget. */
#include "tests/unit/agent/runtime/code/fake_pcre.h"

#include "tests/fuzz/fake_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct code_range range = { FAKE_BASE, FAKE_BASE + FAKE_BYTES };
	static struct fake fake;
	struct fake_process process;
	struct code_request request;

	fake_make(&fake);
	request = (struct code_request){ .op = CODE_OP_RANGES, .facts = fake.facts };
	fake_process_begin(&process, &fake, data, size);
	fake_process_ask_all(&process, &request, range, FAKE_BLOCK);
	elf_service_free(process.service);
	return 0;
}
