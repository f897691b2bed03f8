// SPDX-License-Identifier: Apache-2.0

// Goroutines that spend their time at the end of known calls: below main, below a function, below a closure, and 400
// recursive calls deep. The leaf has no frame of its own. A fifth of the time it does nothing, so that samples hit every
// instruction on the way there and back.   go_chain SECONDS
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	depth     = 400
	longTurns = 4000000
	noTurns   = 2
)

var (
	sink [4]uint64
	end  time.Time
	wait sync.WaitGroup
)

//go:noinline
func leaf(turns int, x uint64) uint64 {
	for i := 0; i < turns; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//go:noinline
func mid(turns int, x uint64) uint64 {
	return leaf(turns, x) + 1
}

//go:noinline
func outer(turns int, x uint64) uint64 {
	var room [64]uint64
	room[x%64] = mid(turns, x)
	return room[x%64]
}

//go:noinline
func recurse(turns, n int, x uint64) uint64 {
	if n == 0 {
		return leaf(turns, x)
	}
	return recurse(turns, n-1, x) + 1
}

//go:noinline
func worker() {
	turns := phases()
	for turns.next() {
		sink[1] = outer(turns.now, sink[1])
	}
	wait.Done()
}

type walker struct{ depth int }

//go:noinline
func (w *walker) deep() {
	turns := phases()
	for turns.next() {
		sink[3] = recurse(turns.now, w.depth-1, sink[3])
	}
	wait.Done()
}

// How much the leaf has to do: once much, then nothing for a quarter of the time that took, and again.
type phase struct {
	now, calls  int
	start, till time.Time
}

//go:noinline
func phases() phase { return phase{start: time.Now()} }

//go:noinline
func (p *phase) next() bool {
	p.calls++
	if p.now == noTurns && p.calls%64 != 0 {
		return true
	}
	now := time.Now()
	if p.now == longTurns {
		p.now = noTurns
		p.till = now.Add(now.Sub(p.start) / 4)
	} else if now.After(p.till) {
		p.now = longTurns
		p.start = now
	}
	return now.Before(end)
}

func main() {
	seconds := 0.0
	if len(os.Args) == 2 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	if seconds <= 0 {
		fmt.Fprintln(os.Stderr, "usage: go_chain SECONDS")
		os.Exit(2)
	}
	fmt.Println("chain runtime.main main.main main.outer main.mid main.leaf")
	fmt.Println("chain main.worker main.outer main.mid main.leaf")
	fmt.Println("chain main.main.func1 main.mid main.leaf")
	fmt.Println("chain main.main.func2 main.(*walker).deep" + strings.Repeat(" main.recurse", depth) + " main.leaf")
	fmt.Println("calls * runtime.*\ncalls main.* main.phases main.(*phase).next time.* sync.*")
	fmt.Println("calls main.main fmt.* os.* strconv.* strings.*\ncalls runtime.main *\nsweep\nfull 60")
	end = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	wait.Add(3)
	go worker()
	go func() {
		turns := phases()
		for turns.next() {
			sink[2] = mid(turns.now, sink[2])
		}
		wait.Done()
	}()
	go func() {
		(&walker{depth}).deep()
	}()
	turns := phases()
	for turns.next() {
		sink[0] = outer(turns.now, sink[0])
	}
	wait.Wait()
}
