#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A proxy of three kinds on one port, told apart by the first byte: HTTP, HTTP with CONNECT, SOCKS5.

Whatever host it is asked for, it goes to 127.0.0.1: so names that nobody else knows reach a server only through it. The first line
on stdout is "port N", then one line a connection or request: what was asked for."""
import socket
import sys
import threading


def receive(sock, count):
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise OSError("cut")
        data += more
    return data


def head(sock):
    """Of a request: the lines up to the empty one, byte by byte, so that nothing behind it is taken."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        data += receive(sock, 1)
    return data.decode("latin-1").split("\r\n")[:-2]


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def join(client, server):
    back = threading.Thread(target=copy, args=(server, client), daemon=True)
    back.start()
    copy(client, server)
    back.join()


def connect(port, what):
    print(what, flush=True)
    return socket.create_connection(("127.0.0.1", port))


def socks(client):
    receive(client, receive(client, 2)[1])
    client.sendall(b"\x05\x00")  # no password
    _, command, _, kind = receive(client, 4)
    if command != 1 or kind not in (1, 3):
        raise OSError("neither a name nor IPv4")
    host = receive(client, receive(client, 1)[0]).decode() if kind == 3 else socket.inet_ntoa(receive(client, 4))
    port = int.from_bytes(receive(client, 2), "big")
    with connect(port, f"SOCKS5 {host}:{port}") as server:
        client.sendall(b"\x05\x00\x00\x01" + bytes(6))
        join(client, server)


def http(client):
    lines = head(client)
    method, target, _ = lines[0].split(" ")
    if method == "CONNECT":
        with connect(int(target.rpartition(":")[2]), f"CONNECT {target}") as server:
            client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            join(client, server)
        return
    host, _, path = target.removeprefix("http://").partition("/")
    lines = [f"{method} /{path} HTTP/1.1"] + [line for line in lines[1:] if not line.lower().startswith("proxy-")]
    with connect(int(host.rpartition(":")[2]), f"{method} {target}") as server:
        server.sendall("\r\n".join(lines + ["Connection: close", "", ""]).encode("latin-1"))
        join(client, server)


def serve(client):
    with client:
        try:
            (socks if client.recv(1, socket.MSG_PEEK) == b"\x05" else http)(client)
        except OSError as error:
            print(f"failed: {error}", flush=True)


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"port {listener.getsockname()[1]}", flush=True)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


if __name__ == "__main__":
    main()
