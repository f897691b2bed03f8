/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that is loaded while the program runs, and registered for debuggers: by gdb_jit_loader.c, or by LLVM's lli. It needs
 * nothing from outside, and keeps no frame pointers. In front of each function stands who calls it: "NAME: CALLER...", which
 * becomes the truth for judge.py; a * is the program. ROUND is a number that makes names differ.
 */
#ifndef ROUND
#define ROUND 0
#endif
#define PASTE(a, b) a##b
#define NAMED(a, b) PASTE(a, b)

enum { TURNS = 20000, DEPTH = 40 };

typedef int gdb_jit_back(int (*fn)(int n), int n);

/* made_mix: made_leaf made_wide made_down made_again_0 */
__attribute__((always_inline)) static inline unsigned made_mix(unsigned n)
{
	for (unsigned i = 0; i < TURNS; i++) {
		n = n * 1103515245 + 12345;
		__asm__ volatile("" : "+r"(n));
	}
	return n;
}

/* made_leaf: made_mid made_wide */
__attribute__((noinline)) static int made_leaf(int n)
{
	unsigned mixed = made_mix((unsigned)n);

	return (int)(mixed & 7);
}

/* made_mid: made_run made_back */
__attribute__((noinline)) int made_mid(int n)
{
	int sum = made_leaf(n);

	return sum + made_leaf(n + 1);
}

/* made_wide: made_run */
__attribute__((noinline)) static int made_wide(int n)
{
	char words[64 + (n & 63)]; /* its size is not known before */

	for (int i = 0; i < 64; i++)
		words[i] = (char)(n + i);
	__asm__ volatile("" : : "r"(words) : "memory");
	return made_leaf(words[n & 31]) + (int)(made_mix((unsigned)words[1]) & 1);
}

/* made_down: made_run made_down */
__attribute__((noinline)) static int made_down(int depth, int a, int b, int c)
{
	int sum;

	if (!depth)
		return (int)(made_mix((unsigned)a) & 3);
	sum = made_down(depth - 1, a + 1, b ^ a, c);
	__asm__ volatile("" : "+r"(sum), "+r"(b), "+r"(c));
	return sum + b + c;
}

/* made_back: * */
__attribute__((noinline)) static int made_back(int n)
{
	int sum = made_mid(n);

	__asm__ volatile("" : "+r"(sum));
	return sum + 1;
}

/* made_again_0: * */
__attribute__((noinline)) int NAMED(made_again_, ROUND)(int n)
{
	unsigned sum = made_mix((unsigned)n) + ROUND;

	__asm__ volatile("" : "+r"(sum));
	return (int)sum;
}

/* made_run: * */
__attribute__((noinline)) int made_run(gdb_jit_back *back, int n)
{
	int sum = made_mid(n);

	sum += made_wide(n);
	sum += made_down(DEPTH, n, n ^ 1, n ^ 2);
	sum += back(made_back, n);
	__asm__ volatile("" : "+r"(sum));
	return sum;
}

#ifdef WITH_MAIN
__attribute__((noinline)) static int call_back(int (*fn)(int n), int n)
{
	int sum = fn(n);

	__asm__ volatile("" : "+r"(sum));
	return sum;
}

int main(void)
{
	for (volatile int n = 0;; n++)
		(void)made_run(call_back, n);
}
#endif
