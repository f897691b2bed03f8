// SPDX-License-Identifier: Apache-2.0
// Time in compiled JavaScript, in regular expressions, in sorting and in the garbage collector.   compute.js SECONDS
"use strict";
function fib(n) {
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

class Tree {
	constructor(depth) {
		this.left = depth ? new Tree(depth - 1) : null;
		this.right = depth ? new Tree(depth - 1) : null;
	}
	count() {
		return this.left ? 1 + this.left.count() + this.right.count() : 1;
	}
}

const words = Array.from({ length: 5000 }, (_, i) => `word${(i * 7919) % 5000}@host${i % 17}.example`);
const end = Date.now() + 1000 * Number(process.argv[2]);
let sum = 0;
while (Date.now() < end) {
	sum += fib(22) + new Tree(12).count();
	sum += words.filter((w) => /^(\w+)(\d)@host(1|2|7)+\.ex(a|am|amp)*le$/.test(w)).length;
	sum += [...words].sort((a, b) => (a < b ? -1 : 1)).map((w) => w.replace(/o(r|s)/g, (m) => m.toUpperCase())).length;
	sum += JSON.parse(JSON.stringify({ words })).words.length;
}
