/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of x86-64 whose frames are known, with their rows as test_code.c prints them. */
#ifndef HEARTH_TESTS_UNIT_AGENT_KNOWN_FRAMES_H
#define HEARTH_TESTS_UNIT_AGENT_KNOWN_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#define CODE(bytes) (const uint8_t *)(bytes), sizeof(bytes) - 1

static const struct {
	const char *name;
	const uint8_t *code;
	size_t len;
	const char *rows;
} functions[] = {
	{ "leaf", CODE("\x31\xc0\xc3"), "0:rsp+8 3." },
	{ "pushes and pops", CODE("\x53\x41\x54\x48\x83\xec\x10\x48\x83\xc4\x10\x41\x5c\x5b\xc3"),
	  "0:rsp+8 1:rsp+16,rbx=-16 3:rsp+24,rbx=-16,r12=-24 7:rsp+40,rbx=-16,r12=-24 b:rsp+24,rbx=-16,r12=-24 "
	  "d:rsp+16,rbx=-16 "
	  "e:rsp+8 f." },
	{ "frame pointer", CODE("\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\x81\xec\x00\x01\x00\x00\xc9\xc3"),
	  "0:rsp+8 5:rsp+16,rbp=-16 8:rbp+16,rbp=-16 10:rsp+8 11." },
	{ "frame pointer over a stack of unknown depth", CODE("\x55\x48\x89\xe5\x48\x29\xfc\x90\xc9\xc3"),
	  "0:rsp+8 1:rsp+16,rbp=-16 4:rbp+16,rbp=-16 9:rsp+8 a." },
	{ "registers stored, not pushed",
	  CODE("\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x31\xed\x48\x8b\x6c\x24\x10\x48\x83\xc4\x18\xc3"),
	  "0:rsp+8 4:rsp+32 9:rsp+32,rbp=-16 14:rsp+8 15." },
	/* pop rax; push r10; push rbx; push rax; push rbp; mov rbp, rsp; leave; pop rcx; add rsp, 16; push rcx; ret */
	{ "arguments below the return address", CODE("\x58\x41\x52\x53\x50\x55\x48\x89\xe5\xc9\x59\x48\x83\xc4\x10\x51\xc3"),
	  "0:rsp+8 1:rsp+0 3:rsp+8,ra=rax 4:rsp+16,rbx=-16,ra=rax 5:rsp+8,rbx=0 6:rsp+16,rbx=0,rbp=-16 "
	  "9:rbp+16,rbx=0,rbp=-16 a:rsp+8,rbx=0 b:rsp+0,rbx=0 "
	  "f:rsp-16 10:rsp+8 11." },
	/* pop rcx; sub rsp, rax; push rcx; ret: any number of them */
	{ "arguments by the dozen", CODE("\x59\x48\x29\xc4\x51\xc3"), "0:rsp+8 1:rsp+0 4:rsp+0,ra=rcx 5:rsp+8 6." },
	/* pop rdx; syscall; push rdx; ret: as musl's vfork keeps it from its child */
	{ "return address in a register", CODE("\x5a\x0f\x05\x52\xc3"), "0:rsp+8 1:rsp+0 3:rsp+0 4:rsp+8 5." },
	/* push rbp; mov rbp, rsp; push rax; push rcx; mov rbp, [rbp]; [rsp + 8] = [rsp + 24] = [rsp]; add rsp, 8; jmp away
	 */
	{ "arguments put where the return address was",
	  CODE("\x55\x48\x89\xe5\x50\x51\x48\x8b\x6d\x00\x4c\x8b\x54\x24\x18\x4c\x89\x54\x24\x08\x4c\x8b\x14\x24\x4c\x89"
	       "\x54\x24\x18\x48\x83\xc4\x08\xe9\x00\x01\x00\x00"),
	  "0:rsp+8 1:rsp+16,rbp=-16 4:rbp+16,rbp=-16 a:rsp+32,rbp=-16 1d:rsp+16,rbp=0 21:rsp+8,rbp=0 26." },
	/* push rbp; mov rbp, rsp; sub rsp, 8; test edi, edi; je 1f; push rax; call elsewhere (which pops it); 1: mov rbp,
	 * [rbp]; add rsp, 16; jmp elsewhere */
	{ "a function that takes its arguments away is called",
	  CODE("\x55\x48\x89\xe5\x48\x83\xec\x08\x85\xff\x74\x06\x50\xe8\x00\x01\x00\x00\x48\x8b\x6d\x00\x48\x83\xc4\x10\xe9"
	       "\x00\x01\x00\x00"),
	  "0:rsp+8 1:rsp+16,rbp=-16 4:rbp+16,rbp=-16 16:rsp+24,rbp=-16 1a:rsp+8 1f." },
	/* pop r15; push rbp; mov rbp, rsp; push r12; push r15; xor eax, eax; ret */
	{ "a frame made for the caller", CODE("\x41\x5f\x55\x48\x89\xe5\x41\x54\x41\x57\x31\xc0\xc3"),
	  "0:rsp+8 2:rsp+0 3:rsp+8,rbp=-8,ra=r15 6:rbp+16,rbp=-16 a:rsp+8,r12=0 d." },
	/* mov r8, [rbp - 16]; push rax; call elsewhere; pop rax; mov rsp, rbp; pop rbp; pop r8; lea rsp, [rsp + 8 * rbx];
	 * push r8; ret */
	{ "the end of a caller's frame",
	  CODE("\x4c\x8b\x45\xf0\x50\xe8\x00\x01\x00\x00\x58\x48\x89\xec\x5d\x41\x58\x48\x8d\x24\xdc\x41\x50\xc3"),
	  "0:rbp+16,rbp=-16 f:rsp+8 11:rsp+0 15:rsp+0,ra=r8 17:rsp+8 18." },
	{ "return address overwritten", CODE("\x48\x89\x04\x24\xc3"), "0:rsp+8 4." },
	{ "enter", CODE("\xc8\x20\x00\x00\xc9\xc3"), "0:rsp+8 4:rbp+16,rbp=-16 5:rsp+8 6." },
	{ "two paths that agree", CODE("\x50\x85\xff\x74\x02\x31\xc0\x58\xc3"), "0:rsp+8 1:rsp+16 8:rsp+8 9." },
	{ "two paths that do not", CODE("\x85\xff\x74\x01\x50\x90\xc3"), "0:rsp+8 5." },
	{ "behind an unconditional jump", CODE("\x50\xeb\x02\x0f\x0b\x58\xc3"), "0:rsp+8 1:rsp+16 3:- 5:rsp+16 6:rsp+8 7." },
	{ "a return where none can be", CODE("\x50\xc3"), "0." },
	{ "the same with a frame pointer", CODE("\x55\x48\x89\xe5\x50\xc3"), "0:- 4:rbp+16,rbp=-16 6." },
	{ "its own address", CODE("\xe8\x00\x00\x00\x00\x58\xc3"), "0:rsp+8 5:rsp+16 6:rsp+8 7." },
	{ "realigned, old rsp in rax, then in the frame",
	  CODE("\x48\x89\xe0\x55\x48\x83\xe4\xc0\x48\x83\xec\x40\x48\x89\x44\x24\x08\x31\xed\xe8\x00\x01\x00\x00\x48\x8b\x74"
	       "\x24\x08"
	       "\x48\x8b\x6e\xf8\x48\x8d\x26\xc3"),
	  "0:rsp+8 4:rsp+16,rbp=-16 8:rax+8,rbp=-16 11:*(rsp+8)+8,rbp=-16 24:rsp+8 25." },
	{ "realigned by gcc: the return address copied, the CFA kept in r10 and then at rbp - 8",
	  CODE("\x4c\x8d\x54\x24\x08\x48\x83\xe4\xc0\x41\xff\x72\xf8\x55\x48\x89\xe5\x41\x52\x53\x48\x83\xec\x20\xe8\x00"
	       "\x01\x00\x00"
	       "\x48\x83\xc4\x20\x5b\x41\x5a\x5d\x49\x8d\x62\xf8\xc3"),
	  "0:rsp+8 9:r10+0 11:r10+0,rbp=fp+0 13:*(rbp-8)+0,rbp=fp+0 14:*(rbp-8)+0,rbx=fp-16,rbp=fp+0 "
	  "22:*(rbp-8)+0,rbp=fp+0 24:r10+0,rbp=fp+0 25:r10+0 29:rsp+8 2a." },
	{ "loop that probes the stack",
	  CODE("\x4c\x8d\x9c\x24\x00\x00\xff\xff\x48\x81\xec\x00\x10\x00\x00\x48\x83\x0c\x24\x00\x4c\x39\xdc\x75\xef\xe8\x00"
	       "\x01\x00"
	       "\x00\x48\x81\xc4\x00\x00\x01\x00\xc3"),
	  "0:rsp+8 8:r11+65544 19:rsp+65544 25:rsp+8 26." },
	{ "first frame of a thread", CODE("\x0f\x05\x85\xc0\x75\x07\x31\xed\x5f\x41\xff\xd1\xf4\xc3"),
	  "0:rsp+8 2:rsp+8 8:root d:rsp+8 e." },
	{ "switch of coroutines", CODE("\x55\x53\x48\x89\x27\x48\x89\xf4\x5b\x5d\xc3"),
	  "0:rsp+8 1:rsp+16,rbp=-16 2:rsp+24,rbx=-24,rbp=-16 9:rsp+16,rbp=-16 a:rsp+8 b." },
	{ "another stack, not to be left again", CODE("\x48\x89\xf4\xff\xd2\x0f\x0b"), "0:rsp+8 3." },
	{ "rbp used for something else", CODE("\x31\xed\xc3"), "0:rsp+8 2." },
	{ "jump table", CODE("\x50\xff\xe0\x90\x58\xc3\x58\xc3"),
	  "0:rsp+8 1:rsp+16 3:- 4:rsp+16 5:rsp+8 6:rsp+16 7:rsp+8 8." },
	{ "a call that never returns, before another path's code", CODE("\x85\xff\x75\x06\x50\xe8\x00\x01\x00\x00\xc3"),
	  "0:rsp+8 5:rsp+16 a:rsp+8 b." },
	{ "the same, seen only when the other path comes",
	  CODE("\xeb\x07\x50\xe8\x00\x01\x00\x00\xc3\x85\xff\x74\xf5\x75\xf9"), "0:rsp+8 3:rsp+16 8:rsp+8 f." },
	/* test edi, edi; je; push rbp; mov rbp, rsp; call; pop rbp; ret; jmp; mov eax, edi; ret */
	{ "a jump that no path reaches, to code without a frame",
	  CODE("\x85\xff\x74\x0d\x55\x48\x89\xe5\xe8\xf3\x0f\x00\x00\x5d\xc3\xeb\x00\x89\xf8\xc3"),
	  "0:rsp+8 5:rsp+16,rbp=-16 8:rbp+16,rbp=-16 e:rsp+8 14." },
	{ "no instruction", CODE("\x50\x06\xc3"), "0:rsp+8 1." },
};

#endif
