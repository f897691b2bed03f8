// SPDX-License-Identifier: Apache-2.0

// Spins with the labels of one span: its id, its trace and one of its own. "without": none.
//
//	in_span SECONDS [without]
package main

import (
	"context"
	"os"
	"runtime/pprof"
	"strconv"
	"time"
)

var sum uint64

func spin(end time.Time) {
	for time.Now().Before(end) {
		for i := uint64(0); i < 10000000; i++ {
			sum += i * i
		}
	}
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	if len(os.Args) > 2 {
		spin(end)
		return
	}
	labels := pprof.Labels("span_id", "00f067aa0ba902b7", "trace_id", "4bf92f3577b34da6a3ce929d0e0e4736", "endpoint", "GET /cart")
	pprof.Do(context.Background(), labels, func(context.Context) { spin(end) })
}
