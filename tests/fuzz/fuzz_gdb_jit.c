/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a process that lies about the code it registered for debuggers (fake_process.h). Then everything is asked
 * that the agent may ask. Answers must be such as the agent believes, and come within the budget. */
#include "tests/unit/agent/runtime/code/fake_gdb_jit.h"

#include "tests/fuzz/fake_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct code_range range = { fake_code(0), fake_code(FAKE_FILES) };
	static struct fake fake;
	struct fake_process process;
	struct code_request request;

	fake_make(&fake);
	if (size && data[0] & 1) { /* the variable has no symbol */
		fake.facts.fact[GDB_JIT_FACT_DESCRIPTOR] = 0;
		fake.facts.fact[GDB_JIT_FACT_DATA] = 0;
		fake.facts.fact[GDB_JIT_FACT_DATA_BYTES] = FAKE_FILE;
	}
	request = (struct code_request){ .op = CODE_OP_RANGES, .bias = FAKE_BASE, .facts = fake.facts };
	fake_process_begin(&process, &fake, data, size);
	fake_process_ask_all(&process, &request, range, range.end - range.start);
	elf_service_free(process.service);
	return 0;
}
