/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the 32 functions of stubs.c, each through its stub. */
#define STUB(n)	 unsigned long stub##n(unsigned long x);
#define STUBS(n) STUB(n##0) STUB(n##1) STUB(n##2) STUB(n##3) STUB(n##4) STUB(n##5) STUB(n##6) STUB(n##7)
STUBS(0)
STUBS(1)
STUBS(2)
STUBS(3)
#undef STUB
#undef STUBS

#define CALL(n)	 x = stub##n(x);
#define CALLS(n) CALL(n##0) CALL(n##1) CALL(n##2) CALL(n##3) CALL(n##4) CALL(n##5) CALL(n##6) CALL(n##7)

__attribute__((noipa)) unsigned long caller(unsigned long x);
__attribute__((noipa)) unsigned long caller(unsigned long x)
{
	CALLS(0)
	CALLS(1)
	CALLS(2)
	CALLS(3)
	return x + 1;
}
