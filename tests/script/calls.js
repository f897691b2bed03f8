// SPDX-License-Identifier: Apache-2.0
// A Node program that says what its stacks may look like, then runs, for tests/script/judge.py. Node 16 and later.
//
// usage: node calls.js SECONDS [CASE...]
//
// Prints a line "frame NAME FIRST LAST CALLER..." for each of its functions: the lines its frames may be on, and the functions it may
// be called by, directly or through V8 and C++; then "root NAME", and "deep NAME COUNT LEAF" (see judge.py). Blanks in names
// are printed as "_". A case is a way of calling; all of them when none is named.
'use strict'
const fs = require('fs')
const threads = require('worker_threads')

const source = fs.readFileSync(__filename, 'latin1')
const truth = []

function note(name, text, callers) {
	const at = source.indexOf(text)
	const first = source.slice(0, at).split('\n').length
	truth.push(`frame ${name} ${first} ${first + text.split('\n').length - 1} ${callers.join(' ')}`)
}

// A function that only these call.
function calledBy(f, ...callers) {
	note(f.name, f.toString(), callers)
}

calledBy(note, 'calledBy', '(anonymous)')
calledBy(calledBy, '(anonymous)')

// --- the end of all chains: short, so that it is inlined into its callers ---
function spin(n) {
	let x = 0
	for (let i = 0; i < n; i++)
		x = (x * 31 + i) | 0
	return x
}
calledBy(spin, 'leaf', 'compare', 'mapped', 'reduced', 'each', 'inner', 'method', 'Made', 'value', 'numbers', 'thrower', 'replaced',
	'toJSON', 'awaited', 'bound', 'applied', 'tagged', 'hot', 'dropped', 'evaluated', 'proxied', 'then', 'worker', 'stored', 'twice',
	'iterated', 'parted', 'big', 'get_value', 'set_stored')

// --- deep ---
function leaf(n) {
	return spin(n) + 1
}
calledBy(leaf, 'mid', 'down')

function mid(n) {
	const a = leaf(n)
	return a +
		leaf(n)
}
calledBy(mid, 'plain')

function plain() {
	return mid(300)
}
calledBy(plain, 'main')

function down(n) {
	return n ? down(n - 1) + 1
		: leaf(20000)
}
calledBy(down, 'down', 'deep')

function deep() {
	return down(200)
}
calledBy(deep, 'main')
truth.push('deep down 201 leaf')

// --- through builtins and back ---
function compare(a, b) {
	spin(20)
	return a - b
}
calledBy(compare, 'sort')

function sort() {
	return [5, 3, 9, 1, 7, 4, 8, 2, 6].sort(compare)
}
calledBy(sort, 'main')

function mapped(x) {
	return spin(200) + x
}
calledBy(mapped, 'map')

function map() {
	return [1, 2, 3, 4].map(mapped)
}
calledBy(map, 'main')

function reduced(a, x) {
	return spin(200) + a + x
}
calledBy(reduced, 'reduce')

function reduce() {
	return [1, 2, 3, 4].reduce(reduced, 0)
}
calledBy(reduce, 'main')

function each() {
	spin(200)
}
calledBy(each, 'forEach')

function forEach() {
	new Set([1, 2, 3]).forEach(each)
	new Map([[1, 2], [3, 4]]).forEach(each)
}
calledBy(forEach, 'main')

function parted(text) {
	return text + spin(100)
}
calledBy(parted, 'from')

function from() {
	return Array.from('abcd', parted)
}
calledBy(from, 'main')

function replaced(text) {
	return text + spin(100)
}
calledBy(replaced, 'replace')

function replace() {
	return 'one two three'.replace(/t\w+/g, replaced)
}
calledBy(replace, 'main')

const thing = {
	toJSON() {
		return spin(200)
	},
	get value() {
		return spin(200)
	},
	set stored(v) {
		spin(v)
	},
}
calledBy(thing.toJSON, 'stringify')
note('get_value', 'get value() {\n\t\treturn spin(200)\n\t}', ['getter'])
note('set_stored', 'set stored(v) {\n\t\tspin(v)\n\t}', ['setter'])

function stringify() {
	return JSON.stringify([thing, thing])
}
calledBy(stringify, 'main')

function getter() {
	return thing.value
}
calledBy(getter, 'main')

function setter() {
	thing.stored = 200
}
calledBy(setter, 'main')

function applied(a, b) {
	return spin(200) + a + b
}
calledBy(applied, 'apply')

function apply() {
	return Reflect.apply(applied, null, [1, 2]) + applied.call(null, 1, 2) + applied.apply(null, [1, 2]) + applied(...[1, 2, 3])
}
calledBy(apply, 'main')

function bound(a) {
	return spin(200) + a
}
calledBy(bound, 'bind')
const isBound = bound.bind(null, 1)

function bind() {
	return isBound()
}
calledBy(bind, 'main')

function proxied() {
	return spin(200)
}
calledBy(proxied, 'proxy')
const proxyOf = new Proxy({}, { get: proxied })

function proxy() {
	return proxyOf.anything
}
calledBy(proxy, 'main')

