#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// ClickHouse's HTTP interface, as far as hearth speaks it, on loopback before the engine that npm's chdb carries: queries in
// the body or in ?query=, rows of an INSERT in the body, parameters, settings, compression both ways, exceptions.
//
// usage: front.js MODULES DATA [PORT]    MODULES: a node_modules folder with chdb. Says its port on standard output.
//
// A file DATA/readonly: tables are not emptied, as where the user has the profile readonly.
// FRONT_LOSE=N: the first N inserts of samples are done, but not answered. FRONT_LOG=1: exceptions on standard error, too.
const fs = require('fs'), http = require('http'), path = require('path'), zlib = require('zlib');
const [modules, data, port] = process.argv.slice(2);
const { Session } = require(path.resolve(modules, 'chdb'));
fs.mkdirSync(data, { recursive: true });
const session = new Session(path.resolve(data));
// Not for the engine: the server's own, and those of its HTTP interface.
const OF_SERVER = new Set(['query', 'database', 'default_format', 'wait_end_of_query', 'enable_http_compression', 'user', 'password',
	'buffer_size', 'query_id', 'session_id']);
let files = 0, lose = +process.env.FRONT_LOSE || 0;

const text = (value) => `'${value.replace(/\\/g, '\\\\').replace(/'/g, "\\'")}'`;
const quoted = (name) => '`' + name.replace(/`/g, '') + '`';
const unpack = (encoding, body) => encoding === 'gzip' ? zlib.gunzipSync(body) : encoding === 'zstd' ? unzstd(body) : body;

// Older versions of node know no zstd; the engine does.
function unzstd(body) {
	if (zlib.zstdDecompressSync)
		return zlib.zstdDecompressSync(body);
	const packed = path.join(data, `packed${files++}.zst`);
	fs.writeFileSync(packed, body);
	try {
		return require('child_process').execFileSync('zstd', ['-dcq', packed], { maxBuffer: 1 << 30 });
	} finally {
		fs.unlinkSync(packed);
	}
}

function answer(url, body) {
	const set = url.searchParams, database = set.get('database'), put = [];
	let query = set.get('query');
	if (query === null) {
		query = body.toString();
		body = Buffer.alloc(0);
	}
	if (/^\s*TRUNCATE\b/i.test(query) && fs.existsSync(path.join(data, 'readonly')))
		throw new Error('Code: 164. DB::Exception: Cannot execute query in readonly mode. (READONLY)');
	if (database)
		session.query(`USE ${quoted(database)}`);
	for (const [name, value] of set) {
		if (OF_SERVER.has(name))
			continue;
		session.query(`SET ${quoted(name).replace(/`/g, '')} = ${text(value)}`);
		put.push(name);
	}
	try {
		if (/^\s*INSERT\b.*\bFORMAT\s+\w+\s*$/is.test(query)) {
			const [, head, format] = /^(.*)\bFORMAT\s+(\w+)\s*$/is.exec(query), file = path.join(data, `rows${files++}`);
			fs.writeFileSync(file, body);
			try {
				session.query(`${head} FROM INFILE ${text(path.resolve(file))} FORMAT ${format}`);
				return Buffer.alloc(0);
			} finally {
				fs.unlinkSync(file);
			}
		}
		if (!/^\s*(SELECT|WITH|SHOW|DESCRIBE|EXISTS)\b/i.test(query)) {
			session.query(query);
			return Buffer.alloc(0);
		}
		// The binding makes text of what it hands out; a file does not.
		const file = path.resolve(data, `answer${files++}`);
		session.query(`${query} INTO OUTFILE ${text(file)} TRUNCATE FORMAT ${set.get('default_format') || 'TabSeparated'}`);
		const rows = fs.existsSync(file) ? fs.readFileSync(file) : Buffer.alloc(0);
		fs.rmSync(file, { force: true });
		return rows;
	} finally {
		for (const name of put.filter((n) => !n.startsWith('param_')))
			session.query(`SET ${name} = DEFAULT`);
	}
}

http.createServer((request, reply) => {
	const url = new URL(request.url, 'http://front'), pieces = [];
	request.on('data', (piece) => pieces.push(piece)).on('end', () => {
		if (url.pathname === '/ping')
			return reply.end('Ok.\n');
		try {
			let rows = answer(url, unpack(request.headers['content-encoding'], Buffer.concat(pieces)));
			if (url.searchParams.get('enable_http_compression') === '1' && /gzip/.test(request.headers['accept-encoding'] || '')) {
				reply.setHeader('Content-Encoding', 'gzip');
				rows = zlib.gzipSync(rows, { level: 1 });
			}
			if (/^INSERT INTO hearth_samples/.test(url.searchParams.get('query') || '') && lose-- > 0)
				return request.socket.destroy();
			reply.end(rows);
		} catch (error) {
			const code = (/Code: (\d+)/.exec(error.message) || [])[1] || '1001';
			if (process.env.FRONT_LOG)
				console.error(error.message);
			reply.writeHead(code === '516' ? 403 : 500, { 'X-ClickHouse-Exception-Code': code });
			reply.end(`${error.message}\n`);
		}
	});
}).listen(+port || 0, '127.0.0.1', function () {
	console.log(`listening on ${this.address().port}`);
});
