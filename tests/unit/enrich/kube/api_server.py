#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes API server that does what the real one does seldom: api_server.py CERT KEY TOKEN

The first line on stdout is "port N", then a line a request: "METHOD PATH STATUS". Orders come on stdin, a line each:

  put JSON             a pod is added or changed; open watches are told
  delete UID           it goes
  object PATH JSON     what GET PATH answers
  forbid WORD          403 for paths with that word in them; "forbid -" for none
  token TEXT           only this token counts from now on
  forget               watches from before now, and continued lists, get 410
  expire               the same, and open watches get an ERROR event of that code
  bookmark VERSION     to open watches
  cut                  open watches end in the middle of a line
  end                  open watches end as after timeoutSeconds
  raw TEXT             goes to open watches as it is, with a newline
  endless BYTES        an object that is so long and never ends
  huge BYTES           an event with an annotation so long, whose pod is called huge
  strange TEXT         the body of the next lists; "strange -": none any more
  busy N               N requests get 429 with Retry-After: 1
  page N               lists have N pods an answer at most
"""
import http.server
import json
import ssl
import sys
import threading
import urllib.parse

lock, output = threading.Condition(), threading.Lock()
state = {"token": sys.argv[3], "version": 100, "oldest": 0, "forbid": None, "strange": None, "busy": 0, "page": 1000}
pods, objects, watches, history = {}, {}, [], []


def say(*words):
    with output:  # lines of several threads stay whole
        print(*words, flush=True)


class Watch:
    def __init__(self):
        self.queue = []

    def send(self, data):
        self.queue.append(data)


def event(kind, pod):
    return (json.dumps({"type": kind, "object": pod}) + "\n").encode()


def status(code, reason):
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": reason, "code": code}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, code, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        say("GET", self.path, code)
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        with lock:
            refusal = None
            if self.headers.get("Authorization") != "Bearer " + state["token"]:
                refusal = 401, "Unauthorized", ()
            elif state["forbid"] and state["forbid"] in url.path:
                refusal = 403, f"{state['forbid']} is forbidden: User \"hearth\" cannot", ()
            elif state["busy"]:
                state["busy"] -= 1
                refusal = 429, "too many requests", (("Retry-After", "1"),)
        if refusal:
            return self.answer(refusal[0], status(refusal[0], refusal[1]), refusal[2])
        if not url.path.endswith("/pods") or url.path == "/pods":
            found = objects.get(url.path)
            return self.answer(200, found) if found else self.answer(404, status(404, "not found"))
        if query.get("fieldSelector") != "spec.nodeName=node-1":
            return self.answer(400, status(400, "the test's node is node-1"))
        return self.watch(query) if query.get("watch") else self.list(query)

    def list(self, query):
        with lock:
            if state["strange"]:
                return self.answer(200, state["strange"].encode())
            if "continue" in query and int(query["continue"].split(".")[0]) < state["oldest"]:
                return self.answer(410, status(410, "the provided continue parameter is too old"))
            first = int(query["continue"].split(".")[1]) if "continue" in query else 0
            items = list(pods.values())[first:first + state["page"]]
            left = len(pods) - first - len(items)
            meta = {"resourceVersion": str(state["version"])}
            if left > 0:
                meta["continue"] = f"{state['version']}.{first + len(items)}"
            # the order of members is the real one's
            return self.answer(200, {"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items})

    def watch(self, query):
        mine = Watch()
        with lock:
            if int(query["resourceVersion"]) < state["oldest"]:
                return self.answer(410, status(410, "too old resource version"))
            say("GET", self.path, 200)
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            mine.queue += [data for version, data in history if version > int(query["resourceVersion"])]
            watches.append(mine)
        try:
            while True:
                with lock:
                    while not mine.queue:
                        lock.wait()
                    data = mine.queue.pop(0)
                if data == "end":
                    self.wfile.write(b"0\r\n\r\n")
                    break
                if data == "cut":
                    self.close_connection = True
                    self.connection.close()
                    break
                for at in range(0, len(data), 1 << 16):
                    piece = data[at:at + (1 << 16)]
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
        except OSError:
            self.close_connection = True
        with lock:
            if mine in watches:
                watches.remove(mine)


def change(kind, pod):
    """An event that watches which begin later get, too."""
    pod["metadata"]["resourceVersion"] = str(state["version"])
    history.append((state["version"], event(kind, pod)))
    broadcast(history[-1][1])


def broadcast(data):
    for watch in watches:
        watch.send(data)


def order(line):
    word, _, rest = line.partition(" ")
    state["version"] += 1
    if word == "put":
        pod = json.loads(rest)
        kind = "MODIFIED" if pod["metadata"]["uid"] in pods else "ADDED"
        pods[pod["metadata"]["uid"]] = pod
        change(kind, pod)
    elif word == "delete":
        change("DELETED", pods.pop(rest))
    elif word == "object":
        path, _, text = rest.partition(" ")
        objects[path] = json.loads(text)
    elif word == "forbid":
        state["forbid"] = None if rest == "-" else rest
    elif word == "strange":
        state["strange"] = None if rest == "-" else rest
    elif word in ("busy", "page"):
        state[word] = int(rest)
    elif word == "token":
        state["token"] = rest
    elif word == "forget":
        state["oldest"] = state["version"]
    elif word == "expire":
        state["oldest"] = state["version"]
        broadcast(event("ERROR", status(410, "too old resource version")))
    elif word == "bookmark":
        broadcast(event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": rest}}))
    elif word == "cut":
        broadcast(b'{"type":"ADDED","object":{"metadata":{"uid":')
        broadcast("cut")
    elif word == "end":
        broadcast("end")
    elif word == "raw":
        broadcast(rest.encode() + b"\n")
    elif word == "endless":
        broadcast(b'{"type":"ADDED","object":{"x":"' + b"a" * int(rest))
    elif word == "huge":
        broadcast(event("ADDED", {"metadata": {"uid": "huge", "name": "huge", "annotations": {"a": "b" * int(rest)}}}))
    else:
        sys.exit(f"no such order: {line}")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that does not trust us


server = Server(("127.0.0.1", 0), Handler)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
threading.Thread(target=server.serve_forever, daemon=True).start()
say("port", server.server_address[1])
for text in sys.stdin:
    with lock:
        order(text.rstrip("\n"))
        lock.notify_all()
    say("done")
