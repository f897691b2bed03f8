/* SPDX-License-Identifier: Apache-2.0 */
/* The sequences are those of "ELF Handling For Thread-Local Storage" (Drepper) and of "TLS descriptors" (Oliva), looked at
 * in gcc's and clang's output (objdump -d). */
#include <elf.h>
#include <string.h>

#include "agent/runtime/file/thread_code.h"
#include "base/cleanup.h"

enum { LOOKED_AT = 64 }; /* bytes of a function */

struct code {
	const uint8_t *bytes;
	size_t len, at;
	uint64_t addr; /* of bytes[0] */
};

/* Goes over the bytes @wanted, if they come next. */
static bool take(struct code *c, const void *wanted, size_t len)
{
	if (c->len - c->at < len || memcmp(c->bytes + c->at, wanted, len) != 0)
		return false;
	c->at += len;
	return true;
}

#define TAKE(code, wanted) take(code, wanted, sizeof(wanted) - 1)

static bool take_number(struct code *c, int32_t *ret)
{
	if (c->len - c->at < sizeof(*ret))
		return false;
	memcpy(ret, c->bytes + c->at, sizeof(*ret));
	c->at += sizeof(*ret);
	return true;
}

/* --- x86-64 --- */

/* An address relative to the end of the instruction whose last part it is. */
static bool take_relative(struct code *c, __u64 *ret)
{
	int32_t distance;

	if (!take_number(c, &distance))
		return false;
	*ret = c->addr + c->at + (__u64)(int64_t)distance;
	return true;
}

/* mov N(%rax),%rax; without a number 0, without the instruction nothing is read. */
static bool take_load(struct code *c, int32_t *offset)
{
	if (TAKE(c, "\x48\x8b\x80"))
		return take_number(c, offset);
	*offset = 0;
	if (TAKE(c, "\x48\x8b\x00"))
		return true;
	if (!TAKE(c, "\x48\x8b\x40") || c->at == c->len)
		return false;
	*offset = (int8_t)c->bytes[c->at++];
	return true;
}

/* mov %fs:N,%rax, perhaps with prefixes that fill it up; or from the thread pointer itself, at %fs:0: mov %fs:0,%rax; mov
 * N(%rax),%rax; or what a linker makes of an executable's slot or call: mov $N,%rax; mov %fs:(%rax),%rax; mov %fs:0,%rax;
 * lea N(%rax),%rax; mov (%rax),%rax */
static bool read_exec(struct code *c, struct thread_locator *ret)
{
	ret->place = THREAD_TLS;
	if (TAKE(c, "\x48\xc7\xc0"))
		return take_number(c, &ret->offset) && TAKE(c, "\x64\x48\x8b\x00") && ret->offset;
	while (TAKE(c, "\x66"))
		;
	if (!TAKE(c, "\x64\x48\x8b\x04\x25") || !take_number(c, &ret->offset))
		return false;
	if (TAKE(c, "\x48\x8d\x80"))
		return take_number(c, &ret->offset) && TAKE(c, "\x48\x8b\x00") && ret->offset;
	return ret->offset || (take_load(c, &ret->offset) && ret->offset);
}

/* mov SLOT(%rip),%rax; mov %fs:(%rax),%rax */
static bool read_slot(struct code *c, struct thread_locator *ret)
{
	ret->place = THREAD_TLS_SLOT;
	return TAKE(c, "\x48\x8b\x05") && take_relative(c, &ret->addr) && TAKE(c, "\x64\x48\x8b\x00");
}

/* lea SLOT(%rip),%rdi; call __tls_get_addr; perhaps the frame's end; mov N(%rax),%rax. Prefixes fill it up. */
static bool read_index(struct code *c, struct thread_locator *ret)
{
	__u64 called;

	ret->place = THREAD_TLS_INDEX;
	(void)TAKE(c, "\x66");
	if (!TAKE(c, "\x48\x8d\x3d") || !take_relative(c, &ret->addr))
		return false;
	while (TAKE(c, "\x66") || TAKE(c, "\x48"))
		;
	if (!TAKE(c, "\xe8") && !TAKE(c, "\xff\x15"))
		return false;
	return take_relative(c, &called) && ((void)TAKE(c, "\x5d"), take_load(c, &ret->offset));
}

/* lea SLOT(%rip),%rax; call *(%rax); mov %fs:N(%rax),%rax */
static bool read_descriptor(struct code *c, struct thread_locator *ret)
{
	ret->place = THREAD_TLS_DESC;
	if (!TAKE(c, "\x48\x8d\x05") || !take_relative(c, &ret->addr) || !TAKE(c, "\xff\x10"))
		return false;
	(void)TAKE(c, "\x5d");
	return TAKE(c, "\x64\x48\x8b\x00") || (TAKE(c, "\x64\x48\x8b\x80") && take_number(c, &ret->offset));
}

