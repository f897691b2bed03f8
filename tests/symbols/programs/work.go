// SPDX-License-Identifier: Apache-2.0

// Methods, closures and generic code, inlined into each other.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

type shape interface{ area() float64 }

type square struct{ side float64 }

func (s *square) area() float64 { return s.side * s.side }

func turn(x uint64, n uint) uint64 { return x<<n | x>>(64-n) }

func mix(a, b uint64) uint64 {
	a += turn(b, 13)
	return a ^ turn(a, 7)
}

//go:noinline
func hash(text string) (h uint64) {
	for i := 0; i < len(text); i++ {
		h = mix(h, uint64(text[i]))
	}
	return h
}

func most[T any](list []T, weight func(T) uint64) (best T) {
	var found uint64
	for _, item := range list {
		if w := weight(item); w >= found {
			best, found = item, w
		}
	}
	return best
}

func main() {
	words := strings.Fields("the quick fox and the lazy dog")
	sort.Slice(words, func(i, j int) bool { return hash(words[i]) < hash(words[j]) })
	shapes := []shape{&square{1}, &square{2}}
	sum := 0.0
	for _, s := range shapes {
		sum += s.area()
	}
	fmt.Fprintln(os.Stdout, words, most(words, hash), sum)
}
