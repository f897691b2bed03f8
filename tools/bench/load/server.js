// SPDX-License-Identifier: Apache-2.0
// An HTTP server that answers with some JSON; prints the port it got.
"use strict";
const http = require("http");
const server = http.createServer((request, response) => {
	const body = JSON.stringify({ url: request.url, agent: request.headers, list: Array.from({ length: 100 }, (_, i) => i * i) });
	response.setHeader("Content-Type", "application/json");
	response.end(body);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
