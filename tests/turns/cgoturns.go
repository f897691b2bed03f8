// SPDX-License-Identifier: Apache-2.0

// Between Go and C, both ways: a goroutine calls C, C calls back into Go, a thread that C made calls Go.
// CGOTURNS CASE SECONDS COMM
package main

/*
#cgo CFLAGS: -O2 -fomit-frame-pointer
#cgo LDFLAGS: -pthread
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

static volatile unsigned long c_sink;

extern void inGo(int n);

__attribute__((noipa)) static void c_leaf(void)
{
	unsigned long x = c_sink;

	for (int i = 0; i < 240000; i++)
		x = x * 6364136223846793005UL + 1442695040888963407UL;
	c_sink = x;
}

__attribute__((noipa)) static void c_work(void)
{
	c_leaf();
	c_sink++;
}

__attribute__((noipa)) static void c_back(int n)
{
	inGo(n);
	c_sink++;
}

__attribute__((noipa)) static void *c_thread(void *arg)
{
	for (int i = 0; i < 300; i++)
		inGo(0);
	c_sink++;
	return arg;
}

static void c_start(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, c_thread, NULL))
		abort();
	pthread_join(thread, NULL);
	c_sink++;
}

static void c_name(const char *name)
{
	prctl(PR_SET_NAME, name);
}
*/
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

var sink uint64
var seconds float64
var limit time.Time

//go:noinline
func leaf() {
	x := sink
	for i := 0; i < 300000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	sink = x
}

//go:noinline
func running() bool {
	var u syscall.Rusage
	syscall.Getrusage(0, &u)
	used := float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)*1e-6
	return used < seconds && time.Now().Before(limit)
}

//export inGo
func inGo(n C.int) {
	if n > 0 {
		C.c_work()
	} else {
		leaf()
	}
}

//go:noinline
func callC() {
	C.c_work()
	sink++
}

//go:noinline
func callBack(n int) {
	C.c_back(C.int(n))
	sink++
}

const root = `runtime\.goexit(\.abi0)?;runtime\.main;main\.main;`
const toC = `;main\._Cfunc_\w+(\.abi0)?;runtime\.cgocall;runtime\.asmcgocall(\.abi0)?;(_cgo_\w+;)?`
const toGo = `(inGo;)?crosscall2;runtime\.cgocallback(\.abi0)?;runtime\.cgocallbackg(\.abi0)?(;runtime\.cgocallbackg)?;runtime\.cgocallbackg1;(_cgoexp_\w+;)?main\.(_cgoexp_\w+;main\.)?inGo`
const runtimeOnly = `(libc:;)*(libc:|_rt0_amd64(_linux)?|runtime\.\S*|x_cgo\w*|threadentry|crosscall\w*|_?start\w*|_cgo\w*|main|ld:)(;(runtime|internal|syscall|time|crosscall|threadentry|x_cgo|_cgo|libc:|main\.main|main\.running|os\.|fmt\.|sync|ld:)[^;]*)*`

func told(stack, spot string) {
	fmt.Printf("stack %s\n", stack)
	fmt.Printf("stack %s\n", runtimeOnly)
	fmt.Printf("seen 10 %s\n", spot)
}

func main() {
	if len(os.Args) < 4 {
		os.Exit(2)
	}
	seconds, _ = strconv.ParseFloat(os.Args[2], 64)
	limit = time.Now().Add(time.Duration(4 * seconds * float64(time.Second)))
	C.c_name(C.CString(os.Args[3]))
	os.WriteFile("/proc/self/comm", []byte(os.Args[3]), 0)
	partly := `(;(runtime|main|crosscall2|inGo|_cgo|libc:)[^;]*)*`
	switch os.Args[1] {
	case "to_c":
		told(root+`main\.callC(`+toC+`c_work(;c_leaf)?|(;runtime[^;]*|;main\._Cfunc_\w+(\.abi0)?|;_cgo_\w+)*)`, root+`main\.callC`+toC+`c_work;c_leaf\|`)
		for running() {
			callC()
		}
	case "to_go":
		// Go 1.19's asmcgocall has no frame pointer, and a sample that misses below it finds its goroutine's stack no more.
		fmt.Println(`odd 60 ^runtime\.asmcgocall(\.abi0)?;c_back;`)
		told(root+`main\.callBack(`+toC+`c_back;`+toGo+`;main\.leaf|`+partly+`(;c_back`+partly+`)?)`, root+`main\.callBack`+toC+`c_back;`+toGo+`;main\.leaf\|`)
		for running() {
			callBack(0)
		}
	case "both":
		told(root+`main\.callBack(`+toC+`c_back;`+toGo+toC+`c_work;c_leaf|`+partly+`(;c_back`+partly+`(;c_work)?)?)`, root+`main\.callBack`+toC+`c_back;`+toGo+toC+`c_work;c_leaf\|`)
		for running() {
			callBack(1)
		}
	case "thread":
		told(`libc:;libc:;c_thread;(`+toGo+`;main\.leaf(;libc:;runtime\.[^;]*)*(;runtime[^;]*)*|(inGo|crosscall2)?`+partly+`)`, `^libc:;libc:;c_thread;`+toGo+`;main\.leaf\|`)
		for running() {
			C.c_start()
		}
	}
}
