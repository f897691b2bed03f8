/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PHP without threads (NTS) in an executable, libphp or a module of a web server: its version and the layout of its
 * structures. Measured by offsetof against the packages php7.4-dev, php8.2-dev, php8.4-dev, php8.5-dev (8.5.7) and
 * php8.6-dev (8.6.0rc3): gcc $(php-config --includes), offsetof(zend_op_array, filename) and the like.
 */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "bpf/runtime/php_state.h"
#include "symbols/elf_image.h"

enum { VERSION_7_4 = 0x0704, VERSION_8_2 = 0x0802, VERSION_8_4 = 0x0804, VERSION_8_5, VERSION_8_6 };

/* The layout of one minor version. */
struct layout {
	uint16_t version;					/* major << 8 | minor */
	uint16_t current, before_exception;			/* executor_globals */
	uint16_t opcodes, last, file, line;			/* zend_op_array */
	uint16_t generator_frame, children, child, placeholder; /* zend_generator */
	uint16_t closure_bit;					/* the number of the bit ZEND_ACC_CLOSURE */
};

static const struct layout layouts[] = {
	{ VERSION_7_4, 488, 880, 64, 60, 136, 144, 64, 168, 184, 200, 20 },
	{ VERSION_8_2, 488, 880, 88, 80, 152, 160, 56, 160, 168, 184, 22 },
	{ VERSION_8_4, 488, 952, 104, 96, 168, 176, 56, 160, 168, 184, 22 },
	{ VERSION_8_5, 512, 976, 104, 96, 168, 176, 56, 160, 168, 184, 22 },
	{ VERSION_8_6, 512, 1016, 104, 96, 168, 176, 56, 160, 168, 184, 22 },
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

static const struct layout *find_layout(uint32_t version)
{
	for (size_t i = 0; i < ARRAY_LEN(layouts); i++)
		if (layouts[i].version == version >> 8)
			return &layouts[i];
	return NULL;
}

static void fill(struct chain_state *s, const struct layout *l)
{
	const uint16_t offsets[CHAIN_OFFSETS] = {
		[PHP_THREAD_BEFORE_EXCEPTION] = (uint16_t)(l->before_exception - l->current),
		[PHP_FUNCTION_OPCODES] = l->opcodes,
		[PHP_FUNCTION_LAST] = l->last,
		[PHP_FUNCTION_FILE] = l->file,
		[PHP_FUNCTION_LINE] = l->line,
		[PHP_GENERATOR_FRAME] = l->generator_frame,
		[PHP_GENERATOR_CHILDREN] = l->children,
		[PHP_GENERATOR_CHILD] = l->child,
		[PHP_GENERATOR_PLACEHOLDER] = l->placeholder,
		[PHP_CLOSURE_BIT] = l->closure_bit,
	};

	memcpy(s->offset, offsets, sizeof(s->offset));
}

bool php_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	struct runtime_symbol globals, loop;
	const struct layout *l;

	if (runtime_file_symbol(im, "executor_globals", &globals) || runtime_file_symbol(im, "execute_ex", &loop))
		return false;
	ret->kind = RUNTIME_FILE_CHAIN;
	ret->id = RUNTIME_PHP;
	ret->version = find_version(im);
	ret->loop.start = loop.addr;
	ret->loop.end = loop.addr + loop.size_bytes;
	l = find_layout(ret->version);
	if (!l || globals.size_bytes <= l->before_exception)
		return true; /* of a version that is not known: without a way to its frames */
	fill(&ret->state, l);
	ret->state.runtime = RUNTIME_PHP;
	ret->state.thread = (struct thread_locator){ .place = THREAD_GLOBAL, .addr = globals.addr + l->current };
	return true;
}
