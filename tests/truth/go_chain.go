// SPDX-License-Identifier: Apache-2.0

// Goroutines that spend their time at the end of known calls: below main, below a function, below a closure, and 400
// recursive calls deep. The leaf has no frame of its own.   go_chain SECONDS
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const depth = 400

var (
	sink [4]uint64
	end  time.Time
	wait sync.WaitGroup
)

//go:noinline
func leaf(x uint64) uint64 {
	for i := 0; i < 4000000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//go:noinline
func mid(x uint64) uint64 {
	return leaf(x) + 1
}

//go:noinline
func outer(x uint64) uint64 {
	var room [64]uint64
	room[x%64] = mid(x)
	return room[x%64]
}

//go:noinline
func recurse(n int, x uint64) uint64 {
	if n == 0 {
		return leaf(x)
	}
	return recurse(n-1, x) + 1
}

//go:noinline
func worker() {
	for time.Now().Before(end) {
		sink[1] = outer(sink[1])
	}
	wait.Done()
}

type walker struct{ depth int }

//go:noinline
func (w *walker) deep() {
	for time.Now().Before(end) {
		sink[3] = recurse(w.depth-1, sink[3])
	}
	wait.Done()
}

func main() {
	seconds := 0
	if len(os.Args) == 2 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	if seconds < 1 {
		fmt.Fprintln(os.Stderr, "usage: go_chain SECONDS")
		os.Exit(2)
	}
	fmt.Println("chain runtime.main main.main main.outer main.mid main.leaf")
	fmt.Println("chain main.worker main.outer main.mid main.leaf")
	fmt.Println("chain main.main.func1 main.mid main.leaf")
	fmt.Println("chain main.main.func2 main.(*walker).deep" + strings.Repeat(" main.recurse", depth) + " main.leaf")
	end = time.Now().Add(time.Duration(seconds) * time.Second)
	wait.Add(3)
	go worker()
	go func() {
		for time.Now().Before(end) {
			sink[2] = mid(sink[2])
		}
		wait.Done()
	}()
	go func() {
		(&walker{depth}).deep()
	}()
	for time.Now().Before(end) {
		sink[0] = outer(sink[0])
	}
	wait.Wait()
}
