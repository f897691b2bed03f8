#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program burns in one function for a while, then in another: its second half selected in the page's timeline and seen in Diff has
# these two as changed, and the rest grey.
. "$TOP/tests/system/lib.sh"
need_bpf

cat >phases.c <<'END'
#include <time.h>
volatile unsigned long sink;
#define BURN(name) \
	__attribute__((noinline)) static void name(void) \
	{ \
		for (int i = 0; i < 300000; i++) \
			sink += i; \
	}
BURN(phase_f)
BURN(phase_g)
BURN(steady_a)
BURN(steady_b)
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
int main(void)
{
	double start = now(), at;

	while ((at = now()) < start + 8) {
		if (at < start + 4) {
			phase_f();
			phase_f();
		} else {
			phase_g();
			phase_g();
		}
		steady_a();
		steady_b();
	}
}
END
# The same code on the same places of lines of the cache takes the same time.
gcc -O1 -g -falign-functions=64 -o phases phases.c
"$HEARTH" record -q -F 499 -o phases.otlp -- ./phases 2>err || fail "exit status $?: $(cat err)"
start served "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off --store :memory:
until_true 10 grep -q 'listening on http://127.0.0.1:[1-9]' served.err || fail "does not listen: $(cat served.err)"
url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' served.err)
curl -sf -o answer -H 'Content-Type: application/x-protobuf' --data-binary @phases.otlp "$url/v1development/profiles" || fail "not taken: $(cat answer)"

status=0
python3 "$TOP/tests/browser/page_slowdown.py" "$url" . || status=$?
[ $status != 77 ] || skip "no chromium and chromedriver here"
exit $status
