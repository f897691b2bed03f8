/* SPDX-License-Identifier: Apache-2.0 */
/* The library of calls.cc; it is stripped. */
int from_library(int n);
__attribute__((noinline)) int from_library(int n)
{
	__asm__ volatile("" ::: "memory");
	return n * 3;
}