// --- more arguments and fewer than the function has ---
function twice(a, b, c) {
	return spin(200) + a + (b || 0) + (c || 0)
}
calledBy(twice, 'adapt')

function adapt() {
	return twice(1) + twice(1, 2, 3, 4, 5)
}
calledBy(adapt, 'main')

// --- closures, classes, generators, promises ---
function close(n) {
	return function inner() {
		return spin(200) + n
	}
}
note('inner', 'function inner() {\n\t\treturn spin(200) + n\n\t}', ['closure'])

function closure() {
	return close(1)() + close(2)()
}
calledBy(closure, 'main')
calledBy(close, 'closure')

class Base {
	constructor() {
		this.a = 1
	}

	method() {
		return spin(200)
	}
}

class Made extends Base {
	constructor() {
		super()
		this.x = spin(200)
	}

	method() {
		return super.method() + spin(100)
	}

	static made() {
		return new Made().method()
	}
}
note('method', source.slice(source.indexOf('method() {'), source.indexOf('static made') - 3), ['method', 'made'])
note('Made', Made.toString(), ['made'])
note('Base', Base.toString(), ['Made'])
note('made', 'static made() {\n\t\treturn new Made().method()\n\t}', ['main'])

function *numbers(n) {
	for (let i = 0; i < n; i++)
		yield spin(100) + i
}
calledBy(numbers, 'generator')

function generator() {
	let sum = 0
	for (const n of numbers(30))
		sum += n
	return sum
}
calledBy(generator, 'main')

const iterated = {
	*[Symbol.iterator]() {
		yield spin(100)
		yield spin(100)
	},
}
note('iterated', '*[Symbol.iterator]() {\n\t\tyield spin(100)\n\t\tyield spin(100)\n\t}', ['spread'])

function spread() {
	return [...iterated].length
}
calledBy(spread, 'main')

function thrower(n) {
	spin(100)
	if (n)
		throw new RangeError('no')
	return n
}
calledBy(thrower, 'exception')

function exception() {
	try {
		return thrower(1)
	} catch (e) {
		return thrower(0)
	} finally {
		thrower(0)
	}
}
calledBy(exception, 'main')

function regexp() {
	return /^(a+)+$/.test('aaaaaaaaaaaaaab')
}
calledBy(regexp, 'main')

// --- code that is made and thrown away ---
const makeDropped = 'return function dropped(n) { return spin(n) + K }'
let serial = 0

function makes() {
	const f = new Function('spin', makeDropped.replace('K', serial++))(spin)
	let sum = 0
	for (let i = 0; i < 50; i++)
		sum += f(50)
	return sum
}
calledBy(makes, 'main')
truth.push('frame dropped 1 9 makes')

function evals() {
	return eval('(function evaluated(n) { return spin(n) })')(300)
}
calledBy(evals, 'main')
truth.push('frame evaluated 1 1 evals')

// --- many lines ---
function big(n) {
	let a = 0
	if (n & 1)
		a += spin(50)
	else
		a -= spin(60)
	for (let i = 0; i < 3; i++) {
		a ^= spin(
			40)
	}

	switch (n % 3) {
	case 0:
		a += spin(30)
		break
	case 1:
		a += spin(31)
		break
	default:
		a += spin(32)
	}
	return a
}
calledBy(big, 'lines')

function lines() {
	return big(serial++)
}
calledBy(lines, 'main')

const cases = { plain, deep, sort, map, reduce, forEach, from, replace, stringify, getter, setter, apply, bind, proxy, adapt, closure,
	made: Made.made, generator, spread, exception, regexp, makes, evals, lines }

// --- the event loop ---
async function awaited(n) {
	spin(n)
	await null
	spin(n)
	return n
}
calledBy(awaited, 'asynchronous', '*')

async function asynchronous(end) {
	while (Date.now() < end) {
		for (let i = 0; i < 100; i++)
			await awaited(1000)
		await new Promise(setImmediate)
	}
}
calledBy(asynchronous, 'main', '*')

function main(end, names) {
	for (let i = 0; Date.now() < end; i++)
		for (const name of names)
			for (let k = 0; k < (name === 'deep' ? 1 : 50); k++)
				cases[name]()
}
calledBy(main, '(anonymous)', 'worker', '*')
truth.push('frame (anonymous) 1 99999 *', 'root (anonymous)')

function worker(end, names) {
	spin(1000)
	main(end, names)
}
calledBy(worker, '(anonymous)')

if (!threads.isMainThread) {
	worker(threads.workerData.end, threads.workerData.names)
} else {
	console.log(truth.join('\n'))
	const seconds = Number(process.argv[2])
	const names = process.argv.length > 3 ? process.argv.slice(3) : Object.keys(cases).concat('asynchronous')
	const end = Date.now() + 1000 * seconds
	if (names.includes('worker'))
		new threads.Worker(__filename, { workerData: { end, names: names.filter(n => cases[n]) } })
	if (names.includes('asynchronous')) {
		const half = names.some(n => cases[n]) ? Date.now() + 500 * seconds : 0
		main(half, names.filter(n => cases[n]))
		asynchronous(end)
	} else {
		main(end, names.filter(n => cases[n]))
	}
}
