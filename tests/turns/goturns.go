// SPDX-License-Identifier: Apache-2.0

// Go's ends and turns: goexit, mcall, systemstack, morestack and the scheduler's own stacks. Prints what is right as turns.h
// says. GOTURNS CASE SECONDS
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
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

const root = `(runtime\.goexit(\.abi0)?;(runtime\.main;main\.main;)?(main\.case\w+(\.gowrap\d+|\.func\d+)?;)?)`

// What the runtime and the library may be in; older assembly names no package.
const inside = `runtime|internal|sync|syscall|time|unique|os|fmt|strconv|vdso:|gosave_|indexbytebody|memeqbody|cmpbody|countbody|aeshashbody`

// What the runtime does on the side: its own goroutines, threads that look for work, the timer's signals.
const side = `runtime\.goexit(\.abi0)?;main\.case\w+\.\w+|runtime\.(goexit|mstart|mcall|rt0_go)(\.abi0)?(;(` + inside + `)[^;]*)*` +
	`|(runtime\.goexit(\.abi0)?;runtime\.main;)?runtime\.morestack(\.abi0)?;runtime\.newstack;runtime\.(gopreempt_m|goschedImpl|preemptPark)[^|]*` +
	`|(runtime\.mcall(\.abi0)?;runtime\.[^|]*;)?gogo|libc:(;libc:)?;runtime\.[^|]*|_rt0_amd64(_linux)?|runtime\.(clone|rt0_go)(\.abi0)?(;runtime\.[^|]*)?` +
	`|runtime\.goexit(\.abi0)?;runtime\.main;main\.main(;main\.case\w+)?(;main\.running|;os\.\S+|;fmt\.\S+|;strconv\.\S+)?(;(` + inside + `)[^;]*)*`

// The frames of the runtime that may interrupt a Go function anywhere: asynchronous preemption.
const preempt = `(;runtime\.asyncPreempt(\.abi0)?(;runtime[^;]*)*|;(runtime\.)?sigreturn\S*|;runtime\.sigreturn__sigaction(\.abi0)?(;runtime[^;]*)*)?`

func told(stacks []string, spot string, least int) {
	for _, s := range stacks {
		fmt.Printf("stack %s\n", s)
	}
	fmt.Printf("stack %s\n", side)
	fmt.Printf("seen %d %s\n", least, spot)
}

//go:noinline
func goexit(done chan bool) {
	for running() {
		leaf()
	}
	done <- true
}

func caseGoexit() {
	told([]string{root + `main\.goexit(;main\.leaf` + preempt + `|;main\.running(;[^;]+)*|(;runtime[^;]*)+)?`}, `^`+root+`main\.goexit;main\.leaf\|`, 10)
	done := make(chan bool)
	go goexit(done)
	<-done
}

// Goroutines that do nothing but give way to one another.
//
//go:noinline
func yielder(done chan bool) {
	for running() {
		for i := 0; i < 3000; i++ {
			runtime.Gosched()
		}
	}
	done <- true
}

func caseMcall() {
	told([]string{root + `main\.yielder(;main\.running(;[^;]+)*|(;runtime[^;]*)+)?`}, `^runtime\.mcall(\.abi0)?;runtime\.`, 10)
	done := make(chan bool)
	for i := 0; i < 3; i++ {
		go yielder(done)
	}
	for i := 0; i < 3; i++ {
		<-done
	}
}

// A stack that grows while deep() goes down and is left behind with its goroutine.
//
//go:noinline
func deep(n int) uint64 {
	var room [64]byte
	room[n&63] = byte(n)
	if n == 0 {
		return uint64(room[5])
	}
	return deep(n-1) + uint64(room[n&63])
}

//go:noinline
func grower(done chan bool) {
	sink += deep(600)
	done <- true
}

func caseMorestack() {
	told([]string{root + `main\.grower((;main\.deep)*` + preempt + `|(;main\.deep)*;runtime\.morestack(_noctxt)?(\.abi0)?(;runtime[^;]*)*|(;main\.deep)*(;(` + inside + `)[^;]*)+)`},
		`;main\.grower(;main\.deep)+;runtime\.morestack(_noctxt)?(\.abi0)?(;runtime[^;]*)+`, 10)
	done := make(chan bool)
	for running() {
		for i := 0; i < 10; i++ {
			go grower(done)
			<-done
		}
	}
}

// Work that the runtime does on the system stack on behalf of a goroutine.
//
//go:noinline
func systemstack() {
	var m runtime.MemStats
	for i := 0; i < 20; i++ {
		runtime.ReadMemStats(&m)
		sink += m.Mallocs
	}
	runtime.Callers(0, make([]uintptr, 64))
}

func caseSystemstack() {
	told([]string{root + `main\.systemstack((;(` + inside + `)[^;]*)+)?`}, root+`main\.systemstack;runtime\.\S*;runtime\.systemstack(\.abi0)?;runtime\.`, 10)
	for running() {
		systemstack()
	}
}

// The vDSO is called on the thread's own stack.
//
//go:noinline
func now() {
	for i := 0; i < 1000; i++ {
		sink += uint64(time.Now().Nanosecond())
	}
}

func caseVdso() {
	told([]string{root + `main\.now((;time\.[^;]*|;runtime[^;]*|;vdso:\w*)*)`}, root+`main\.now;time\.[^|]*;vdso:`, 10)
	for running() {
		now()
	}
}

func main() {
	cases := map[string]func(){"goexit": caseGoexit, "mcall": caseMcall, "morestack": caseMorestack, "systemstack": caseSystemstack, "vdso": caseVdso}
	if len(os.Args) < 4 || cases[os.Args[1]] == nil {
		os.Exit(2)
	}
	seconds, _ = strconv.ParseFloat(os.Args[2], 64)
	limit = time.Now().Add(time.Duration(4 * seconds * float64(time.Second)))
	fmt.Printf("threads %s\n", os.Args[3])
	os.WriteFile("/proc/self/comm", []byte(os.Args[3]), 0)
	comm := append([]byte(os.Args[3]), 0)
	syscall.RawSyscall(syscall.SYS_PRCTL, 15, uintptr(unsafe.Pointer(&comm[0])), 0) // PR_SET_NAME
	cases[os.Args[1]]()
}
