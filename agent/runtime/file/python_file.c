/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython in an executable or libpython: its version, the layout of its structures (python_layout.c), and the way to a
 * thread's state. This is the value of a pthread key until 3.14, in _PyRuntime since 3.7; then a variable of the thread's
 * own, which PyGILState_GetThisThreadState returns. (_PyThreadState_GetCurrent's would be none while the thread has let go
 * of the lock.) A stripped static executable has no symbols; its .PyRuntime section, since 3.11, tells that it is one.
 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/file/python_layout.h"
#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "bpf/runtime/python_state.h"
#include "symbols/elf_image.h"

/* Finds _PyRuntime by its name, or by its section. */
static bool find_runtime(const struct elf_image *im, uint64_t *ret)
{
	struct runtime_symbol symbol;
	Elf64_Shdr section;

	if (!runtime_file_symbol(im, "_PyRuntime", &symbol)) {
		*ret = symbol.addr;
		return true;
	}
	if (!elf_image_find(im, ".PyRuntime", &section))
		return false;
	*ret = section.sh_addr;
	return true;
}

/* The version that the file tells, Py_Version (3.11 on, PY_VERSION_HEX). 0: not told. */
static uint32_t find_version(const struct elf_image *im)
{
	struct runtime_symbol symbol;
	const uint8_t *bytes;
	uint64_t hex;

	if (runtime_file_symbol(im, "Py_Version", &symbol))
		return 0;
	bytes = runtime_file_bytes(im, symbol.addr, sizeof(hex));
	if (!bytes)
		return 0;
	memcpy(&hex, bytes, sizeof(hex));
	return (uint32_t)(hex >> 8) & 0xffffff;
}

/* The version by functions that came with it, without its micro part: libpython's and executables' alike, of which many have
 * no library, are older than Py_Version. 0: none of these. */
static uint32_t guess_version(const struct elf_image *im)
{
	static const struct {
		const char *function;
		uint32_t version;
	} news[] = {
		{ "PyIter_Send", VERSION_3_10 },
		{ "PyType_FromModuleAndSpec", VERSION_3_9 },
		{ "PyCode_NewWithPosOnlyArgs", VERSION_3_8 },
		{ "PyContext_New", VERSION_3_7 },
		{ "PyOS_FSPath", VERSION_3_6 },
	};
	struct runtime_symbol symbol;

	for (size_t i = 0; i < ARRAY_LEN(news); i++)
		if (!runtime_file_symbol(im, news[i].function, &symbol))
			return news[i].version << 8;
	return 0;
}

/* The version of a file without symbols and table, 3.11 and 3.12: Py_Version is an aligned word among the constants. 0:
 * there is no word that looks so, or several that differ. */
static uint32_t find_constant(const struct elf_image *im)
{
	uint32_t found = 0;
	Elf64_Shdr section;
	const uint8_t *bytes;
	size_t len;

	if (!elf_image_find(im, ".rodata", &section))
		return 0;
	bytes = elf_image_bytes(im, &section, &len);
	for (size_t at = 0; bytes && at + 8 <= len; at += 8) {
		uint64_t word;

		memcpy(&word, bytes + at, sizeof(word));
		if ((word & 0xff) != 0xf0 || word >> 16 < VERSION_3_11 || word >> 16 > VERSION_3_12) /* final releases */
			continue;
		if (found && found != word >> 8)
			return 0;
		found = (uint32_t)(word >> 8);
	}
	return found;
}

static bool find_thread(const struct elf_image *im, uint64_t runtime, uint16_t key, struct thread_locator *ret)
{
	struct thread_locator own = { .libc = THREAD_GLIBC };

	if (!key) {
		libc_static_read(im, &own);
		if (!runtime_file_thread(im, "PyGILState_GetThisThreadState", ret) &&
		    !runtime_file_thread(im, "PyThreadState_GetUnchecked", ret))
			return false;
		ret->libc = own.libc;
		return true;
	}
	*ret = (struct thread_locator){ .place = THREAD_KEY, .addr = runtime + key };
	libc_static_read(im, ret);
	return true;
}

/* Fills version and state but for the type of code objects. 0 or -errno: of a version that is not known. */
static int read_state(const struct elf_image *im, uint64_t runtime, struct runtime_file *ret)
{
	const uint8_t *bytes = runtime ? runtime_file_bytes(im, runtime, PYTHON_TABLE_BYTES) : NULL;
	const struct python_table table = python_table_read(bytes, PYTHON_TABLE_BYTES);
	uint16_t key;
	int error;

	ret->version = table.version;
	if (!ret->version)
		ret->version = find_version(im);
	if (!ret->version)
		ret->version = guess_version(im);
	if (!ret->version)
		ret->version = find_constant(im);
	error = table.version ? python_table_layout(bytes, PYTHON_TABLE_BYTES, &ret->state, &key)
			      : python_layout_find((uint16_t)(ret->version >> 8), &ret->state, &key);
	if (error)
		return error;
	return find_thread(im, runtime, key, &ret->state.thread) ? 0 : -ENOENT;
}

bool python_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	struct runtime_symbol type = { 0 }, loop;
	uint64_t runtime = 0;

	(void)runtime_file_symbol(im, "PyCode_Type", &type);
	if (!find_runtime(im, &runtime) && (!type.addr || !guess_version(im)))
		return false;
	ret->kind = RUNTIME_FILE_CHAIN;
	ret->id = RUNTIME_PYTHON;
	if (read_state(im, runtime, ret)) {
		memset(&ret->state, 0, sizeof(ret->state));
		return true; /* without a way to its threads */
	}
	if (ret->state.style == PYTHON_EACH && !runtime_file_symbol(im, "_PyEval_EvalFrameDefault", &loop)) {
		ret->loop.start = loop.addr;
		ret->loop.end = loop.addr + loop.size_bytes;
	}
	ret->state.runtime = RUNTIME_PYTHON;
	ret->state.type = type.addr;
	ret->state.global = runtime;
	return true;
}
