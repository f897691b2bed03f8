/* SPDX-License-Identifier: Apache-2.0 */
/* A library of many small functions, whose callers spend their time in the stubs of the procedure linkage table. */
#define STUB(n)                                                           \
	__attribute__((noinline)) unsigned long stub##n(unsigned long x); \
	__attribute__((noinline)) unsigned long stub##n(unsigned long x)  \
	{                                                                 \
		return x + 1##n;                                          \
	}
#define STUBS(n) STUB(n##0) STUB(n##1) STUB(n##2) STUB(n##3) STUB(n##4) STUB(n##5) STUB(n##6) STUB(n##7)

STUBS(0)
STUBS(1)
STUBS(2)
STUBS(3)
