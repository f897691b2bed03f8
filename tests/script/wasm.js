// SPDX-License-Identifier: Apache-2.0
// A Node program that calls functions of WebAssembly, and is called by them, for tests/script/judge.py. Node 16 and later.
//
// usage: node wasm.js SECONDS
//
// Prints what its stacks may look like, as calls.js does. A function of WebAssembly is called (wasm), whichever it is, and has no file.
// Run it with --no-wasm-inlining where node has that: functions that were inlined are in no stack.
'use strict'

// --- a module, by hand: https://webassembly.github.io/spec/core/binary ---
const [I32, I64, F64, VOID] = [0x7f, 0x7e, 0x7c, 0x40]

function number(n) { // LEB128, not negative
	const bytes = []
	for (; n > 127; n >>>= 7)
		bytes.push(n & 127 | 128)
	return bytes.concat(n)
}
const list = items => [...number(items.length), ...items.flat()]
const section = (id, items) => [id, ...list([...list(items)])]
const text = string => list([...Buffer.from(string)])
const type = (parameters, results) => [0x60, ...list(parameters), ...list(results)]
const body = (locals, ...code) => list([...list(locals.map(t => [1, t])), ...code.flat(), 0x0b])
const get = local => [0x20, local], set = local => [0x21, local], small = n => [0x41, n & 63], call = f => [0x10, f]
const [ADD, SUB, LESS, IF, ELSE, END, LOOP, AGAIN] = [[0x6a], [0x6b], [0x48], [0x04], [0x05], [0x0b], [0x03, VOID], [0x0d, 0]]

const LEAF = 0, DEEPEST = 1, BACK = 2, DOWN = 3, MANY = 6 // numbers of functions, imported ones first
const compiled = new WebAssembly.Module(new Uint8Array([
	...Buffer.from('\0asm'), 1, 0, 0, 0,
	...section(1, [type([I32], [I32]), type([I32, I64, I64, I64, I64, I64, I64, I64, I64, F64], [I32])]),
	...section(2, ['leaf', 'deepest', 'back'].map(name => [...text('js'), ...text(name), 0, 0])),
	...section(3, [0, 0, 0, 1, 0, 0].map(t => [t])),
	...section(4, [[0x70, 0, 1]]),
	...section(7, ['down', 'loop', 'there', 'many', 'indirect', 'arguments'].map((name, i) => [...text(name), 0, DOWN + i])),
	...section(9, [[0, ...small(0), 0x0b, ...list([[DOWN]])]]),
	...section(10, [
		// down(n): n ? down(n - 1) + 1 : deepest(n)
		body([], get(0), IF, I32, get(0), small(1), SUB, call(DOWN), small(1), ADD, ELSE, get(0), call(DEEPEST), END),
		// loop(n): counts
		body([I32], LOOP, get(1), small(1), ADD, set(1), get(1), get(0), LESS, AGAIN, END, get(1), call(LEAF)),
		// there(n): back(n) + 1, which calls it again
		body([], get(0), call(BACK), small(1), ADD),
		// many(...): arguments on the stack
		body([F64], get(9), get(9), 0xa0, set(10), get(0), call(LEAF), get(8), 0xa7, ADD),
		// indirect(n): by a table
		body([], get(0), small(0), 0x11, 0, 0, small(2), ADD),
		// arguments(n): many(n, 0, 0, ...)
		body([], get(0), ...Array(8).fill([0x42, 1]), 0x44, ...Array(8).fill(0), call(MANY)),
	]),
]))

// --- the functions of JavaScript ---
const source = require('fs').readFileSync(__filename, 'latin1')
const truth = ['root (anonymous)', 'frame (anonymous) 1 99999 *', 'deep (wasm) 41 deepest']
let sink = 0

function calledBy(f, ...callers) {
	const first = source.slice(0, source.indexOf(f.toString())).split('\n').length
	truth.push(`frame ${f.name} ${first} ${first + f.toString().split('\n').length - 1} ${callers.join(' ')}`)
}

function spin(n) {
	for (let i = 0; i < 20000; i++)
		sink = (sink * 31 + i) | 0
	return n | 0
}
calledBy(spin, 'leaf', 'deepest', 'back')

function leaf(n) {
	return spin(n) + 1
}
calledBy(leaf, '(wasm)')

function deepest(n) {
	return spin(n) + 1
}
calledBy(deepest, '(wasm)')

function back(n) {
	return n > 0 ? run.there(n - 1) + 1 : spin(n)
}
calledBy(back, '(wasm)')

const run = new WebAssembly.Instance(compiled, { js: { leaf, deepest, back } }).exports

function useDeep() {
	return run.down(40)
}
calledBy(useDeep, 'main')

function useLoop() {
	return run.loop(30000)
}
calledBy(useLoop, 'main')

function useThere() {
	return run.there(6)
}
calledBy(useThere, 'main')

function useIndirect() {
	return run.indirect(39)
}
calledBy(useIndirect, 'main')

function useArguments() {
	return run.arguments(3)
}
calledBy(useArguments, 'main')
truth.push('frame (wasm) 0 0 (wasm) back useDeep useLoop useThere useIndirect useArguments')

function main(end) {
	while (Date.now() < end)
		for (const use of [useDeep, useLoop, useThere, useIndirect, useArguments])
			use()
}
calledBy(main, '(anonymous)')

console.log(truth.join('\n'))
main(Date.now() + 1000 * Number(process.argv[2]))
