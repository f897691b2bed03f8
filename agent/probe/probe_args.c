/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/probe/probe_args.h"
#include "base/cleanup.h"

/* A register, by the names of all of it and of its parts. */
struct named_register {
	uint16_t place;
	const char *names[5];
};

#ifdef __x86_64__
/* arch/x86/include/asm/ptrace.h */
static const struct named_register registers[] = {
	{ 0, { "r15", "r15d", "r15w", "r15b" } },  { 8, { "r14", "r14d", "r14w", "r14b" } },
	{ 16, { "r13", "r13d", "r13w", "r13b" } }, { 24, { "r12", "r12d", "r12w", "r12b" } },
	{ 32, { "rbp", "ebp", "bp", "bpl" } },	   { 40, { "rbx", "ebx", "bx", "bl" } },
	{ 48, { "r11", "r11d", "r11w", "r11b" } }, { 56, { "r10", "r10d", "r10w", "r10b" } },
	{ 64, { "r9", "r9d", "r9w", "r9b" } },	   { 72, { "r8", "r8d", "r8w", "r8b" } },
	{ 80, { "rax", "eax", "ax", "al" } },	   { 88, { "rcx", "ecx", "cx", "cl" } },
	{ 96, { "rdx", "edx", "dx", "dl" } },	   { 104, { "rsi", "esi", "si", "sil" } },
	{ 112, { "rdi", "edi", "di", "dil" } },	   { 152, { "rsp", "esp", "sp", "spl" } },
};
static const char *const call_registers[] = { "rdi", "rsi", "rdx", "rcx", "r8", "r9" };
static const char return_register[] = "rax";
#else
/* arch/arm64/include/asm/ptrace.h: x0 to x30, then sp */
static const struct named_register registers[] = { { 31 * 8, { "sp" } } };
static const char *const call_registers[] = { "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7" };
static const char return_register[] = "x0";
#endif

int probe_register(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(registers); i++)
		for (int k = 0; registers[i].names[k]; k++)
			if (strlen(registers[i].names[k]) == len && !memcmp(registers[i].names[k], name, len))
				return registers[i].place;
#ifndef __x86_64__
	if ((name[0] == 'x' || name[0] == 'w') && len > 1 && len < 4 && strspn(name + 1, "0123456789") >= len - 1 &&
	    atoi(name + 1) < 31)
		return 8 * atoi(name + 1);
#endif
	return -ENOENT;
}

int probe_arg_of_call(uint32_t number, struct probe_arg *ret)
{
	const char *name = number == PROBE_ARG_RETURN		? return_register
			   : number < ARRAY_LEN(call_registers) ? call_registers[number]
								: NULL;

	if (!name)
		return -ENOENT;
	*ret = (struct probe_arg){ .kind = PROBE_ARG_REGISTER,
				   .bytes = -8,
				   .reg = (uint16_t)probe_register(name, strlen(name)),
				   .index = PROBE_NO_REGISTER };
	return 0;
}

/* Takes a register, behind '%' or not, off *@text. */
static int take_register(const char **text, uint16_t *ret)
{
	const char *name = *text + (**text == '%');
	size_t len = strcspn(name, ",)] ");
	int place = probe_register(name, len);

	if (place < 0)
		return -ENOTSUP;
	*ret = (uint16_t)place;
	*text = name + len;
	return 0;
}

/* "(BASE)", "(BASE,INDEX)", "(BASE,INDEX,SCALE)" or "[BASE, OFFSET]". */
static int parse_memory(const char *text, struct probe_arg *ret)
{
	char closing = *text == '(' ? ')' : ']', *end;
	unsigned long scale = 1;

	ret->kind = PROBE_ARG_MEMORY;
	text++;
	if (take_register(&text, &ret->reg))
		return -ENOTSUP;
	if (*text == ',' && closing == ']') {
		ret->value = strtoll(text + 1, &end, 0);
		text = end;
	} else if (*text == ',') {
		text++;
		if (take_register(&text, &ret->index))
			return -ENOTSUP;
		if (*text == ',') {
			scale = strtoul(text + 1, &end, 0);
			text = end;
		}
	}
	while (scale > 1 && ret->scale < 3) {
		scale /= 2;
		ret->scale++;
	}
	return *text == closing ? 0 : -ENOTSUP;
}

/* "$5", "5", "%rdi", "x0", "-12(%rbp)", "[sp, 12]". */
static int parse_operand(const char *text, struct probe_arg *ret)
{
	char *end;

	if (*text == '[' || *text == '(')
		return parse_memory(text, ret);
	if (*text == '$' || *text == '-' || (*text >= '0' && *text <= '9')) {
		ret->kind = PROBE_ARG_CONSTANT;
		ret->value = strtoll(text + (*text == '$'), &end, 0);
		return *end == '(' ? parse_memory(end, ret) : *end == '\0' || *end == ' ' ? 0 : -ENOTSUP;
	}
	ret->kind = PROBE_ARG_REGISTER;
	if (take_register(&text, &ret->reg))
		return -ENOTSUP;
	return *text == '\0' || *text == ' ' ? 0 : -ENOTSUP;
}

/* The argument behind the one at @text; "": there is none. */
static const char *next_of(const char *text)
{
	bool is_inside = false;

	for (; *text && (is_inside || *text != ' '); text++)
		is_inside = *text == '[' || (is_inside && *text != ']');
	return text + strspn(text, " ");
}

int probe_arg_of_note(const char *arguments, uint32_t number, struct probe_arg *ret)
{
	const char *at = arguments + strspn(arguments, " ");
	char *end;
	long bytes = -8;

	while (number--)
		at = next_of(at);
	if (!*at)
		return -ENOENT;
	*ret = (struct probe_arg){ .index = PROBE_NO_REGISTER };
	if (memchr(at, '@', strcspn(at, " "))) {
		bytes = strtol(at, &end, 10);
		if (*end != '@')
			return -ENOTSUP;
		at = end + 1;
	}
	if (!bytes || bytes < -8 || bytes > 8 || labs(bytes) & (labs(bytes) - 1))
		return -ENOTSUP;
	ret->bytes = (int8_t)bytes;
	return parse_operand(at, ret);
}
