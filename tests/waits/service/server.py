#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""server.py SECONDS [CLIENTS]: a web service under load, whose requests wait: for a database that answers late, and for a lock that
somebody else holds for long. Database and clients are processes of their own. All threads say what their clocks say (clocks.py)."""
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time

from clocks import Clocked, local, timed

HERE = os.path.dirname(os.path.abspath(__file__))
STOCK = threading.Lock()
stock = {item: 1000000 for item in range(100)}
is_over = threading.Event()
said = os.dup(1)  # a descriptor of its own, which children have, too
database_port = None


@timed
def query(number):
    if not hasattr(local, "database"):
        local.database = socket.create_connection(("127.0.0.1", database_port)).makefile("rwb")
    local.database.write(b"%d\n" % number)
    local.database.flush()
    return json.loads(local.database.readline())


@timed
def lock_stock():
    STOCK.acquire()


def reserve(rows):
    lock_stock()
    for row in rows:
        stock[row["item"]] -= 1
    STOCK.release()


def render(rows):
    for _ in range(30):
        text = json.dumps({"rows": rows, "sum": sum(row["price"] for row in rows)})
    return text.encode()


def refresh_prices():
    """It asks somebody for prices while it holds the lock: the bug that a profile is to show."""
    STOCK.acquire()
    time.sleep(0.015)
    for item in stock:
        stock[item] += 1
    STOCK.release()


def refresh_often():
    with Clocked("prices"):
        while not is_over.wait(0.025):
            refresh_prices()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the client's answer waits for an acknowledgement
    wbufsize = -1

    def do_GET(self):
        rows = query(int(self.path.rpartition("/")[2]))
        reserve(rows)
        body = render(rows)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = False

    def process_request_thread(self, request, client_address):
        with Clocked("request"):
            super().process_request_thread(request, client_address)
            if hasattr(local, "database"):
                local.database.close()


def child(*command, **pipes):
    return subprocess.Popen([sys.executable, *command], cwd=HERE, env={**os.environ, "SERVICE_SAID": str(said)}, pass_fds=[said], text=True, **pipes)


def run(seconds, clients):
    global database_port
    database = child("database.py", "10", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    database_port = int(database.stdout.readline())
    server = Server(("127.0.0.1", 0), Handler)
    load = child("load.py", str(server.server_address[1]), str(seconds), str(clients))

    def end():
        status = load.wait()
        is_over.set()
        server.shutdown()
        if status:
            os._exit(1)

    refresher = threading.Thread(target=refresh_often)
    refresher.start()
    threading.Thread(target=end).start()
    server.serve_forever()
    server.server_close()
    refresher.join()
    database.stdin.close()
    return database.wait()


with Clocked("accept"):
    failed = run(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 8)
sys.exit(failed)
