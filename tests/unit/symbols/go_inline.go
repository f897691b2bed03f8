// SPDX-License-Identifier: Apache-2.0

// Prints stacks whose calls are inlined into each other: several deep, several in one function, by methods and type arguments.
package main

import (
	"os"
	"runtime/debug"
)

type box[T any] struct{ value T }

//go:noinline
func report() {
	os.Stdout.Write(debug.Stack())
}

func leaf(n int) int {
	report()
	return n + 1
}

func middle(n int) int {
	return leaf(n) * 2
}

func (b box[T]) get() T {
	report()
	return b.value
}

//go:noinline
func outer(n int) int {
	n += middle(n)
	n += leaf(n)
	n += box[int]{n}.get()
	return n
}

func main() {
	if outer(len(os.Args)) == middle(7) {
		os.Exit(1)
	}
	func() { outer(2) }()
}
