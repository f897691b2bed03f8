/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PHP, without and with threads (NTS, ZTS), in an executable, libphp or a module of a web server: its version and the layout
 * of its structures. Measured by offsetof against the packages php7.4-dev, php8.2-dev, php8.4-dev, php8.5-dev (8.5.7) and
 * php8.6-dev (8.6.0rc3): gcc $(php-config --includes), offsetof(zend_op_array, filename) and the like.
 * Of 7.3.13, 8.0, 8.1.29 and 8.3.8 there were programs alone: objdump -d of zend_get_executed_filename,
 * zend_get_executed_lineno, destroy_op_array and zend_throw_exception_internal, zend_generator_update_current; the matrix
 * (tests/script/matrix-php.sh) agrees.
 */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "bpf/runtime/php_state.h"
#include "symbols/elf_image.h"

enum {
	VERSION_7_3 = 0x0703,
	VERSION_7_4,
	VERSION_8_0 = 0x0800,
	VERSION_8_1,
	VERSION_8_2,
	VERSION_8_3,
	VERSION_8_4,
	VERSION_8_5,
	VERSION_8_6
};

/* start is executor_globals.current_execute_data. offset is in the order of enum php_offset: opline_before_exception, behind
 * that; zend_op_array's opcodes, last, filename, line_start; zend_generator's execute_data, node.children,
 * node.child.single, execute_fake; the numbers of the bits ZEND_ACC_CLOSURE, _FAKE_CLOSURE and _CALL_VIA_TRAMPOLINE. */
static const struct runtime_layout layouts[] = {
	{ VERSION_7_3, 0, 488, { 392, 64, 60, 128, 136, 64, 168, 184, 200, 20, 6, 21 } },
	{ VERSION_7_4, 0, 488, { 392, 64, 60, 136, 144, 64, 168, 184, 200, 20, 21, 18 } },
	{ VERSION_8_0, 0, 488, { 392, 72, 68, 144, 152, 56, 160, 176, 192, 22, 23, 18 } },
	{ VERSION_8_1, 0, 488, { 392, 72, 68, 144, 152, 56, 160, 168, 184, 22, 23, 18 } },
	{ VERSION_8_2, 0, 488, { 392, 88, 80, 152, 160, 56, 160, 168, 184, 22, 23, 18 } },
	{ VERSION_8_3, 0, 488, { 392, 80, 76, 144, 152, 56, 160, 168, 184, 22, 23, 18 } },
	{ VERSION_8_4, 0, 488, { 464, 104, 96, 168, 176, 56, 160, 168, 184, 22, 23, 18 } },
	{ VERSION_8_5, 0, 512, { 464, 104, 96, 168, 176, 56, 160, 168, 184, 22, 23, 18 } },
	{ VERSION_8_6, 0, 512, { 504, 104, 96, 168, 176, 56, 160, 168, 184, 22, 23, 18 } },
};

/* The version, by the line that PHP adds to answers of web servers (main/SAPI.h: SAPI_PHP_VERSION_HEADER). 0: there is none.
 */
static uint32_t find_version(const struct elf_image *im)
{
	static const char header[] = "X-Powered-By: PHP/";
	unsigned major, minor, micro;
	const uint8_t *bytes, *at;
	Elf64_Shdr section;
	char text[16];
	size_t len;

	if (!elf_image_find(im, ".rodata", &section))
		return 0;
	bytes = elf_image_bytes(im, &section, &len);
	at = bytes ? memmem(bytes, len, header, sizeof(header) - 1) : NULL;
	if (!at)
		return 0;
	at += sizeof(header) - 1;
	len -= (size_t)(at - bytes);
	len = len < sizeof(text) ? len : sizeof(text) - 1;
	memcpy(text, at, len);
	text[len] = '\0';
	return sscanf(text, "%2u.%2u.%3u", &major, &minor, &micro) == 3 ? major << 16 | minor << 8 | (micro & 0xff) : 0;
}

/* The way to executor_globals.current_execute_data. False: that is not known. */
static bool find_thread(const struct elf_image *im, const struct runtime_layout *l, struct chain_state *ret)
{
	struct runtime_symbol globals, offset;

	if (!runtime_file_symbol(im, "executor_globals", &globals)) {
		ret->thread = (struct thread_locator){ .place = THREAD_GLOBAL, .addr = globals.addr + l->start };
		return globals.size_bytes > l->start + l->offset[PHP_THREAD_BEFORE_EXCEPTION];
	}
	if (runtime_file_symbol(im, "executor_globals_offset", &offset))
		return false;
	ret->global = offset.addr;
	ret->offset[PHP_THREAD_CURRENT] = l->start;
	return runtime_file_thread(im, "tsrm_get_ls_cache", &ret->thread);
}

bool php_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	struct runtime_symbol globals, loop;
	const struct runtime_layout *l;

	if (runtime_file_symbol(im, "execute_ex", &loop) || (runtime_file_symbol(im, "executor_globals", &globals) &&
							     runtime_file_symbol(im, "executor_globals_offset", &globals)))
		return false;
	ret->kind = RUNTIME_FILE_CHAIN;
	ret->id = RUNTIME_PHP;
	ret->version = find_version(im);
	ret->loop.start = loop.addr;
	ret->loop.end = loop.addr + loop.size_bytes;
	l = runtime_layout_find(layouts, ARRAY_LEN(layouts), ret->version);
	if (!l)
		return true; /* of a version that is not known: without a way to its frames */
	memcpy(ret->state.offset, l->offset, sizeof(l->offset));
	ret->state.runtime = RUNTIME_PHP;
	if (!find_thread(im, l, &ret->state))
		memset(&ret->state, 0, sizeof(ret->state));
	return true;
}