/* mov KEY(%rip),%edi; jmp to what calls pthread_getspecific: PHP 7.4 with threads, Erlang. CPython 3.6 looks first whether
 * there is a key: cmpq $0,ANY(%rip); je ANY. */
static bool read_key(struct code *c, struct thread_locator *ret)
{
	__u64 any;

	ret->place = THREAD_KEY;
	if (TAKE(c, "\x48\x83\x3d")) {
		if (!take_relative(c, &any) || !TAKE(c, "\0\x74") || c->at == c->len)
			return false;
		c->at++;
	}
	return TAKE(c, "\x8b\x3d") && take_relative(c, &ret->addr) && TAKE(c, "\xe9") && take_relative(c, &any);
}

/* endbr64; push %rbp; mov %rsp,%rbp; push %rax; sub $N,%rsp */
static void skip_prologue(struct code *c)
{
	(void)TAKE(c, "\xf3\x0f\x1e\xfa");
	if (TAKE(c, "\x55"))
		(void)TAKE(c, "\x48\x89\xe5");
	if (!TAKE(c, "\x50") && TAKE(c, "\x48\x83\xec"))
		c->at += c->at < c->len;
}

static bool read_x86_64(const struct code *c, struct thread_locator *ret)
{
	static bool (*const ways[])(struct code *, struct thread_locator *) = { read_exec, read_slot, read_index,
										read_descriptor, read_key };

	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct code copy = *c;

		*ret = (struct thread_locator){ 0 };
		skip_prologue(&copy);
		if (ways[i](&copy, ret))
			return true;
	}
	return false;
}

/* --- arm64 --- */

static bool take_insn(struct code *c, uint32_t *ret)
{
	if (c->len - c->at < sizeof(*ret))
		return false;
	memcpy(ret, c->bytes + c->at, sizeof(*ret));
	c->at += sizeof(*ret);
	return true;
}

/* The address that adrp @insn, at @at, makes. */
static uint64_t page_of(uint32_t insn, uint64_t at)
{
	int64_t pages = (int32_t)((insn >> 5 & 0x7ffff) << 13) >> 11 | (insn >> 29 & 3);

	return (at & ~0xfffull) + ((uint64_t)pages << 12);
}

/* The registers x0 alone: mrs x0, tpidr_el0; add x0, x0, HIGH; add x0, x0, LOW; ldr x0, [x0, N]. Or a descriptor: adrp x0,
 * PAGE; ldr, add x0, x0, LOW; blr; ldr x0, [xN, x0]. Others, of the frame, may stand between. */
static bool read_arm64(struct code *c, struct thread_locator *ret)
{
	uint64_t sum = 0, slot = 0;
	bool has_thread = false, is_called = false;
	uint32_t insn;

	*ret = (struct thread_locator){ 0 };
	while (take_insn(c, &insn) && insn != 0xd65f03c0) { /* ret */
		if (insn == 0xd53bd040) {		    /* mrs x0, tpidr_el0 */
			has_thread = true;
		} else if ((insn & 0x9f00001f) == 0x90000000) { /* adrp x0 */
			slot = page_of(insn, c->addr + c->at - sizeof(insn));
		} else if ((insn & 0xff8003ff) == 0x91000000) { /* add x0, x0, N, perhaps << 12 */
			sum += (uint64_t)(insn >> 10 & 0xfff) << (insn >> 22 & 1 ? 12 : 0);
		} else if ((insn & 0xfffffc1f) == 0xd63f0000) { /* blr */
			is_called = true;
		} else if (has_thread && (insn & 0xffc003ff) == 0xf9400000) { /* ldr x0, [x0, N * 8] */
			ret->place = THREAD_TLS;
			ret->offset = (int32_t)(sum + (insn >> 10 & 0xfff) * 8);
			return ret->offset > 0;
		} else if (slot && is_called && (insn & 0xfffffc1f) == 0xf8606800) { /* ldr x0, [xN, x0] */
			ret->place = THREAD_TLS_DESC;
			ret->addr = slot + sum;
			return true;
		}
	}
	return false;
}

bool thread_code_read(uint16_t machine, const uint8_t *code, size_t len, uint64_t addr, struct thread_locator *ret)
{
	struct code c = { .bytes = code, .len = len < LOOKED_AT ? len : LOOKED_AT, .addr = addr };

	if (machine == EM_X86_64)
		return read_x86_64(&c, ret);
	return machine == EM_AARCH64 && read_arm64(&c, ret);
}
