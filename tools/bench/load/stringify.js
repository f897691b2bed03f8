// SPDX-License-Identifier: Apache-2.0
// Time in node's own C++: JSON.stringify calls itself for each level of arrays.   stringify.js SECONDS
"use strict";
const levels = 40;
let value = Array.from({ length: 20000 }, (_, i) => i * 1.5);
for (let i = 0; i < levels; i++)
	value = [value];
const end = Date.now() + 1000 * Number(process.argv[2]);
while (Date.now() < end)
	JSON.stringify(value);
