#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who stands where ClickHouse is reached over TLS, on loopback: looks at who asks, and takes rows or hands the request on.

usage: stand_in.py FOLDER [ENGINE]   ENGINE: URL of a ClickHouse that does what is asked; without it inserts are taken and tables are
empty. FOLDER has the certificates it serves, NAME.pem with key.pem, each on a port of its own, told as "NAME PORT" on standard
output. FOLDER/password is what hearth's has to be, read at each request. FOLDER/mode, read too: "cut": what samples came are
taken, the connection ends within the answer; "hold": within the request. Written: FOLDER/taken, a line for each batch of samples that
was taken the first time: their number.
"""
import http.server, os, ssl, subprocess, sys, threading, urllib.error, urllib.parse, urllib.request

folder, engine = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
lock, tokens = threading.Lock(), set()


def said(name):
    try:
        with open(os.path.join(folder, name)) as f:
            return f.read().strip()
    except FileNotFoundError:
        return ""


def count_samples(rows):
    """Rows of hearth_samples in RowBinary: 8 bytes, two texts, 8 + 8 + 8 + 2 + 8, two texts."""
    at = count = 0

    def text(at):
        length = shift = 0
        while True:
            byte = rows[at]
            at, length, shift = at + 1, length | (byte & 127) << shift, shift + 7
            if byte < 128:
                return at + length

    while at < len(rows):
        at = text(text(text(text(at + 8)) + 34))
        count += 1
    assert at == len(rows)
    return count


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", headers=(), cut=False):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) + (100 if cut else 0)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = cut

    def do_POST(self):
        if said("mode") == "hold":
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        url = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        assert "password" not in url and not self.headers["Authorization"]
        if (self.headers["X-ClickHouse-User"], self.headers["X-ClickHouse-Key"]) != ("hearth", said("password")):
            text = b"Code: 516. DB::Exception: hearth: Authentication failed: password is incorrect. (AUTHENTICATION_FAILED)\n"
            return self.reply(403, text, [("X-ClickHouse-Exception-Code", "516")])
        query = url.get("query") or body.decode()
        answer = self.ask(body) if engine else self.take(query)
        is_samples = query.startswith("INSERT INTO hearth_samples")
        if is_samples:
            self.note(url["insert_deduplication_token"], body)
        self.reply(*answer, cut=is_samples and said("mode") == "cut")

    def take(self, query):
        note = (1).to_bytes(4, "little") + (604800).to_bytes(8, "little")
        if "FROM hearth_schema" in query:
            return 200, note
        return (200, bytes(7 * 8)) if "system.parts" in query else (200,)  # how much there is: nothing

    def ask(self, body):
        headers = {k: v for k, v in self.headers.items() if k.lower() in ("content-type", "content-encoding")}
        try:
            with urllib.request.urlopen(urllib.request.Request(engine + self.path, body, headers)) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as e:
            return e.code, e.read(), [("X-ClickHouse-Exception-Code", e.headers.get("X-ClickHouse-Exception-Code", "1001"))]

    def note(self, token, body):
        rows = subprocess.run(["zstd", "-dcq"], input=body, stdout=subprocess.PIPE, check=True).stdout
        with lock:
            if token not in tokens:
                tokens.add(token)
                with open(os.path.join(folder, "taken"), "a") as f:
                    f.write(f"{count_samples(rows)}\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        if not isinstance(sys.exc_info()[1], OSError):  # who does not trust us is gone in the midst
            super().handle_error(request, address)


for name in sorted(os.listdir(folder)):
    if not name.endswith(".pem") or name in ("key.pem", "ca.pem"):
        continue
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, name), os.path.join(folder, "key.pem"))
    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(name[:-4], server.server_port, flush=True)
print("ready", flush=True)
threading.Event().wait()
