/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtimes by the names that users write: --runtimes chooses with them, counters and `hearth check` carry them. The
 * words are those of OpenTelemetry's eBPF profiler and its Collector receiver ("tracers") where it has them, so that its
 * settings work here. A runtime is one line of RUNTIME_WORDS. No state.
 */
#ifndef HEARTH_AGENT_RUNTIME_CHOICE_H
#define HEARTH_AGENT_RUNTIME_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/runtime/file/runtime_file.h"
#include "bpf/event.h"

struct buf;

/* Numbers of runtimes without chains, behind enum runtime_id; RUNTIME_OF_CODE + enum code_id: those whose code has a reader.
 */
enum { RUNTIME_PERF_MAP = MAX_CHAINS, RUNTIME_OF_CODE };

#define RUNTIME_BIT(id) (1u << (id))

/*
 * X(word, bits, with). Bits: the runtime of that name; 0: it has none, and nothing is turned off by it. With: others
 * that name its functions, which are turned on with it.
 */
#define RUNTIME_WORDS(X)                                                                         \
	X("python", RUNTIME_BIT(RUNTIME_PYTHON), 0)                                              \
	X("php", RUNTIME_BIT(RUNTIME_PHP), 0)                                                    \
	X("perl", RUNTIME_BIT(RUNTIME_PERL), 0)                                                  \
	X("ruby", RUNTIME_BIT(RUNTIME_RUBY), 0)                                                  \
	X("lua", RUNTIME_BIT(RUNTIME_LUA), 0)                                                    \
	X("luajit", RUNTIME_BIT(RUNTIME_LUAJIT), 0)                                              \
	X("perf-map", RUNTIME_BIT(RUNTIME_PERF_MAP), 0)                                          \
	X("hotspot", RUNTIME_BIT(RUNTIME_OF_CODE + CODE_HOTSPOT), RUNTIME_BIT(RUNTIME_PERF_MAP)) \
	X("v8", RUNTIME_BIT(RUNTIME_OF_CODE + CODE_V8), RUNTIME_BIT(RUNTIME_PERF_MAP))           \
	X("dotnet", RUNTIME_BIT(RUNTIME_OF_CODE + CODE_DOTNET), RUNTIME_BIT(RUNTIME_PERF_MAP))   \
	X("beam", RUNTIME_BIT(RUNTIME_OF_CODE + CODE_BEAM), RUNTIME_BIT(RUNTIME_PERF_MAP))       \
	X("gdb-jit", RUNTIME_BIT(RUNTIME_OF_CODE + CODE_GDB_JIT), RUNTIME_BIT(RUNTIME_PERF_MAP)) \
	X("pcre", RUNTIME_BIT(RUNTIME_OF_CODE + CODE_PCRE), RUNTIME_BIT(RUNTIME_PERF_MAP))       \
	/* always named, by tables in their files */                                             \
	X("native", 0, 0)                                                                        \
	X("go", 0, 0)                                                                            \
	/* what threads say they work on: spans and labels (bpf/context/) */                     \
	X("labels", RUNTIME_BIT(CONTEXT_ID), 0)

struct runtime_word {
	const char *word;
	uint32_t bits, with; /* of RUNTIME_BIT */
};

/* The own word of the runtime @id; "": there is no such one. */
const char *runtime_own_word(uint32_t id);

/* All words, in the order of the table. */
const struct runtime_word *runtime_words(size_t *count_ret);

/*
 * Applies @text to *@off, the RUNTIME_BITs that are turned off: all, none, a word, or -word, which turns it off. The first
 * of a list (@is_first) begins with none, one with a '-' with all. 0; -ENOENT: there is no such word.
 */
int runtime_choose(const char *text, bool is_first, uint32_t *off);

/* Appends the words that turn something on, with commas between them. */
void runtime_words_print(struct buf *out);

#endif
