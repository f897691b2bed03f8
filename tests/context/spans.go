// SPDX-License-Identifier: Apache-2.0

// Goroutines that work in spans of a millisecond, which their labels tell: a function for each kind of span, and one outside of all.
//
//	spans SECONDS GOROUTINES
//
// The last byte of a span's id is its kind, as in the function's name; the one before is the goroutine.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"
)

var sink [64]uint64

func spin(n int) {
	until := time.Now().Add(time.Millisecond)
	for time.Now().Before(until) {
		for i := uint64(0); i < 300; i++ {
			sink[n] += i * i
		}
	}
}

//go:noinline
func work0(n int) { spin(n); sink[n]++ }

//go:noinline
func work1(n int) { spin(n); sink[n]++ }

//go:noinline
func work2(n int) { spin(n); time.Sleep(500 * time.Microsecond); sink[n]++ }

//go:noinline
func work3(n int) { spin(n); sink[n]++ }

//go:noinline
func outside(n int) { spin(n); sink[n]++ }

func run(n int, until time.Time) {
	works := []func(int){work0, work1, work2, work3}
	for i := 0; time.Now().Before(until); i++ {
		kind := i % len(works)
		labels := pprof.Labels("span_id", fmt.Sprintf("%012x%02x%02x", i+1, n, kind), "trace_id", fmt.Sprintf("%032x", n+1),
			"kind", fmt.Sprint("work", kind))
		if kind == 1 { // as many as are taken
			more := []string{"a long value", string(make([]byte, 100)) + "é"}
			for k := 0; k < 12; k++ {
				more = append(more, fmt.Sprint("more", k), fmt.Sprint(k))
			}
			labels = pprof.Labels(append(more, "span_id", fmt.Sprintf("%012x%02x%02x", i+1, n, kind), "trace_id", fmt.Sprintf("%032x", n+1),
				"kind", "work1")...)
		}
		pprof.Do(context.Background(), labels, func(context.Context) { works[kind](n) })
		outside(n)
	}
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	count, _ := strconv.Atoi(os.Args[2])
	until := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	fmt.Println("go")
	var all sync.WaitGroup
	for n := 0; n < count; n++ {
		all.Add(1)
		go func(n int) {
			defer all.Done()
			if n%2 == 0 {
				runtime.LockOSThread()
			}
			run(n, until)
		}(n)
	}
	all.Wait()
}
