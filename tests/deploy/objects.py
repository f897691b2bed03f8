# SPDX-License-Identifier: Apache-2.0
"""objects.py CERT KEY TOKEN OBJECTS.json: an API server that has the objects of a file, for ever: each is got, listed and watched, by name
and by node; where there is no real one. The first line is "port N"."""
import http.server
import json
import ssl
import sys
import time
import urllib.parse

cert, key, token, name = sys.argv[1:]
PLURALS = {"Pod": "pods", "Namespace": "namespaces", "Node": "nodes", "ReplicaSet": "replicasets", "Deployment": "deployments", "ConfigMap": "configmaps"}
objects = json.load(open(name))


def fits(o, selector):
    at = {"metadata.name": o["metadata"]["name"], "spec.nodeName": o.get("spec", {}).get("nodeName", "")}
    return all(at.get(k) == v for k, _, v in (part.partition("=") for part in selector.split(",") if part))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def fail(self, code, reason):
        self.answer(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": reason, "code": code})

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        words = url.path.strip("/").split("/")
        words = words[2:] if words[0] == "api" else words[3:]
        if self.headers.get("Authorization") != "Bearer " + token:
            return self.fail(401, "Unauthorized")
        if url.path == "/version":
            return self.answer(200, {"major": "1", "minor": "34", "gitVersion": "v1.34.4"})
        space = words[1] if words[:1] == ["namespaces"] and len(words) > 2 else None
        words = words[2:] if space else words
        of = [o for o in objects if words and PLURALS[o["kind"]] == words[0] and space in (None, o["metadata"].get("namespace"))]
        if len(words) == 2:
            found = [o for o in of if o["metadata"]["name"] == words[1]]
            return self.answer(200, found[0]) if found else self.fail(404, "NotFound")
        if query.get("sendInitialEvents"):
            return self.fail(422, "Invalid")
        if query.get("watch"):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            time.sleep(600)  # nothing changes
            return None
        items = [o for o in of if fits(o, query.get("fieldSelector", ""))]
        kind, version = (items[0]["kind"], items[0]["apiVersion"]) if items else ("", "v1")
        return self.answer(200, {"kind": kind + "List", "apiVersion": version, "metadata": {"resourceVersion": "9"}, "items": items})


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("port", server.server_address[1], flush=True)
server.serve_forever()
