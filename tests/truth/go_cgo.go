// SPDX-License-Identifier: Apache-2.0

// A goroutine that calls C, which calls back into Go: three stretches of stack on two stacks.   cgo_chain SECONDS
package main

/*
extern unsigned long goBack(int turns, unsigned long x);
static volatile unsigned long sink;

__attribute__((noinline)) static unsigned long inner(int turns, unsigned long x)
{
	sink += goBack(turns, x + 1);
	return sink;
}

__attribute__((noinline)) static unsigned long middle(int turns, unsigned long x)
{
	sink += inner(turns, x + 1);
	return sink;
}
*/
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

//go:noinline
func leaf(turns int, x uint64) uint64 {
	for i := 0; i < turns; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//go:noinline
//export goBack
func goBack(turns C.int, x C.ulong) C.ulong {
	return C.ulong(leaf(int(turns), uint64(x)) + 1)
}

//go:noinline
func outer(turns int, x uint64) uint64 {
	return uint64(C.middle(C.int(turns), C.ulong(x))) + 1
}

func main() {
	seconds := 0.0
	if len(os.Args) == 2 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	if seconds <= 0 {
		fmt.Fprintln(os.Stderr, "usage: cgo_chain SECONDS")
		os.Exit(2)
	}
	// cgocallbackg has a wrapper of its own name, which passes arguments from the stack on in registers
	fmt.Println("chain runtime.main main.main main.outer main._Cfunc_middle runtime.cgocall runtime.asmcgocall " +
		"_cgo_Cfunc_middle middle inner goBack crosscall2 runtime.cgocallback runtime.cgocallbackg " +
		"runtime.cgocallbackg runtime.cgocallbackg1 _cgoexp_goBack main.goBack main.leaf")
	fmt.Println("calls * runtime.* time.* fmt.* os.* strconv.* _cgo_* libc: *__restore_rt\ncalls runtime.main *")
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	x := uint64(0)
	for time.Now().Before(end) {
		x = outer(4000000, x)
	}
}
