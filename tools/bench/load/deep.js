// SPDX-License-Identifier: Apache-2.0
// deep.js DEPTH: so many frames of one function, at whose end a loop runs for a moment, again and again.
'use strict';

const depth = Number(process.argv[2]);
let sink = 0;

function spin(n) {
	for (let i = 0; i < 20000; i++)
		n = (n * 1103515245 + 12345) & 0x7fffffff;
	return n;
}

function down(n) {
	return n === 0 ? spin(sink) : down(n - 1) + 1 | 0;
}

for (;;)
	sink = down(depth);
