// SPDX-License-Identifier: Apache-2.0

// Keeps and churns memory in known ways. Prints "NAME BYTES" for what each function keeps, then "ready"; a line on its input
// makes it write its own heap profile to the file named there, and print how many bytes the functions that only churn have
// allocated so far.
//
//	heap MB_A_SECOND [MB_KEPT]
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync/atomic"
	"time"
)

type node struct {
	next *node
	pad  [48]byte
}

var (
	kept    [][]byte
	nodes   *node
	churned [2]atomic.Uint64
	sink    []byte
)

//go:noinline
func keepLarge(bytes int) int {
	for n := 0; n < bytes; n += 1 << 20 {
		kept = append(kept, make([]byte, 1<<20))
	}
	return bytes
}

func newNode() *node { // inlined
	return &node{next: nodes}
}

//go:noinline
func keepSmall(bytes int) int {
	for n := 0; n < bytes; n += 64 {
		nodes = newNode()
	}
	return bytes
}

//go:noinline
func keepMiddle(bytes int) int {
	for n := 0; n < bytes; n += 8192 {
		kept = append(kept, make([]byte, 8192))
	}
	return bytes
}

//go:noinline
func keepDeep(depth, bytes int) int {
	if depth > 0 {
		return keepDeep(depth-1, bytes)
	}
	for n := 0; n < bytes; n += 4096 {
		kept = append(kept, make([]byte, 4096))
	}
	return bytes
}

//go:noinline
func churnSmall(bytes int) {
	for n := 0; n < bytes; n += 256 {
		sink = make([]byte, 256)
	}
	churned[0].Add(uint64(bytes))
}

//go:noinline
func churnLarge(bytes int) {
	for n := 0; n < bytes; n += 64 << 10 {
		sink = make([]byte, 64<<10)
	}
	churned[1].Add(uint64(bytes))
}

func churn(bytesASecond int) {
	const each = 5 * time.Millisecond
	start := time.Now()
	for i := 1; ; i++ {
		part := bytesASecond / int(time.Second/each)
		churnSmall(part / 4)
		churnLarge(part / 4 * 3)
		time.Sleep(time.Until(start.Add(time.Duration(i) * each)))
	}
}

func number(i, otherwise int) int {
	if len(os.Args) <= i {
		return otherwise
	}
	n, err := strconv.Atoi(os.Args[i])
	if err != nil {
		panic(err)
	}
	return n
}

func main() {
	kb := number(2, 64) << 20 / 4
	fmt.Println("keepLarge", keepLarge(kb))
	fmt.Println("keepSmall", keepSmall(kb))
	fmt.Println("keepMiddle", keepMiddle(kb))
	fmt.Println("keepDeep", keepDeep(20, kb))
	runtime.GC()
	runtime.GC()
	if mb := number(1, 0); mb > 0 {
		go churn(mb << 20)
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		file, err := os.Create(lines.Text())
		if err == nil {
			err = pprof.Lookup("heap").WriteTo(file, 0)
		}
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			panic(err)
		}
		fmt.Println("churnSmall", churned[0].Load())
		fmt.Println("churnLarge", churned[1].Load())
		fmt.Println("written")
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(nodes)
}
